//! A million answers, out of order, each to the one who asked.

mod common;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use common::inner;
use toctou_guard::session::{Origin, Sink};

const CLIENTS: usize = 50;
const ROUNDS: usize = 200;
const AT_ONCE: usize = 100;
/// One in so many is a call under a lock, the others are requests that nothing holds up: unoptimised, a million locks
/// are too many to wait for.
const LOCKED_EACH: usize = if cfg!(debug_assertions) { 10 } else { 1 };

/// Checks that every answer is its own.
struct Client {
    number: usize,
    /// How often each id was answered.
    answered: Mutex<[usize; AT_ONCE]>,
}

impl Sink for Client {
    fn deliver(&self, message: Bytes, _last: bool) {
        // The answer repeats who asked and under which id: all clients use the same ids.
        let text = std::str::from_utf8(&message).expect("text");
        let id = between(text, "\"id\":", ",");
        assert_eq!(text, answer(id, &asked(self.number, id)));
        self.answered.lock().expect("answers")[id.parse::<usize>().expect("a number")] += 1;
    }
    fn close(&self) {}
    fn flush(&self) {}
}

/// What stands between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect("the beginning");
    rest.split_once(after).expect("the end").0
}

fn asked(client: usize, id: impl std::fmt::Display) -> String {
    format!(r#"{{"client":{client},"id":{id}}}"#)
}

fn answer(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn run(memory: Arc<dyn toctou_sync::Backend>) {
    let policy = "[[tool]]\nmatch = \"*\"\nlock = \"{client}-{id}\"\n";
    let (session, server) = inner::session(policy, memory);
    let clients: Vec<Arc<Client>> = (0..CLIENTS)
        .map(|number| {
            Arc::new(Client {
                number,
                answered: Mutex::new([0; AT_ONCE]),
            })
        })
        .collect();
    let mut seed = 1_u64;
    let mut sent = 0_usize;
    for _ in 0..ROUNDS {
        for id in 0..AT_ONCE {
            for client in &clients {
                sent += 1;
                let method = if sent.is_multiple_of(LOCKED_EACH) {
                    "tools/call"
                } else {
                    "prompts/get"
                };
                let asked = asked(client.number, id);
                let message = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"t","arguments":{asked}}}}}"#
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
            let text = std::str::from_utf8(&message).expect("text");
            let asked = format!("{}}}", between(text, "\"arguments\":", "}"));
            let answer = answer(between(text, "\"id\":", ","), &asked);
            session.from_server(&answer.into());
        }
    }
    assert_eq!(session.in_flight(), 0);
    assert_eq!(sent, 1_000_000);
    for client in &clients {
        assert_eq!(*client.answered.lock().expect("answers"), [ROUNDS; AT_ONCE]);
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
