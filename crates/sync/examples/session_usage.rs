//! A session's usage is read, added to and written back with an `await` between: parallel calls are not counted.
//! Safe: the addition is repeated until nobody came between.

#[path = "common/mod.rs"]
mod common;

use common::{Anything, bytes, number, somebody_else_runs};
use toctou_sync::{Cells, Error, Fence, Memory, Retry, update};

async fn dangerous(sessions: &Memory, amount: i64) -> Result<(), Error> {
    let usage = number(
        sessions
            .read("session")
            .await?
            .as_ref()
            .map(|found| &*found.value),
    );
    somebody_else_runs().await;
    sessions
        .write_fenced("session", Fence::new(0), bytes(usage + amount))
        .await?;
    Ok(())
}

async fn safe(sessions: &Memory, amount: i64) -> Result<(), Error> {
    let retry = Retry::default();
    update(sessions, "session", retry, |usage| {
        Ok(Some(bytes(number(usage) + amount)))
    })
    .await?;
    Ok(())
}

async fn usage(sessions: &Memory) -> Result<i64, Error> {
    Ok(number(
        sessions
            .read("session")
            .await?
            .as_ref()
            .map(|found| &*found.value),
    ))
}

pub async fn example() -> Anything {
    let sessions = Memory::default();
    let (a, b) = tokio::join!(dangerous(&sessions, 10), dangerous(&sessions, 1));
    a?;
    b?;
    println!("dangerous: 10 and 1 make {}", usage(&sessions).await?);
    assert_ne!(usage(&sessions).await?, 11, "one of them is lost");

    let sessions = Memory::default();
    let (a, b) = tokio::join!(safe(&sessions, 10), safe(&sessions, 1));
    a?;
    b?;
    println!("safe: 10 and 1 make {}", usage(&sessions).await?);
    assert_eq!(usage(&sessions).await?, 11);
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
