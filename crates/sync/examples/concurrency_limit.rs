//! One caller starts a hundred calls, and has all connections of the pool.
//! Safe: at most ten of a caller run; a few more wait, and the rest is told at once.

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::Anything;
use toctou_sync::{Error, Limit, Memory, Semaphores};
use tokio::task::JoinSet;

#[derive(Default)]
struct Pool {
    busy: AtomicU32,
    most: AtomicU32,
}

impl Pool {
    async fn query(&self) {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(busy, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

pub async fn example() -> Anything {
    let pool = Arc::new(Pool::default());
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let pool = pool.clone();
        calls.spawn(async move { pool.query().await });
    }
    calls.join_all().await;
    let most = pool.most.load(Ordering::SeqCst);
    println!("dangerous: {most} connections for one caller");
    assert!(most > 10);

    let (pool, callers) = (Arc::new(Pool::default()), Arc::new(Memory::default()));
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let (pool, callers) = (pool.clone(), callers.clone());
        calls.spawn(async move {
            let limit = Limit::at_most(10).queue(50, Duration::from_secs(10));
            let permit = callers.enter("caller", limit).await?;
            pool.query().await;
            permit.release().await
        });
    }
    let mut refused = 0;
    for call in calls.join_all().await {
        match call {
            Ok(()) => {}
            Err(Error::QueueFull { .. }) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let most = pool.most.load(Ordering::SeqCst);
    println!("safe: {most} connections for one caller, {refused} calls told to come later");
    assert!(most <= 10 && refused == 40);
    assert!(callers.is_empty(), "and nothing is remembered of it");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Anything {
    example().await
}
