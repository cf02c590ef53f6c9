//! One database, any number of processes. A connection that breaks is made
//! anew by the next who needs it.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use toctou_tls::postgres::Tls;
use tokio::sync::Mutex;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Client, Config};

use super::{Result, SCHEMA, StoreError, Value};

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// One who is silent for longer is gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Makes the schema one after the other: `IF NOT EXISTS` alone is no lock.
const SCHEMA_LOCK: i64 = 0x746f_6374_6f75;

pub(crate) struct Postgres {
    config: Config,
    tls: Tls,
    client: Mutex<Option<Arc<Client>>>,
}

impl Postgres {
    pub(crate) async fn connect(address: &str) -> Result<Self> {
        let (mut config, tls) = toctou_tls::postgres::parse(address)
            .map_err(|error| StoreError::Open(error.to_string()))?;
        config
            .application_name("toctou serve")
            .connect_timeout(Duration::from_secs(5));
        let store = Self {
            config,
            tls,
            client: Mutex::new(None),
        };
        let client = store
            .client()
            .await
            .map_err(|error| StoreError::Open(error.to_string()))?;
        let schema = SCHEMA
            .replace("{number}", "BIGSERIAL PRIMARY KEY")
            .replace("{bytes}", "BYTEA");
        let schema = format!(
            "BEGIN; SELECT pg_advisory_xact_lock({SCHEMA_LOCK}); CREATE SCHEMA IF NOT EXISTS toctou_serve; {schema} COMMIT;"
        );
        client
            .batch_execute(&schema)
            .await
            .map_err(|error| StoreError::Open(told(&error)))?;
        Ok(store)
    }

    async fn client(&self) -> Result<Arc<Client>> {
        let mut slot = self.client.lock().await;
        if let Some(client) = slot.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let (client, connection) = self
            .config
            .connect(self.tls.clone())
            .await
            .map_err(|error| StoreError::Unavailable(told(&error)))?;
        tokio::spawn(connection);
        client
            .batch_execute("SET search_path = toctou_serve")
            .await
            .map_err(|error| StoreError::Unavailable(told(&error)))?;
        let client = Arc::new(client);
        *slot = Some(Arc::clone(&client));
        Ok(client)
    }

    /// Every statement can be said twice, so a broken connection is tried once more.
    pub(crate) async fn rows(
        &self,
        statement: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>> {
        let statement = statement
            .replace("{now}", NOW)
            .replace("{skip}", "FOR UPDATE SKIP LOCKED");
        match self.try_rows(&statement, &values).await {
            Err(StoreError::Unavailable(_)) => self.try_rows(&statement, &values).await,
            other => other,
        }
    }

    async fn try_rows(&self, statement: &str, values: &[Value]) -> Result<Vec<Vec<Value>>> {
        let client = self.client().await?;
        let given: Vec<&(dyn ToSql + Sync)> = values
            .iter()
            .map(|value| value as &(dyn ToSql + Sync))
            .collect();
        let asked = tokio::time::timeout(ANSWER_WITHIN, client.query(statement, &given)).await;
        let rows = match asked {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) if client.is_closed() || error.is_closed() || is_ending(&error) => {
                self.forget(&client).await;
                return Err(StoreError::Unavailable(told(&error)));
            }
            Ok(Err(error)) => return Err(StoreError::Failed(told(&error))),
            Err(_) => {
                self.forget(&client).await;
                return Err(StoreError::Unavailable("no answer in time".to_owned()));
            }
        };
        let read =
            |row: &tokio_postgres::Row| -> std::result::Result<Vec<Value>, tokio_postgres::Error> {
                let columns = row.columns().iter().enumerate();
                columns
                    .map(|(index, column)| {
                        Ok(match *column.type_() {
                            Type::INT8 => row
                                .try_get::<_, Option<i64>>(index)?
                                .map_or(Value::Null, Value::Int),
                            Type::TEXT => row
                                .try_get::<_, Option<String>>(index)?
                                .map_or(Value::Null, Value::Text),
                            Type::BYTEA => row
                                .try_get::<_, Option<Vec<u8>>>(index)?
                                .map_or(Value::Null, Value::Bytes),
                            _ => Value::Null,
                        })
                    })
                    .collect()
            };
        rows.iter()
            .map(|row| read(row).map_err(|error| StoreError::Failed(told(&error))))
            .collect()
    }

    /// The next one connects anew.
    async fn forget(&self, broken: &Arc<Client>) {
        let mut slot = self.client.lock().await;
        if slot
            .as_ref()
            .is_some_and(|client| Arc::ptr_eq(client, broken))
        {
            *slot = None;
        }
    }
}

/// The server shuts down or starts: it will be back.
fn is_ending(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| code.code().starts_with("57P"))
}

/// The library's own words say only that something failed.
fn told(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => number.to_sql(kind, out),
            // A zero is no character to PostgreSQL.
            Self::Text(text) if text.contains('\0') => text.replace('\0', "").to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::TEXT | Type::BYTEA)
    }

    tokio_postgres::types::to_sql_checked!();
}
