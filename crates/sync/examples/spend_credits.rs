//! Many calls spend from one account. Each writes back what it read, less its part: most of it is lost.
//! Safe: the write is refused if the version has moved on, and tried again after a random pause, a limited number of times.

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{Anything, bytes, number, somebody_else_runs};
use toctou_sync::{Cells, Error, Fence, Memory, Retry, Swap};
use tokio::task::JoinSet;

async fn dangerous(accounts: &Memory) -> Result<(), Error> {
    let credits = number(
        accounts
            .read("credits")
            .await?
            .as_ref()
            .map(|found| &*found.value),
    );
    somebody_else_runs().await;
    accounts
        .write_fenced("credits", Fence::new(0), bytes(credits - 1))
        .await?;
    Ok(())
}

/// What `toctou_sync::update` does, spelled out, because there is an `await` between read and write.
async fn safe(accounts: &Memory, retry: Retry) -> Result<(), Error> {
    for attempt in 1..=retry.attempts {
        let found = accounts.read("credits").await?;
        let credits = number(found.as_ref().map(|found| &*found.value));
        somebody_else_runs().await;
        let version = found.map(|found| found.version);
        match accounts
            .compare_and_swap("credits", version, Some(bytes(credits - 1)))
            .await?
        {
            Swap::Done(_) => return Ok(()),
            Swap::Conflict(_) => tokio::time::sleep(retry.pause(attempt)).await,
        }
    }
    Err(Error::Conflict {
        key: "credits".into(),
        attempts: retry.attempts,
    })
}

async fn left(accounts: &Memory) -> Result<i64, Error> {
    Ok(number(
        accounts
            .read("credits")
            .await?
            .as_ref()
            .map(|found| &*found.value),
    ))
}

pub async fn example() -> Anything {
    for (how, protected) in [("dangerous", false), ("safe", true)] {
        let accounts = Arc::new(Memory::default());
        accounts
            .compare_and_swap("credits", None, Some(bytes(100)))
            .await?;
        let mut calls = JoinSet::new();
        for _ in 0..20 {
            let accounts = accounts.clone();
            calls.spawn(async move {
                if protected {
                    let retry = Retry {
                        attempts: 100,
                        ..Retry::default()
                    };
                    safe(&accounts, retry).await
                } else {
                    dangerous(&accounts).await
                }
            });
        }
        while let Some(call) = calls.join_next().await {
            call??;
        }
        let left = left(&accounts).await?;
        println!("{how}: 20 of 100 spent, {left} left");
        assert_eq!(protected, left == 80);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Anything {
    example().await
}
