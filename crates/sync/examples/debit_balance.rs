//! "Is the balance sufficient? Then write the new one." Two debits of 50 leave 50 of 100.
//! Safe: the check is part of the write, which happens only if the balance is still the one that was checked.

#[path = "common/mod.rs"]
mod common;

use common::{Anything, bytes, number, somebody_else_runs};
use toctou_sync::{Cells, Error, Fence, Memory, Retry, update};

async fn dangerous(database: &Memory, amount: i64) -> Result<bool, Error> {
    let balance = number(
        database
            .read("balance")
            .await?
            .as_ref()
            .map(|found| &*found.value),
    );
    if balance < amount {
        return Ok(false);
    }
    somebody_else_runs().await;
    database
        .write_fenced("balance", Fence::new(0), bytes(balance - amount))
        .await?;
    Ok(true)
}

async fn safe(database: &Memory, amount: i64) -> Result<bool, Error> {
    let debited = update(database, "balance", Retry::default(), |balance| {
        let balance = number(balance);
        if balance < amount {
            return Err(Error::Invalid("insufficient funds".into()));
        }
        Ok(Some(bytes(balance - amount)))
    });
    match debited.await {
        Ok(_) => Ok(true),
        Err(Error::Invalid(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn balance_of_100() -> Result<Memory, Error> {
    let database = Memory::default();
    database
        .compare_and_swap("balance", None, Some(bytes(100)))
        .await?;
    Ok(database)
}

async fn balance(database: &Memory) -> Result<i64, Error> {
    Ok(number(
        database
            .read("balance")
            .await?
            .as_ref()
            .map(|found| &*found.value),
    ))
}

pub async fn example() -> Anything {
    let database = balance_of_100().await?;
    let (a, b) = tokio::join!(dangerous(&database, 60), dangerous(&database, 60));
    let left = balance(&database).await?;
    println!("dangerous: debited 60 of 100: {}, {}; left: {left}", a?, b?);
    assert_eq!(left, 40, "120 were paid out, and 60 are missing");

    let database = balance_of_100().await?;
    let (a, b) = tokio::join!(safe(&database, 60), safe(&database, 60));
    let (a, b) = (a?, b?);
    let left = balance(&database).await?;
    println!("safe: debited 60 of 100: {a}, {b}; left: {left}");
    assert!(a != b && left == 40);
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
