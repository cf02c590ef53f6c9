//! A balance in memory, checked before an `await` and changed after it. "Only one thread" does not help.
//! Safe: one lock per account, held across the check, the wait and the change.

#[path = "common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::sync::Mutex;

use common::{Anything, somebody_else_runs};
use toctou_sync::{LockRequest, Locks, Memory};

type Cache = Mutex<HashMap<&'static str, i64>>;

async fn debit(cache: &Cache, amount: i64) -> bool {
    let balance = cache.lock().map_or(0, |cache| cache["account"]);
    if balance < amount {
        return false;
    }
    somebody_else_runs().await;
    if let Ok(mut cache) = cache.lock() {
        cache.insert("account", balance - amount);
    }
    true
}

async fn safe(locks: &Memory, cache: &Cache, amount: i64) -> toctou_sync::Result<bool> {
    let guard = locks
        .acquire(LockRequest::new().exclusive("account"))
        .await?;
    let debited = debit(cache, amount).await;
    guard.release().await?;
    Ok(debited)
}

pub async fn example() -> Anything {
    let cache = Cache::new(HashMap::from([("account", 100)]));
    let debited = tokio::join!(debit(&cache, 100), debit(&cache, 100));
    println!("dangerous: debited 100 of 100: {debited:?}");
    assert_eq!(debited, (true, true), "spent twice");

    let cache = Cache::new(HashMap::from([("account", 100)]));
    let locks = Memory::default();
    let (a, b) = tokio::join!(safe(&locks, &cache, 100), safe(&locks, &cache, 100));
    let debited = (a?, b?);
    println!("safe: debited 100 of 100: {debited:?}");
    assert!(debited.0 != debited.1);
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
