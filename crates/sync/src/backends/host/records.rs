//! Idempotency records in the database.

use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Transaction, params};

use super::owners::Owners;
use super::store::Store;
use crate::backends::remote::{Id, RemoteBegin};
use crate::idempotency::{Finish, Outcome};
use crate::local::shim::lock;
use crate::{BoxFuture, Result};

const RUNNING: i64 = 0;
const UNKNOWN: i64 = 1;
const DONE: i64 = 2;

/// Never reached by the clock: what runs does not end by itself.
const NEVER: i64 = i64::MAX;

/// Microseconds since 1970. Records outlive a reboot, so they need a clock that does.
pub fn wall_clock() -> i64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    micros(now)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(NEVER / 4)
}

struct Row {
    arguments: Vec<u8>,
    state: i64,
    owner: i64,
    ticket: i64,
    until: i64,
    result: Option<Vec<u8>>,
}

fn row(transaction: &Transaction<'_>, key: &Id) -> rusqlite::Result<Option<Row>> {
    transaction
        .prepare_cached(
            "SELECT arguments, state, owner, ticket, until, result FROM records WHERE key = ?1",
        )?
        .query_row([key], |row| {
            Ok(Row {
                arguments: row.get(0)?,
                state: row.get(1)?,
                owner: row.get(2)?,
                ticket: row.get(3)?,
                until: row.get(4)?,
                result: row.get(5)?,
            })
        })
        .optional()
}

/// Marks a record whose owner is gone.
fn abandon(transaction: &Transaction<'_>, key: &Id, ticket: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE records SET state = ?3, until = ?4 + keep WHERE key = ?1 AND ticket = ?2 AND state = ?5")?
        .execute(params![key, ticket, UNKNOWN, wall_clock(), RUNNING])
        .map(|_| ())
}

/// What nobody asks about again would otherwise stay for ever.
pub fn abandon_those_of_the_dead(
    transaction: &Transaction<'_>,
    owners: &Owners,
) -> rusqlite::Result<()> {
    let running =
        transaction.prepare_cached("SELECT DISTINCT owner FROM records WHERE state = 0")?;
    for owner in owners.dead(running, [])? {
        transaction
            .prepare_cached(
                "UPDATE records SET state = ?2, until = ?3 + keep WHERE owner = ?1 AND state = 0",
            )?
            .execute(params![owner, UNKNOWN, wall_clock()])?;
    }
    Ok(())
}

fn end(
    transaction: &Transaction<'_>,
    key: &Id,
    ticket: i64,
    outcome: &Outcome,
) -> rusqlite::Result<()> {
    match outcome {
        Outcome::NotRun => {
            transaction.execute(
                "DELETE FROM records WHERE key = ?1 AND ticket = ?2",
                params![key, ticket],
            )?;
        }
        Outcome::Done(result) => {
            transaction
                .prepare_cached("UPDATE records SET state = ?3, until = ?4 + keep, result = ?5 WHERE key = ?1 AND ticket = ?2")?
                .execute(params![key, ticket, DONE, wall_clock(), result])?;
        }
    }
    Ok(())
}

impl Store {
    pub async fn begin(&self, key: Id, arguments: Id, keep: Duration) -> Result<RemoteBegin> {
        let store = self.clone();
        self.run(move |database| {
            let ticket = fastrand::i64(1..);
            // Before the row is there, so that nobody takes it for abandoned; taken out again below if it is not made.
            let running = Running { store: store.clone(), key, ticket, running: false, ended: false };
            lock(&store.tickets).insert(ticket);
            let begin = database.write(|transaction, owners, _| {
                let mut found = row(transaction, &key)?;
                if let Some(row) = found.as_mut().filter(|row| row.state == RUNNING) {
                    let alive = match row.owner == owners.me() {
                        true => lock(&store.tickets).contains(&row.ticket),
                        // What cannot be found out counts as alive.
                        false => owners.is_alive(row.owner).unwrap_or(true),
                    };
                    if !alive {
                        abandon(transaction, &key, row.ticket)?;
                        (row.state, row.until) = (UNKNOWN, NEVER);
                    }
                }
                Ok(match found.filter(|row| row.until > wall_clock()) {
                    Some(row) if row.arguments != arguments => Some(RemoteBegin::OtherArguments),
                    Some(row) if row.state == RUNNING => Some(RemoteBegin::InFlight),
                    Some(Row { state: DONE, result, .. }) => {
                        Some(RemoteBegin::Replay(result.unwrap_or_default()))
                    }
                    Some(_) => Some(RemoteBegin::Unknown),
                    None => {
                        transaction
                            .prepare_cached(
                                "REPLACE INTO records (key, arguments, state, owner, ticket, keep, until)
                                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                            )?
                            .execute(params![key, arguments, RUNNING, owners.me(), ticket, micros(keep), NEVER])?;
                        None
                    }
                })
            });
            match begin {
                Ok(Some(begin)) => {
                    running.was_not_made();
                    Ok(begin)
                }
                Ok(None) => {
                    database.sweep_now_and_then();
                    Ok(RemoteBegin::First(Box::new(running)))
                }
                // Whether the row is there is not known. Dropped here, it is taken out if it is.
                Err(error) => Err(error),
            }
        })
        .await
    }

    pub async fn settle(&self, key: Id, result: Option<Vec<u8>>) -> Result<bool> {
        self.run(move |database| {
            database.write(|transaction, owners, _| {
                let Some(row) = row(transaction, &key)? else {
                    return Ok(false);
                };
                let abandoned = row.state == RUNNING && !owners.is_alive(row.owner).unwrap_or(true);
                if row.state != UNKNOWN && !abandoned {
                    return Ok(false);
                }
                let outcome = result.map_or(Outcome::NotRun, Outcome::Done);
                end(transaction, &key, row.ticket, &outcome).map(|()| true)
            })
        })
        .await
    }
}

/// The row of a call that runs here.
struct Running {
    store: Store,
    key: Id,
    ticket: i64,
    /// The caller knows that it may run.
    running: bool,
    ended: bool,
}

impl Running {
    fn was_not_made(mut self) {
        self.ended = true;
        lock(&self.store.tickets).remove(&self.ticket);
    }
}

impl Finish for Running {
    fn hand_over(&mut self) {
        self.running = true;
    }

    fn finish(mut self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, Result<()>> {
        self.ended = true;
        let (store, key, ticket) = (self.store.clone(), self.key, self.ticket);
        self.store.run(move |database| {
            let ended =
                database.write(|transaction, _, _| end(transaction, &key, ticket, &outcome));
            lock(&store.tickets).remove(&ticket);
            ended
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (key, ticket, running) = (self.key, self.ticket, self.running);
        lock(&self.store.tickets).remove(&ticket);
        self.store.send(move |database| {
            let _ = database.write(|transaction, _, _| match running {
                true => abandon(transaction, &key, ticket),
                false => end(transaction, &key, ticket, &Outcome::NotRun),
            });
        });
    }
}
