//! When a folder is scanned, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::protocol::Diagnostic;
use crate::{Failure, Scan};

/// So long nobody types before a scan begins.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);

pub(crate) struct Folder {
    /// As the editor names it.
    pub(crate) path: PathBuf,
    /// As the file system names it.
    pub(crate) real: PathBuf,
    /// What was scanned last, until the next is done.
    pub(crate) scan: Option<Arc<Scan>>,
    pub(crate) shown: BTreeMap<PathBuf, Vec<Diagnostic>>,
    due: Option<Instant>,
    running: Option<Arc<AtomicBool>>,
}

/// What a scan's thread says at its end.
pub(crate) struct Done {
    pub(crate) folder: PathBuf,
    pub(crate) result: Result<Scan, Failure>,
    /// Documents as they were.
    pub(crate) versions: BTreeMap<PathBuf, i64>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            real: path.canonicalize().unwrap_or_else(|_| path.clone()),
            path,
            scan: None,
            shown: BTreeMap::new(),
            due: None,
            running: None,
        }
    }

    /// Something changed. What is being scanned is out of date already.
    pub(crate) fn changed(&mut self, pause: Duration) {
        self.due = Some(Instant::now() + pause);
        self.stop();
    }

    pub(crate) fn stop(&self) {
        if let Some(stop) = &self.running {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// When to look again, unless a scan is under way: its end is heard of.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.running.is_none())
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn begin(&mut self) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        self.due = None;
        self.running = Some(Arc::clone(&stop));
        stop
    }

    /// Was it up to date to its end?
    pub(crate) fn end(&mut self) -> bool {
        self.running = None;
        self.due.is_none()
    }

    /// Takes what is to be shown, and says which files have to be shown anew.
    pub(crate) fn show(&mut self, new: BTreeMap<PathBuf, Vec<Diagnostic>>) -> BTreeSet<PathBuf> {
        let files = self.shown.keys().chain(new.keys()).cloned().collect();
        self.shown = new;
        files
    }
}
