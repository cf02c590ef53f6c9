//! Jobs and their reports, in a SQLite file or a PostgreSQL database.
//!
//! The table is the queue. A worker claims the oldest job that is free, which
//! gives it a lease and a fence, a number that grows with every claim. It renews
//! the lease while it works. A job whose lease ran out is free again, and its
//! next worker has a higher fence: what the first one still says after that is
//! refused. So a job that is accepted is finished once, whoever dies.
//!
//! Both databases run the same statements, each of them atomic by itself.

mod job;
mod postgres;
mod sqlite;

use std::path::Path;
use std::time::Duration;

use thiserror::Error;

pub(crate) use job::Value;
pub use job::{Claim, Format, Job, NewJob, Outcome, Report, State};

/// A job that ended its workers this often is the reason.
pub const MOST_ATTEMPTS: i64 = 3;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the store cannot be opened: {0}")]
    Open(String),
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    #[error("the store failed: {0}")]
    Failed(String),
}

pub type Result<T> = std::result::Result<T, StoreError>;

enum Db {
    Sqlite(sqlite::Sqlite),
    Postgres(Box<postgres::Postgres>),
}

pub struct Store {
    db: Db,
}

const JOB: &str = "number, id, source, is_upload, state, progress, error, grade, score, findings, revision, created, finished";

impl Store {
    /// A path, or `postgres://…`.
    ///
    /// # Errors
    ///
    /// When the file or the database cannot be used.
    pub async fn open(address: &str) -> Result<Self> {
        let db = if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            Db::Postgres(Box::new(postgres::Postgres::connect(address).await?))
        } else {
            Db::Sqlite(sqlite::Sqlite::open(Path::new(address))?)
        };
        Ok(Self { db })
    }

    /// True if several processes can share it.
    pub fn is_shared(&self) -> bool {
        matches!(self.db, Db::Postgres(_))
    }

    /// In a statement, `{now}` is the database's clock in milliseconds, and
    /// `{skip}` makes workers pass over what others are taking.
    async fn rows(&self, statement: &str, values: Vec<Value>) -> Result<Vec<Vec<Value>>> {
        match &self.db {
            Db::Sqlite(db) => db.rows(statement, values).await,
            Db::Postgres(db) => db.rows(statement, values).await,
        }
    }

    /// Is it there?
    pub async fn check(&self) -> Result<()> {
        self.rows("SELECT 1", Vec::new()).await.map(|_| ())
    }

    /// Puts a job into the queue. To say it twice changes nothing.
    pub async fn submit(&self, job: NewJob) -> Result<()> {
        let is_upload = i64::from(job.upload.is_some());
        let values = vec![
            Value::Text(job.id),
            Value::Text(job.source),
            Value::Int(is_upload),
            job.upload.map_or(Value::Null, Value::Bytes),
            Value::Text(job.caller),
        ];
        self.rows(
            "INSERT INTO jobs (id, source, is_upload, upload, caller, created) VALUES ($1, $2, $3, $4, $5, {now}) ON CONFLICT (id) DO NOTHING",
            values,
        )
        .await
        .map(|_| ())
    }

    /// How many jobs of a caller are not over.
    pub async fn pending(&self, caller: &str) -> Result<i64> {
        let rows = self
            .rows(
                "SELECT COUNT(*) FROM jobs WHERE caller = $1 AND state IN ('queued', 'running')",
                vec![caller.into()],
            )
            .await?;
        Ok(first(&rows).map_or(0, Value::int))
    }

    /// Takes the oldest job that is free.
    pub async fn claim(&self, lease: Duration) -> Result<Option<Claim>> {
        let mut rows = self
            .rows(
                "UPDATE jobs SET state = 'running', fence = fence + 1, attempts = attempts + 1, lease = {now} + $1, progress = 'started'
                 WHERE number = (SELECT number FROM jobs
                   WHERE (state = 'queued' OR (state = 'running' AND lease < {now})) AND attempts < $2
                   ORDER BY number LIMIT 1 {skip})
                 RETURNING id, fence, source, upload",
                vec![millis(lease), MOST_ATTEMPTS.into()],
            )
            .await?;
        let Some(row) = rows.pop() else {
            self.give_up().await?;
            return Ok(None);
        };
        let mut row = row.into_iter();
        let mut next = || row.next().unwrap_or(Value::Null);
        Ok(Some(Claim {
            id: next().text(),
            fence: next().int(),
            source: next().text(),
            upload: next().bytes(),
        }))
    }

    /// Ends jobs that ended all their workers.
    async fn give_up(&self) -> Result<()> {
        self.rows(
            "UPDATE jobs SET state = 'failed', upload = NULL, finished = {now}, error = 'every worker that tried it stopped in the middle'
             WHERE state = 'running' AND lease < {now} AND attempts >= $1",
            vec![MOST_ATTEMPTS.into()],
        )
        .await
        .map(|_| ())
    }

    /// Renews the lease. False if the job is somebody else's now.
    pub async fn beat(
        &self,
        id: &str,
        fence: i64,
        lease: Duration,
        progress: &str,
    ) -> Result<bool> {
        let rows = self
            .rows(
                "UPDATE jobs SET lease = {now} + $1, progress = $2 WHERE id = $3 AND fence = $4 AND state = 'running' RETURNING id",
                vec![millis(lease), progress.into(), id.into(), fence.into()],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    /// Gives a job back, as if it had not been claimed.
    pub async fn release(&self, id: &str, fence: i64) -> Result<()> {
        self.rows(
            "UPDATE jobs SET state = 'queued', attempts = attempts - 1, progress = '' WHERE id = $1 AND fence = $2 AND state = 'running'",
            vec![id.into(), fence.into()],
        )
        .await
        .map(|_| ())
    }

    /// Ends a job. False if it is somebody else's now; then nothing is changed.
    pub async fn finish(&self, id: &str, fence: i64, outcome: &Outcome) -> Result<bool> {
        let rows = match outcome {
            Outcome::Done(report) => {
                let values = vec![
                    report.grade.as_str().into(),
                    report.score.into(),
                    report.findings.into(),
                    report.revision.as_deref().map_or(Value::Null, Value::from),
                    Value::Bytes(report.json.clone()),
                    Value::Bytes(report.html.clone()),
                    report.policy.as_str().into(),
                    id.into(),
                    fence.into(),
                ];
                self.rows(
                    "UPDATE jobs SET state = 'done', upload = NULL, finished = {now}, progress = 'done', grade = $1, score = $2, findings = $3, revision = $4, json = $5, html = $6, policy = $7
                     WHERE id = $8 AND fence = $9 AND state = 'running' RETURNING id",
                    values,
                )
                .await?
            }
            Outcome::Failed(error) => {
                self.rows(
                    "UPDATE jobs SET state = 'failed', upload = NULL, finished = {now}, progress = 'failed', error = $1
                     WHERE id = $2 AND fence = $3 AND state = 'running' RETURNING id",
                    vec![error.as_str().into(), id.into(), fence.into()],
                )
                .await?
            }
        };
        if !rows.is_empty() {
            return Ok(true);
        }
        // Said before, and the answer got lost?
        let rows = self
            .rows(
                "SELECT id FROM jobs WHERE id = $1 AND fence = $2 AND state IN ('done', 'failed')",
                vec![id.into(), fence.into()],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    pub async fn job(&self, id: &str) -> Result<Option<Job>> {
        let statement = format!("SELECT {JOB} FROM jobs WHERE id = $1");
        let rows = self.rows(&statement, vec![id.into()]).await?;
        Ok(rows.first().map(|row| job(row)))
    }

    /// The newest scans of addresses, from before a number; all of them, or those with a report.
    pub async fn recent(&self, before: i64, most: i64, all: bool) -> Result<Vec<Job>> {
        let which = if all { "" } else { "AND state = 'done'" };
        let statement = format!(
            "SELECT {JOB} FROM jobs WHERE is_upload = 0 AND number < $1 {which} ORDER BY number DESC LIMIT $2"
        );
        let rows = self
            .rows(&statement, vec![before.into(), most.into()])
            .await?;
        Ok(rows.iter().map(|row| job(row)).collect())
    }

    /// The newest report of an address.
    pub async fn latest(&self, source: &str) -> Result<Option<Job>> {
        let statement = format!(
            "SELECT {JOB} FROM jobs WHERE is_upload = 0 AND source = $1 AND state = 'done' ORDER BY number DESC LIMIT 1"
        );
        let rows = self.rows(&statement, vec![source.into()]).await?;
        Ok(rows.first().map(|row| job(row)))
    }

    /// The report, gzipped, and its policy.
    pub async fn report(&self, id: &str, format: Format) -> Result<Option<(Vec<u8>, String)>> {
        let statement = match format {
            Format::Json => "SELECT json, policy FROM jobs WHERE id = $1 AND state = 'done'",
            Format::Html => "SELECT html, policy FROM jobs WHERE id = $1 AND state = 'done'",
        };
        let mut rows = self.rows(statement, vec![id.into()]).await?;
        let mut row = rows.pop().unwrap_or_default().into_iter();
        let bytes = row.next().and_then(Value::bytes);
        let policy = row.next().map_or_else(String::new, |policy| policy.text());
        Ok(bytes.map(|bytes| (bytes, policy)))
    }

    /// Keeps this many jobs that are over, the newest.
    pub async fn prune(&self, keep: i64) -> Result<()> {
        self.rows(
            "DELETE FROM jobs WHERE state IN ('done', 'failed') AND number <= (SELECT COALESCE(MAX(number), 0) FROM jobs) - $1",
            vec![keep.into()],
        )
        .await
        .map(|_| ())
    }
}

fn first(rows: &[Vec<Value>]) -> Option<&Value> {
    rows.first().and_then(|row| row.first())
}

fn millis(time: Duration) -> Value {
    Value::Int(i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4))
}

fn job(row: &[Value]) -> Job {
    let at = |index: usize| row.get(index).unwrap_or(&Value::Null);
    Job {
        number: at(0).int(),
        id: at(1).text(),
        source: at(2).text(),
        is_upload: at(3).int() != 0,
        state: State::parse(&at(4).text()),
        progress: at(5).text(),
        error: at(6).some_text(),
        grade: at(7).some_text(),
        score: at(8).some_int(),
        findings: at(9).some_int(),
        revision: at(10).some_text(),
        created: at(11).int(),
        finished: at(12).some_int(),
    }
}

/// The table, in the words of both; `{number}` and `{bytes}` are their types.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS jobs (
  number {number},
  id TEXT NOT NULL UNIQUE,
  source TEXT NOT NULL,
  is_upload BIGINT NOT NULL,
  upload {bytes},
  caller TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'queued',
  fence BIGINT NOT NULL DEFAULT 0,
  attempts BIGINT NOT NULL DEFAULT 0,
  lease BIGINT NOT NULL DEFAULT 0,
  progress TEXT NOT NULL DEFAULT '',
  error TEXT,
  grade TEXT,
  score BIGINT,
  findings BIGINT,
  revision TEXT,
  created BIGINT NOT NULL,
  finished BIGINT,
  json {bytes},
  html {bytes},
  policy TEXT
);
CREATE INDEX IF NOT EXISTS jobs_waiting ON jobs (number) WHERE state IN ('queued', 'running');
CREATE INDEX IF NOT EXISTS jobs_of_caller ON jobs (caller) WHERE state IN ('queued', 'running');
CREATE INDEX IF NOT EXISTS jobs_by_source ON jobs (source, number);
";

#[cfg(test)]
mod tests;
