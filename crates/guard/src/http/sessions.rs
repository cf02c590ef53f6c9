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
    ) -> Self {
        Self {
            session,
            streams,
            subject,
            server,
            supervised: Mutex::default(),
            began: Instant::now(),
            used: AtomicU64::new(0),
        }
    }

    fn supervised(&self) -> MutexGuard<'_, Option<Supervised>> {
        self.supervised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// It has its server now.
    pub(super) fn begin(&self, supervised: Supervised) {
        *self.supervised() = Some(supervised);
    }

    pub(super) fn is_begun(&self) -> bool {
        self.supervised().is_some()
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
        let supervised = self.supervised().take();
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

    /// False if there are too many.
    pub(super) fn insert(&self, id: String, session: Arc<HttpSession>) -> bool {
        let mut map = self.map();
        let room = map.len() < MOST_SESSIONS;
        if room {
            map.insert(id, session);
        }
        room
    }

    /// The session of this id, if it is this caller's and this server's, and of this transport.
    pub(super) fn find(
        &self,
        id: &str,
        subject: Option<&Arc<str>>,
        server: &str,
        single: bool,
    ) -> Option<Arc<HttpSession>> {
        let found = self.map().get(id).cloned()?;
        let own = found.subject.as_ref() == subject && *found.server == *server;
        (own && found.streams.is_single() == single).then(|| {
            found.touch();
            found
        })
    }

    /// Takes one out that has no server after all.
    pub(super) fn remove_unbegun(&self, id: &str) {
        let mut map = self.map();
        if map.get(id).is_some_and(|session| !session.is_begun()) {
            map.remove(id);
        }
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.map().remove(id)
    }

    pub(super) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.map().values().cloned().collect()
    }

    /// Takes out all of them.
    pub(super) fn take(&self) -> Vec<Arc<HttpSession>> {
        let taken = std::mem::take(&mut *self.map());
        taken.into_values().collect()
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
pub(super) fn new_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
