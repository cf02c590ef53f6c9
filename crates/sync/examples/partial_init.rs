//! Three servers are started; the third fails. The first two stay, and nobody has a handle to stop them.
//! Safe: each one is noted when it has started, and what was noted is taken down when a later one fails.

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use common::{Anything, somebody_else_runs};
use toctou_sync::InitScope;

/// How many connections are open.
type Open = Arc<AtomicI32>;

async fn connect(open: &Open, name: &str) -> Result<(), String> {
    somebody_else_runs().await;
    if name == "broken" {
        return Err(format!("{name} does not start"));
    }
    open.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

async fn dangerous(open: &Open) -> Result<(), String> {
    for name in ["files", "mail", "broken"] {
        connect(open, name).await?;
    }
    Ok(())
}

async fn safe(open: &Open) -> Result<(), String> {
    let mut scope = InitScope::new();
    let started = async {
        for name in ["files", "mail", "broken"] {
            connect(open, name).await?;
            let open = open.clone();
            scope.defer(move || async move {
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
        Ok(())
    }
    .await;
    scope.finish(started).await
}

pub async fn example() -> Anything {
    let open = Open::default();
    let failed = dangerous(&open).await;
    println!(
        "dangerous: {failed:?}, and {} connections are left open",
        open.load(Ordering::SeqCst)
    );
    assert_eq!(open.load(Ordering::SeqCst), 2);

    let open = Open::default();
    let failed = safe(&open).await;
    println!(
        "safe: {failed:?}, and {} connections are left open",
        open.load(Ordering::SeqCst)
    );
    assert!(failed.is_err());
    assert_eq!(open.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
