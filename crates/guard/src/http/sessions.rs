//! Clients of revisions with sessions, each with a server of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::streams::Streams;
use crate::session::Session;
use crate::upstream::Supervised;

/// Each is a process: more are refused.
const MOST_SESSIONS: usize = 64;
/// One that is not used for this long is ended.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// One client and its server.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    pub(super) streams: Arc<Streams>,
    /// Who began it: nobody else may use it.
    pub(super) subject: Option<Arc<str>>,
    /// Which of the servers it leads to.
    pub(super) server: Arc<str>,
    supervised: Mutex<Option<Supervised>>,
    began: Instant,
    used: AtomicU64,
}

impl HttpSession {
    pub(super) fn new(
        session: Arc<Session>,
        streams: Arc<Streams>,
        subject: Option<Arc<str>>,
        server: Arc<str>,
        supervised: Supervised,
    ) -> Self {
        Self {
            session,
            streams,
            subject,
            server,
            supervised: Mutex::new(Some(supervised)),
            began: Instant::now(),
            used: AtomicU64::new(0),
        }
    }

    fn touch(&self) {
        self.used
            .store(self.began.elapsed().as_secs(), Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        let used = Duration::from_secs(self.used.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(used) > IDLE && self.session.in_flight() == 0
    }

    pub(super) async fn stop(&self) {
        let supervised = self
            .supervised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(supervised) = supervised {
            supervised.stop().await;
        }
    }
}

/// All of them, by the id that the client was given.
#[derive(Default)]
pub(super) struct Sessions(Mutex<FxHashMap<String, Arc<HttpSession>>>);

impl Sessions {
    fn map(&self) -> MutexGuard<'_, FxHashMap<String, Arc<HttpSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_room(&self) -> bool {
        self.map().len() < MOST_SESSIONS
    }

    pub(super) fn insert(&self, session: Arc<HttpSession>) -> Option<String> {
        let id = new_id()?;
        self.map().insert(id.clone(), session);
        Some(id)
    }

    /// The session of this id, if it is this caller's and this server's.
    pub(super) fn find(
        &self,
        id: &str,
        subject: Option<&Arc<str>>,
        server: &str,
    ) -> Option<Arc<HttpSession>> {
        let found = self.map().get(id).cloned()?;
        let own = found.subject.as_ref() == subject && *found.server == *server;
        own.then(|| {
            found.touch();
            found
        })
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.map().remove(id)
    }

    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.map().values().cloned().collect()
    }

    /// Takes out those that nobody has used for long.
    pub(super) fn expired(&self) -> Vec<Arc<HttpSession>> {
        let mut map = self.map();
        map.extract_if(|_, session| session.is_idle())
            .map(|(_, session)| session)
            .collect()
    }
}

/// 128 bits that nobody can guess.
fn new_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
