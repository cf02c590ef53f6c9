//! The database: one connection, one thread, jobs in the order in which they come.
//!
//! A job whose caller has gone away runs all the same; what it returns is then dropped, and gives back what it took.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::failed;
use super::owners::Owners;
use crate::{BoxFuture, Result};

/// How long a write of another process is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// After so many jobs that add rows, rows that nobody needs are deleted.
const SWEEP_EACH: u32 = 1024;
/// More than can come between two times, and few enough that nobody waits long for it.
const SWEEP_AT_MOST: u32 = 8 * SWEEP_EACH;

type Job = Box<dyn FnOnce(&mut Database) + Send>;

#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
    /// Tickets of this process that are out. A record that says we run it, without one of these, was abandoned.
    pub(super) tickets: Arc<Mutex<HashSet<i64>>>,
}

pub struct Database {
    connection: Connection,
    pub(super) owners: Owners,
    /// Which start of the machine this is: clocks that count from it cannot be compared with those of another.
    pub(super) boot: String,
    until_sweep: u32,
}

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS versions (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL);
INSERT OR IGNORE INTO versions VALUES (1, CAST(strftime('%s') AS INTEGER) * 1000000);
CREATE TABLE IF NOT EXISTS permits (id INTEGER PRIMARY KEY AUTOINCREMENT, caller BLOB NOT NULL, owner INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS permits_of_caller ON permits (caller);
CREATE TABLE IF NOT EXISTS rates (key BLOB PRIMARY KEY, boot TEXT NOT NULL, full_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS rates_over ON rates (full_at);
CREATE TABLE IF NOT EXISTS cells (key BLOB PRIMARY KEY, value BLOB, version INTEGER, fence INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (key BLOB PRIMARY KEY, arguments BLOB NOT NULL, state INTEGER NOT NULL,
  owner INTEGER NOT NULL, ticket INTEGER NOT NULL, keep INTEGER NOT NULL, until INTEGER NOT NULL, result BLOB) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_over ON records (until);
CREATE INDEX IF NOT EXISTS records_running ON records (owner) WHERE state = 0;
";

impl Store {
    /// Only one process at a time is in here.
    pub fn open(directory: &Path, boot: String) -> io::Result<Self> {
        let owners = Owners::open(&directory.join("owners"))?;
        let connection = open_database(&directory.join("state.db")).map_err(io::Error::other)?;
        let mut database = Database {
            connection,
            owners,
            boot,
            until_sweep: SWEEP_EACH,
        };
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("toctou-store".into())
            .spawn(move || {
                database.forget_earlier_starts();
                database.sweep();
                for job in queue {
                    job(&mut database);
                }
            })?;
        Ok(Self {
            jobs,
            tickets: Arc::default(),
        })
    }

    /// Sends a job at once, whether the future is polled or not. The future waits for what it returns.
    pub(super) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Database) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let (send, receive) = oneshot::channel();
        self.send(move |database| {
            let _ = send.send(job(database));
        });
        Box::pin(async move {
            receive
                .await
                .map_err(|_| failed("the thread of the database is gone"))?
        })
    }

    /// Runs a job for which nobody waits.
    pub(super) fn send(&self, job: impl FnOnce(&mut Database) + Send + 'static) {
        let _ = self.jobs.send(Box::new(job));
    }

    pub async fn check(&self) -> Result<()> {
        self.run(|database| {
            database
                .connection
                .query_row("SELECT last FROM versions", [], |_| Ok(()))
                .map_err(failed)
        })
        .await
    }
}

fn open_database(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Survives the death of any process. A power cut may take back the last transactions, not tear them.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

impl Database {
    /// One step for all processes: the write lock is taken before anything is read.
    pub(super) fn write<T>(
        &mut self,
        step: impl FnOnce(&Transaction<'_>, &Owners, &str) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let done = step(&transaction, &self.owners, &self.boot).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(done)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Called by steps that add rows which end by themselves.
    pub(super) fn sweep_now_and_then(&mut self) {
        self.until_sweep -= 1;
        if self.until_sweep > 0 {
            return;
        }
        self.until_sweep = SWEEP_EACH;
        self.sweep();
    }

    /// Deletes rows whose time is over, and ends what processes held that are gone. If it does not work now, it does the
    /// next time.
    fn sweep(&mut self) {
        let _ = self.write(|transaction, owners, _| {
            let (uptime, wall) = (super::values::uptime(), super::records::wall_clock());
            for (table, time, now) in [("rates", "full_at", uptime), ("records", "until", wall)] {
                let over = format!("SELECT key FROM {table} WHERE {time} <= ?1 LIMIT ?2");
                transaction
                    .prepare_cached(&format!("DELETE FROM {table} WHERE key IN ({over})"))?
                    .execute((now, SWEEP_AT_MOST))?;
            }
            super::values::end_permits_of_the_dead(transaction, owners)?;
            super::records::abandon_those_of_the_dead(transaction, owners)
        });
    }

    /// Rates count the time since the machine was started.
    fn forget_earlier_starts(&mut self) {
        let _ = self.write(|transaction, _, boot| {
            transaction.execute("DELETE FROM rates WHERE boot <> ?1", [boot])
        });
    }
}
