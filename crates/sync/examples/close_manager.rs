//! "Is it closed? No: count me, and call." A call that has looked and is not counted yet runs into closed connections.
//! Safe: looking and being counted are one step.

#[path = "common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use common::{Anything, somebody_else_runs};
use toctou_sync::CloseGate;

#[derive(Default)]
struct Dangerous {
    closed: AtomicBool,
    running: AtomicU32,
    connections_gone: AtomicBool,
}

impl Dangerous {
    async fn call(&self) -> &'static str {
        if self.closed.load(Ordering::SeqCst) {
            return "refused";
        }
        somebody_else_runs().await;
        self.running.fetch_add(1, Ordering::SeqCst);
        let gone = self.connections_gone.load(Ordering::SeqCst);
        self.running.fetch_sub(1, Ordering::SeqCst);
        if gone {
            "used a closed connection"
        } else {
            "answered"
        }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        while self.running.load(Ordering::SeqCst) > 0 {
            somebody_else_runs().await;
        }
        self.connections_gone.store(true, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Safe {
    gate: CloseGate,
    connections_gone: AtomicBool,
}

impl Safe {
    async fn call(&self) -> &'static str {
        let Ok(_inside) = self.gate.enter() else {
            return "refused";
        };
        somebody_else_runs().await;
        if self.connections_gone.load(Ordering::SeqCst) {
            "used a closed connection"
        } else {
            "answered"
        }
    }

    async fn close(&self) {
        self.gate.close().await;
        self.connections_gone.store(true, Ordering::SeqCst);
    }
}

pub async fn example() -> Anything {
    let manager = Dangerous::default();
    let (answer, ()) = tokio::join!(biased; manager.call(), manager.close());
    println!("dangerous: a call while closing {answer}");
    assert_eq!(answer, "used a closed connection");

    let manager = Safe::default();
    let (answer, ()) = tokio::join!(biased; manager.call(), manager.close());
    println!(
        "safe: a call while closing {answer}, a later one is {}",
        manager.call().await
    );
    assert_eq!((answer, manager.call().await), ("answered", "refused"));
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
