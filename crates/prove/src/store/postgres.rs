//! A scratch database for each run, copied from one that was prepared; a scratch schema where
//! the user may create no databases.
//!
//! What a killed run left is removed by the next one: an advisory lock in the user's database
//! says that a run is alive, and goes with its connection.

use serde_json::{Map, Value};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use super::StoreError;
use super::address::Address;
use crate::canon::text::{self, Words};

/// What all scratch databases and schemas are called: then a run's number, then one's own.
const PREFIX: &str = "toctou_scratch_";
/// Rows of one table that are compared.
const MOST_ROWS: i64 = 10_000;

pub struct Maker {
    address: Address,
    /// Holds the lock of this run.
    admin: Client,
    name: String,
    /// A schema is prepared each time.
    init: Option<String>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Database,
    Schema,
}

pub struct Database {
    kind: Kind,
    name: String,
    address: Address,
}

fn failed(error: &tokio_postgres::Error) -> StoreError {
    let because = match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => error.to_string(),
    };
    StoreError::Server {
        kind: "PostgreSQL",
        because,
    }
}

async fn connect(url: &str) -> Result<Client, StoreError> {
    // An error may repeat the URL, and the password in it.
    let config: Config = url.parse().map_err(|_| StoreError::Url)?;
    let (client, connection) = config
        .connect(NoTls)
        .await
        .map_err(|error| failed(&error))?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

async fn run(client: &Client, sql: &str) -> Result<(), StoreError> {
    client
        .batch_execute(sql)
        .await
        .map_err(|error| failed(&error))
}

impl Maker {
    pub async fn open(address: &Address, init: Option<&str>) -> Result<Self, StoreError> {
        let admin = connect(&address.url).await?;
        let number = fastrand::u32(..);
        let name = format!("{PREFIX}{number:08x}");
        let lock = lock_of(number);
        run(&admin, &format!("SELECT pg_advisory_lock({lock})")).await?;
        sweep(&admin).await?;
        // Everybody's copies are made of it.
        let made = admin
            .batch_execute(&format!("CREATE DATABASE {name}_0"))
            .await;
        let kind = match made {
            Ok(()) => Kind::Database,
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Kind::Schema,
            Err(error) => return Err(failed(&error)),
        };
        let maker = Self {
            address: address.clone(),
            admin,
            name,
            init: init.map(str::to_owned),
            kind,
        };
        if kind == Kind::Database
            && let Some(init) = init
        {
            let template = connect(&address.with(&format!("{}_0", maker.name), None, &[])).await?;
            let prepared = template.batch_execute(init).await;
            if let Err(error) = prepared {
                drop(template);
                maker.clean_up().await;
                return Err(StoreError::Init(failed(&error).to_string()));
            }
        }
        Ok(maker)
    }

    pub fn by_schema(&self) -> bool {
        self.kind == Kind::Schema
    }

    pub async fn make(&self) -> Result<Database, StoreError> {
        let database = Database {
            kind: self.kind,
            name: format!("{}_{:08x}", self.name, fastrand::u32(1..)),
            address: self.address.clone(),
        };
        match self.kind {
            Kind::Database => {
                let sql = format!("CREATE DATABASE {} TEMPLATE {}_0", database.name, self.name);
                run(&self.admin, &sql).await?;
            }
            Kind::Schema => {
                run(&self.admin, &format!("CREATE SCHEMA {}", database.name)).await?;
                if let Some(init) = &self.init {
                    let client = connect(&database.url(&self.address, None)).await?;
                    let prepared = client.batch_execute(init).await;
                    prepared.map_err(|error| StoreError::Init(failed(&error).to_string()))?;
                }
            }
        }
        Ok(database)
    }

    /// What this run has made goes.
    pub async fn clean_up(&self) {
        let _ = remove_all(&self.admin, &self.name).await;
    }
}

/// The lock of a run.
fn lock_of(number: u32) -> i64 {
    0x0070_6f63_0000_0000 | i64::from(number)
}

/// Removes what killed runs left behind.
async fn sweep(admin: &Client) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT datname::text FROM pg_database WHERE datname LIKE '{PREFIX}%' \
         UNION SELECT nspname::text FROM pg_namespace WHERE nspname LIKE '{PREFIX}%'"
    );
    let rows = admin
        .query(&sql, &[])
        .await
        .map_err(|error| failed(&error))?;
    for row in rows {
        let name: String = row.get(0);
        let number = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.get(..8))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let Some(number) = number else { continue };
        let lock = lock_of(number);
        let ours = admin
            .query_one("SELECT pg_try_advisory_lock($1)", &[&lock])
            .await
            .map_err(|error| failed(&error))?;
        if ours.get(0) {
            // Somebody else's databases cannot be removed, and need not be.
            let _ = remove_all(admin, &format!("{PREFIX}{number:08x}")).await;
            let _ = run(admin, &format!("SELECT pg_advisory_unlock({lock})")).await;
        }
    }
    Ok(())
}

/// All databases and schemas whose names begin so: made of letters and digits here.
async fn remove_all(admin: &Client, start: &str) -> Result<(), StoreError> {
    for (list, remove) in [
        (
            "SELECT datname::text FROM pg_database WHERE datname LIKE $1",
            "DROP DATABASE IF EXISTS {} WITH (FORCE)",
        ),
        (
            "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE $1",
            "DROP SCHEMA IF EXISTS {} CASCADE",
        ),
    ] {
        let rows = admin
            .query(list, &[&format!("{start}%")])
            .await
            .map_err(|error| failed(&error))?;
        for row in rows {
            let name: String = row.get(0);
            run(admin, &remove.replace("{}", &quoted(&name))).await?;
        }
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Database {
    pub fn url(&self, address: &Address, at: Option<(&str, u16)>) -> String {
        match self.kind {
            Kind::Database => address.with(&self.name, at, &[]),
            Kind::Schema => {
                let path = format!("options=-c%20search_path%3D{}", self.name);
                address.with(address.path(), at, &[path])
            }
        }
    }

    pub async fn remove(&self) {
        let Ok(admin) = connect(&self.address.url).await else {
            return;
        };
        let sql = match self.kind {
            Kind::Database => format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
            Kind::Schema => format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name),
        };
        let _ = run(&admin, &sql).await;
    }

    /// All rows of all tables, in an order that does not depend on when they were written.
    pub async fn dump(&self) -> Result<Value, StoreError> {
        let client = connect(&self.url(&self.address, None)).await?;
        run(&client, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let of = match self.kind {
            Kind::Database => "NOT IN ('pg_catalog', 'information_schema')".to_owned(),
            Kind::Schema => format!("= '{}'", self.name),
        };
        let list = format!(
            "SELECT table_schema::text, table_name::text FROM information_schema.tables \
             WHERE table_type = 'BASE TABLE' AND table_schema {of} ORDER BY 1, 2"
        );
        let tables = client
            .query(&list, &[])
            .await
            .map_err(|error| failed(&error))?;
        let now = jiff::Timestamp::now().as_second();
        let mut out = Map::new();
        for table in tables {
            let (schema, name): (String, String) = (table.get(0), table.get(1));
            let sql = format!(
                "SELECT to_jsonb(t)::text FROM {}.{} t ORDER BY 1 LIMIT {MOST_ROWS}",
                quoted(&schema),
                quoted(&name)
            );
            let rows = client
                .query(&sql, &[])
                .await
                .map_err(|error| failed(&error))?;
            let mut rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            // Made-up ids and times must not decide which row comes first.
            rows.sort_by_cached_key(|row| text::settle(row, &Words::default(), now, None));
            let rows = rows
                .into_iter()
                .map(|row| serde_json::from_str(&row).unwrap_or(Value::String(row)));
            let plain = schema == "public" || self.kind == Kind::Schema;
            let name = if plain {
                name
            } else {
                format!("{schema}.{name}")
            };
            out.insert(name, rows.collect());
        }
        Ok(Value::Object(out))
    }
}
