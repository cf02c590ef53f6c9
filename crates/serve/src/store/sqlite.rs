//! One file, one process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::{Result, SCHEMA, StoreError, Value};

const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

pub(crate) struct Sqlite {
    connection: Arc<Mutex<Connection>>,
    /// Held as long as the store is open: a second process would think that
    /// the jobs of the first are left over.
    _alone: File,
}

impl Sqlite {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            StoreError::Open(format!("{}: {error}", path.display()))
        };
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        let mut lock: PathBuf = path.to_owned();
        lock.as_mut_os_string().push(".lock");
        let alone = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(lock)
            .map_err(|error| failed(&error))?;
        alone
            .try_lock()
            .map_err(|_| failed(&"another toctou serve uses it"))?;
        let connection = Connection::open(path).map_err(|error| failed(&error))?;
        let set_up = || -> rusqlite::Result<()> {
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.pragma_update(None, "secure_delete", "fast")?;
            connection.execute_batch(
                &SCHEMA
                    .replace("{number}", "INTEGER PRIMARY KEY AUTOINCREMENT")
                    .replace("{bytes}", "BLOB"),
            )?;
            // What ran when the last process ended is free at once.
            connection.execute_batch("UPDATE jobs SET lease = 0 WHERE state = 'running'")
        };
        set_up().map_err(|error| failed(&error))?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            _alone: alone,
        })
    }

    pub(crate) async fn rows(
        &self,
        statement: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>> {
        let statement = statement.replace("{now}", NOW).replace("{skip}", "");
        let connection = Arc::clone(&self.connection);
        let work = move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let mut prepared = connection.prepare_cached(&statement)?;
            let columns = prepared.column_count();
            let mut rows = prepared.query(rusqlite::params_from_iter(values))?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let row: rusqlite::Result<Vec<Value>> = (0..columns)
                    .map(|index| {
                        Ok(match row.get_ref(index)? {
                            ValueRef::Integer(number) => Value::Int(number),
                            ValueRef::Text(text) => {
                                Value::Text(String::from_utf8_lossy(text).into_owned())
                            }
                            ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                            ValueRef::Null | ValueRef::Real(_) => Value::Null,
                        })
                    })
                    .collect();
                all.push(row?);
            }
            Ok(all)
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| StoreError::Failed(error.to_string()))?
            .map_err(|error: rusqlite::Error| StoreError::Failed(error.to_string()))
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
