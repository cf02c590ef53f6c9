//! Takes jobs, scans, tells how it ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use crate::child::Scanner;
use crate::log::log;
use crate::store::{Claim, Outcome, Store, StoreError};

/// A worker that is silent for longer has lost its job.
pub const LEASE: Duration = Duration::from_secs(15);
const BEAT_EVERY: Duration = Duration::from_millis(300);
/// Between looks at an empty queue; jobs of this process come at once.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PRUNE_EVERY: Duration = Duration::from_secs(60);

pub struct Worker {
    pub store: Arc<Store>,
    pub scanner: Scanner,
    pub scratch: Arc<Scratch>,
    /// Told when this process accepts a job.
    pub arrived: Arc<tokio::sync::Notify>,
    pub keep: i64,
    pub lease: Duration,
}

impl Worker {
    /// Until it is told to stop. A job in hand is then given back.
    pub async fn run(&self, mut stopped: watch::Receiver<bool>) {
        let mut pruned = Instant::now();
        loop {
            let claimed = tokio::select! {
                claimed = self.store.claim(self.lease) => claimed,
                () = told(&mut stopped) => return,
            };
            match claimed {
                Ok(Some(claim)) => {
                    log("job-taken", &claim.id);
                    self.work(&claim, &mut stopped).await;
                }
                Ok(None) => {
                    if pruned.elapsed() > PRUNE_EVERY {
                        pruned = Instant::now();
                        if let Err(error) = self.store.prune(self.keep).await {
                            log("cannot-prune", &error);
                        }
                    }
                    let pause = LOOK_EVERY.mul_f64(0.75 + 0.5 * fastrand::f64());
                    tokio::select! {
                        () = self.arrived.notified() => {}
                        () = tokio::time::sleep(pause) => {}
                        () = told(&mut stopped) => return,
                    }
                }
                Err(error) => {
                    log("cannot-claim", &error);
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_secs(1)) => {}
                        () = told(&mut stopped) => return,
                    }
                }
            }
            if *stopped.borrow() {
                return;
            }
        }
    }

    async fn work(&self, claim: &Claim, stopped: &mut watch::Receiver<bool>) {
        let outcome = match self.scratch.folder() {
            Err(error) => Outcome::Failed(format!("the scan could not be started: {error}")),
            Ok(folder) => {
                let (said, progress) = watch::channel("started".to_owned());
                tokio::select! {
                    outcome = self.scanner.scan(claim, folder.path(), &said) => outcome,
                    () = self.hold(claim, progress) => {
                        log("job-lost", &claim.id);
                        return;
                    }
                    () = told(stopped) => {
                        if let Err(error) = self.store.release(&claim.id, claim.fence).await {
                            log("cannot-release", &error);
                        }
                        return;
                    }
                }
            }
        };
        self.finish(claim, &outcome).await;
    }

    /// Renews the lease and passes progress on. Ends when the job is somebody else's.
    async fn hold(&self, claim: &Claim, mut progress: watch::Receiver<String>) {
        let mut clock = tokio::time::interval(BEAT_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewed = Instant::now();
        loop {
            clock.tick().await;
            let text = progress.borrow_and_update().clone();
            match self
                .store
                .beat(&claim.id, claim.fence, self.lease, &text)
                .await
            {
                Ok(true) => renewed = Instant::now(),
                Ok(false) => return,
                // It may be back before the lease is over; afterwards the fence decides.
                Err(StoreError::Unavailable(error)) if renewed.elapsed() < self.lease * 4 => {
                    log("cannot-renew", &error);
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                Err(error) => {
                    log("cannot-renew", &error);
                    return;
                }
            }
        }
    }

    /// Insists, while the store may come back. Who takes over scans again.
    async fn finish(&self, claim: &Claim, outcome: &Outcome) {
        let begun = Instant::now();
        loop {
            match self.store.finish(&claim.id, claim.fence, outcome).await {
                Ok(true) => return,
                Ok(false) => {
                    log("late-result-refused", &claim.id);
                    return;
                }
                Err(error) => {
                    log("cannot-finish", &error);
                    if begun.elapsed() > self.lease * 8 {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
        }
    }
}

/// Waits until it is time to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Folders for scans. One that a killed process left is removed by the next: when it starts, and
/// when it ends, since what the killed one had begun may have written on for a while.
pub struct Scratch {
    root: PathBuf,
    lock: std::fs::File,
}

const PREFIX: &str = "toctou-serve-";
const LOCK: &str = "lock";

impl Scratch {
    pub fn new() -> std::io::Result<Self> {
        let above = std::env::temp_dir();
        remove_all_left(&above)?;
        let root = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&above)?
            .keep();
        let lock = std::fs::File::create_new(root.join(LOCK))?;
        lock.lock()?;
        Ok(Self { root, lock })
    }

    fn folder(&self) -> std::io::Result<tempfile::TempDir> {
        tempfile::tempdir_in(&self.root)
    }
}

fn remove_all_left(above: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(above)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            remove_if_left(&entry.path());
        }
    }
    Ok(())
}

/// Its process holds the lock for as long as it lives. A folder without one is
/// being made this moment, or empty.
fn remove_if_left(folder: &Path) {
    let Ok(lock) = std::fs::File::open(folder.join(LOCK)) else {
        return;
    };
    if lock.try_lock().is_err() {
        return;
    }
    remove(folder);
}

/// What a process has started may take a moment to end, and writes until then.
fn remove(folder: &Path) {
    for _ in 0..40 {
        if empty(folder).is_ok() && remove_emptied(folder).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The lock goes last, and comes back if somebody has written beside it meanwhile: a folder without
/// it would be nobody's, and nobody would remove it.
fn remove_emptied(folder: &Path) -> std::io::Result<()> {
    let lock = folder.join(LOCK);
    std::fs::remove_file(&lock)?;
    std::fs::remove_dir(folder).inspect_err(|_| {
        let _ = std::fs::File::create_new(&lock);
    })
}

fn empty(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.root);
        let _ = self.lock.unlock();
        if let Some(above) = self.root.parent() {
            let _ = remove_all_left(above);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a killed process had begun has written there since it was emptied.
    #[test]
    fn a_folder_that_is_written_to_stays_to_be_removed() {
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("toctou-serve-left");
        std::fs::create_dir_all(folder.join("written")).expect("a folder");
        std::fs::File::create(folder.join(LOCK)).expect("a lock");
        assert!(remove_emptied(&folder).is_err());
        assert!(folder.join(LOCK).exists());
        remove_if_left(&folder);
        assert!(!folder.exists());
    }
}
