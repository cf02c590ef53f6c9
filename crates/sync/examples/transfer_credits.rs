//! Credits move from one account to another, after a check of the first. Two transfers overdraw it.
//! Safe: both accounts are locked together, in whatever order two transfers name them.

#[path = "common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::sync::Mutex;

use common::{Anything, somebody_else_runs};
use toctou_sync::{LockRequest, Locks, Memory};

type Accounts = Mutex<HashMap<&'static str, i64>>;

fn add(accounts: &Accounts, name: &'static str, amount: i64) {
    if let Ok(mut accounts) = accounts.lock() {
        *accounts.entry(name).or_default() += amount;
    }
}

async fn transfer(accounts: &Accounts, from: &'static str, to: &'static str, amount: i64) -> bool {
    if accounts
        .lock()
        .is_ok_and(|accounts| accounts[from] < amount)
    {
        return false;
    }
    somebody_else_runs().await;
    // Each step is atomic. The check before it is not part of it.
    add(accounts, from, -amount);
    somebody_else_runs().await;
    add(accounts, to, amount);
    true
}

async fn safe(
    locks: &Memory,
    accounts: &Accounts,
    from: &'static str,
    to: &'static str,
    amount: i64,
) -> toctou_sync::Result<bool> {
    let guard = locks
        .acquire(LockRequest::new().exclusive(from).exclusive(to))
        .await?;
    let done = transfer(accounts, from, to, amount).await;
    guard.release().await?;
    Ok(done)
}

fn opened() -> Accounts {
    Accounts::new(HashMap::from([("alice", 100), ("bob", 0)]))
}

pub async fn example() -> Anything {
    let accounts = opened();
    let moved = tokio::join!(
        transfer(&accounts, "alice", "bob", 100),
        transfer(&accounts, "alice", "bob", 100)
    );
    println!("dangerous: moved {moved:?}: {:?}", accounts.lock());
    assert!(
        accounts
            .lock()
            .is_ok_and(|accounts| accounts["alice"] == -100)
    );

    let accounts = opened();
    let locks = Memory::default();
    let (a, b, back) = tokio::join!(
        biased;
        safe(&locks, &accounts, "alice", "bob", 100),
        safe(&locks, &accounts, "alice", "bob", 100),
        safe(&locks, &accounts, "bob", "alice", 30),
    );
    println!(
        "safe: moved {:?}, back {}: {:?}",
        (a?, b?),
        back?,
        accounts.lock()
    );
    assert!(
        accounts
            .lock()
            .is_ok_and(|accounts| accounts["alice"] == 30 && accounts["bob"] == 70)
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
