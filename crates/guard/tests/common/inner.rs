//! A session without processes and pipes: messages go in and come out.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use toctou_guard::admit::Gatekeeper;
use toctou_guard::metrics::Metrics;
use toctou_guard::policy;
use toctou_guard::session::{Link, Server, Session, Setup, Sink};
use toctou_guard::wire::Limits;
use toctou_sync::{Backend, CloseGate};

/// A server that remembers what it is sent, to answer it later.
#[derive(Clone, Default)]
pub struct Backlog(pub Arc<Mutex<Vec<Bytes>>>);

impl Backlog {
    pub fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut *self.0.lock().expect("messages"))
    }
}

impl Link for Backlog {
    fn push(&self, message: Bytes) {
        self.0.lock().expect("messages").push(message);
    }
    fn flush(&self) {}
}

/// A client that does not listen.
pub struct Deaf;

impl Sink for Deaf {
    fn deliver(&self, _message: Bytes, _last: bool) {}
    fn close(&self) {}
    fn flush(&self) {}
}

/// A session that several clients share, and its server.
pub fn session(policy: &str, backend: Arc<dyn Backend>) -> (Arc<Session>, Backlog) {
    let (policy, _) = policy::parse(policy).expect("a policy");
    let session = Session::new(Setup {
        keeper: Arc::new(Gatekeeper {
            policy,
            backend,
            metrics: Arc::new(Metrics::default()),
            gate: CloseGate::new(),
        }),
        server: Server {
            name: "s".into(),
            namespace: "s".into(),
        },
        limits: Limits::default(),
        remap: true,
        shared: true,
        recorder: None,
        main: Arc::new(Deaf),
    });
    let server = Backlog::default();
    session.server_up(Arc::new(server.clone()));
    (session, server)
}
