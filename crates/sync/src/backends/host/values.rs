//! Permits, rates and cells in the database.

use rusqlite::{OptionalExtension, Transaction, params};

use super::owners::Owners;
use super::store::Store;
use crate::backends::remote::Id;
use crate::lock::Release;
use crate::rate::Microseconds;
use crate::{BoxFuture, Decision, Fence, Result, Swap, Version, Versioned};

/// Microseconds since the machine was started, asleep or not: the same for all processes, and nobody can set it.
pub fn uptime() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// A row in the table of permits.
pub struct PermitRow {
    store: Store,
    id: i64,
    given_back: bool,
}

fn delete_permit(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    transaction
        .execute("DELETE FROM permits WHERE id = ?1", [id])
        .map(|_| ())
}

impl Release for PermitRow {
    fn release(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.given_back = true;
        let id = self.id;
        self.store
            .run(move |database| database.write(|t, _, _| delete_permit(t, id)))
    }
}

impl Drop for PermitRow {
    fn drop(&mut self) {
        if !self.given_back {
            let id = self.id;
            self.store.send(move |database| {
                let _ = database.write(|t, _, _| delete_permit(t, id));
            });
        }
    }
}

fn running(transaction: &Transaction<'_>, caller: &Id) -> rusqlite::Result<u32> {
    transaction
        .prepare_cached("SELECT count(*) FROM permits WHERE caller = ?1")?
        .query_row([caller], |row| row.get(0))
}

fn end_permits(transaction: &Transaction<'_>, dead: &[i64]) -> rusqlite::Result<()> {
    for owner in dead {
        transaction.execute("DELETE FROM permits WHERE owner = ?1", [owner])?;
    }
    Ok(())
}

pub fn end_permits_of_the_dead(
    transaction: &Transaction<'_>,
    owners: &Owners,
) -> rusqlite::Result<()> {
    let all = transaction.prepare_cached("SELECT DISTINCT owner FROM permits")?;
    end_permits(transaction, &owners.dead(all, [])?)
}

impl Store {
    pub async fn permit(&self, caller: Id, limit: u32) -> Result<Option<PermitRow>> {
        let store = self.clone();
        self.run(move |database| {
            let id = database.write(|transaction, owners, _| {
                if running(transaction, &caller)? >= limit {
                    let owned = transaction
                        .prepare_cached("SELECT DISTINCT owner FROM permits WHERE caller = ?1")?;
                    end_permits(transaction, &owners.dead(owned, [caller])?)?;
                    if running(transaction, &caller)? >= limit {
                        return Ok(None);
                    }
                }
                transaction
                    .prepare_cached("INSERT INTO permits (caller, owner) VALUES (?1, ?2)")?
                    .execute(params![caller, owners.me()])?;
                Ok(Some(transaction.last_insert_rowid()))
            })?;
            Ok(id.map(|id| PermitRow {
                store,
                id,
                given_back: false,
            }))
        })
        .await
    }

    pub async fn take(&self, key: Id, quota: Microseconds) -> Result<Decision> {
        self.run(move |database| {
            let decision = database.write(|transaction, _, boot| {
                let now = uptime();
                let stored: Option<i64> = transaction
                    .prepare_cached("SELECT full_at FROM rates WHERE key = ?1 AND boot = ?2")?
                    .query_row(params![key, boot], |row| row.get(0))
                    .optional()?;
                let (decision, next) =
                    quota.decide(stored.map(i64::unsigned_abs), now.unsigned_abs());
                if let Some(next) = next {
                    transaction
                        .prepare_cached(
                            "REPLACE INTO rates (key, boot, full_at) VALUES (?1, ?2, ?3)",
                        )?
                        .execute(params![key, boot, i64::try_from(next).unwrap_or(i64::MAX)])?;
                }
                Ok(decision)
            })?;
            database.sweep_now_and_then();
            Ok(decision)
        })
        .await
    }

    pub async fn read(&self, key: Id) -> Result<Option<Versioned>> {
        self.run(move |database| value(database.connection(), &key).map_err(super::failed))
            .await
    }

    pub async fn compare_and_swap(
        &self,
        key: Id,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap> {
        self.run(move |database| {
            database.write(|transaction, _, _| {
                let current = self::value(transaction, &key)?;
                if current.as_ref().map(|current| current.version) != expected {
                    return Ok(Swap::Conflict(current));
                }
                let Some(value) = value else {
                    // Its fence stays, or a late write would get through.
                    transaction.execute(
                        "UPDATE cells SET value = NULL, version = NULL WHERE key = ?1",
                        [key],
                    )?;
                    transaction
                        .execute("DELETE FROM cells WHERE key = ?1 AND fence IS NULL", [key])?;
                    return Ok(Swap::Done(None));
                };
                let version = next_version(transaction)?;
                write(transaction, &key, &value, version, None)?;
                Ok(Swap::Done(Some(version)))
            })
        })
        .await
    }

    pub async fn write_fenced(
        &self,
        key: Id,
        fence: Fence,
        value: Vec<u8>,
    ) -> Result<Result<Version, Fence>> {
        self.run(move |database| {
            database.write(|transaction, _, _| {
                let seen: Option<i64> = transaction
                    .prepare_cached("SELECT fence FROM cells WHERE key = ?1")?
                    .query_row([key], |row| row.get(0))
                    .optional()?
                    .flatten();
                if let Some(seen) = seen.map(|seen| Fence::new(seen.unsigned_abs()))
                    && seen > fence
                {
                    return Ok(Err(seen));
                }
                let version = next_version(transaction)?;
                write(transaction, &key, &value, version, Some(fence))?;
                Ok(Ok(version))
            })
        })
        .await
    }
}

fn value(connection: &rusqlite::Connection, key: &Id) -> rusqlite::Result<Option<Versioned>> {
    connection
        .prepare_cached("SELECT value, version FROM cells WHERE key = ?1 AND version IS NOT NULL")?
        .query_row([key], |row| {
            let version = Version::new(row.get::<_, i64>(1)?.unsigned_abs());
            Ok(Versioned {
                value: row.get(0)?,
                version,
            })
        })
        .optional()
}

fn next_version(transaction: &Transaction<'_>) -> rusqlite::Result<Version> {
    let last: i64 = transaction
        .prepare_cached("UPDATE versions SET last = last + 1 RETURNING last")?
        .query_row([], |row| row.get(0))?;
    Ok(Version::new(last.unsigned_abs()))
}

fn write(
    transaction: &Transaction<'_>,
    key: &Id,
    value: &[u8],
    version: Version,
    fence: Option<Fence>,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO cells (key, value, version, fence) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO UPDATE
             SET value = excluded.value, version = excluded.version, fence = coalesce(excluded.fence, fence)",
        )?
        .execute(params![
            key,
            value,
            i64::try_from(version.get()).unwrap_or(i64::MAX),
            fence.map(|fence| i64::try_from(fence.get()).unwrap_or(i64::MAX))
        ])
        .map(|_| ())
}
