//! A million answers, out of order, each to the one who asked.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use common::inner;
use toctou_guard::session::{Origin, Sink};

const CLIENTS: usize = 50;
/// Unoptimised, a tenth of a million is enough to wait for.
const ROUNDS: usize = if cfg!(debug_assertions) { 20 } else { 200 };
const AT_ONCE: usize = 100;

/// Checks that every answer is its own.
struct Client {
    number: usize,
    right: AtomicU64,
}

impl Sink for Client {
    fn deliver(&self, message: Bytes, _last: bool) {
        // The answer repeats who asked and under which id: all clients use the same ids.
        let message: serde_json::Value = serde_json::from_slice(&message).expect("JSON");
        assert_eq!(message["result"]["client"], self.number, "{message}");
        assert_eq!(message["id"], message["result"]["id"], "{message}");
        self.right.fetch_add(1, Ordering::Relaxed);
    }
    fn close(&self) {}
    fn flush(&self) {}
}

fn run(memory: Arc<dyn toctou_sync::Backend>) {
    let policy = "[[tool]]\nmatch = \"*\"\nlock = \"{client}-{id}\"\n";
    let (session, server) = inner::session(policy, memory);
    let clients: Vec<Arc<Client>> = (0..CLIENTS)
        .map(|number| {
            Arc::new(Client {
                number,
                right: AtomicU64::new(0),
            })
        })
        .collect();
    let mut seed = 1_u64;
    for _ in 0..ROUNDS {
        for id in 0..AT_ONCE {
            for client in &clients {
                let number = client.number;
                let message = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"client":{number},"id":{id}}}}}}}"#
                );
                let origin = Origin {
                    sink: Arc::clone(client) as Arc<dyn Sink>,
                    subject: None,
                };
                session.from_client(&message.into(), &origin);
            }
        }
        let mut messages = server.take();
        assert_eq!(messages.len(), CLIENTS * AT_ONCE);
        for at in (1..messages.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            messages.swap(at, (seed >> 33) as usize % (at + 1));
        }
        for message in messages {
            let asked: serde_json::Value = serde_json::from_slice(&message).expect("JSON");
            let answer = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
                asked["id"], asked["params"]["arguments"]
            );
            session.from_server(&answer.into());
        }
    }
    assert_eq!(session.in_flight(), 0);
    for client in &clients {
        assert_eq!(
            client.right.load(Ordering::Relaxed),
            (ROUNDS * AT_ONCE) as u64
        );
    }
}

#[test]
fn a_million_answers_out_of_order() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let backend = toctou_sync::connect("memory:").await.expect("memory");
        run(backend);
    });
}
