//! "How many calls were there? Fewer than ten: count one more." Twenty calls at once all see none.
//! Safe: counting and comparing are one step.

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Anything, somebody_else_runs};
use toctou_sync::{Memory, Quota, RateLimits};
use tokio::task::JoinSet;

async fn dangerous(count: &AtomicU32) -> bool {
    let before = count.load(Ordering::SeqCst);
    somebody_else_runs().await;
    if before >= 10 {
        return false;
    }
    count.store(before + 1, Ordering::SeqCst);
    true
}

pub async fn example() -> Anything {
    let count = Arc::new(AtomicU32::new(0));
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let count = count.clone();
        calls.spawn(async move { dangerous(&count).await });
    }
    let allowed = calls
        .join_all()
        .await
        .into_iter()
        .filter(|allowed| *allowed)
        .count();
    println!("dangerous: {allowed} of 20 calls passed a limit of 10");
    assert!(allowed > 10);

    let limits = Arc::new(Memory::default());
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let limits = limits.clone();
        calls.spawn(async move { limits.take("caller", Quota::per_minute(10), 1).await });
    }
    let mut allowed = 0;
    for decision in calls.join_all().await {
        allowed += u32::from(decision?.is_allowed());
    }
    println!("safe: {allowed} of 20 calls passed a limit of 10");
    println!(
        "and then: {:?}",
        limits.take("caller", Quota::per_minute(10), 1).await?
    );
    assert_eq!(allowed, 10);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Anything {
    example().await
}
