//! An empty database number for each run.
//!
//! Numbers are claimed without writing anything: a connection with a name of ours stands on each
//! that is used, and of two that stand on one, the older has it. A number on which anybody else
//! stands, or that has a key, is left alone. So nothing that was there is ever removed.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use redis::{Client, FromRedisValue, RedisError};
use serde_json::{Map, Value, json};

use super::StoreError;
use super::address::Address;

/// What our connections are called.
const NAME: &str = "toctou-scratch";
/// Keys that are compared.
const MOST_KEYS: usize = 10_000;

pub struct Maker {
    address: Address,
    /// How many databases there are.
    count: i64,
}

pub struct Database {
    number: i64,
    connection: MultiplexedConnection,
}

fn failed(error: &RedisError) -> StoreError {
    StoreError::Server {
        kind: "Redis",
        because: error.to_string(),
    }
}

async fn connect(address: &Address, number: i64) -> Result<MultiplexedConnection, StoreError> {
    // An error may repeat the URL, and the password in it.
    let url = address.with(&number.to_string(), None, &[]);
    let client = Client::open(url).map_err(|_| StoreError::Url)?;
    client
        .get_multiplexed_async_connection()
        .await
        .map_err(|error| failed(&error))
}

async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    words: &[&str],
) -> Result<T, StoreError> {
    let mut command = redis::cmd(words.first().copied().unwrap_or_default());
    for word in words.iter().skip(1) {
        command.arg(*word);
    }
    command
        .query_async(connection)
        .await
        .map_err(|error| failed(&error))
}

impl Maker {
    pub async fn open(address: &Address) -> Result<Self, StoreError> {
        let mut connection = connect(address, 0).await?;
        // A server that does not tell has as many as servers usually have.
        let said: Result<BTreeMap<String, String>, _> =
            ask(&mut connection, &["CONFIG", "GET", "databases"]).await;
        let count = said
            .ok()
            .and_then(|said| said.get("databases")?.parse().ok())
            .unwrap_or(16);
        Ok(Self {
            address: address.clone(),
            count,
        })
    }

    /// The highest that is free: people use the low ones.
    pub async fn make(&self) -> Result<Database, StoreError> {
        for number in (1..self.count).rev() {
            let mut connection = connect(&self.address, number).await?;
            let keys: i64 = ask(&mut connection, &["DBSIZE"]).await?;
            if keys > 0 {
                continue;
            }
            let _: String = ask(&mut connection, &["CLIENT", "SETNAME", NAME]).await?;
            let own: i64 = ask(&mut connection, &["CLIENT", "ID"]).await?;
            let all: String = ask(&mut connection, &["CLIENT", "LIST"]).await?;
            let keys: i64 = ask(&mut connection, &["DBSIZE"]).await?;
            if keys == 0 && is_ours(&all, number, own) {
                return Ok(Database { number, connection });
            }
        }
        Err(StoreError::Full)
    }
}

/// Whether nobody stands on this database, but for younger ones of ours, who will go.
fn is_ours(clients: &str, number: i64, own: i64) -> bool {
    clients.lines().all(|line| {
        let field = |name: &str| {
            line.split_whitespace()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let id: i64 = field("id").and_then(|id| id.parse().ok()).unwrap_or(0);
        let there = field("db") == Some(&number.to_string());
        !there || id == own || (field("name") == Some(NAME) && id > own)
    })
}

impl Database {
    pub fn url(&self, address: &Address, at: Option<(&str, u16)>) -> String {
        address.with(&self.number.to_string(), at, &[])
    }

    /// It was empty when it was taken, so all that is in it came after that.
    pub async fn remove(&self) {
        let mut connection = self.connection.clone();
        let _: Result<String, _> = ask(&mut connection, &["FLUSHDB"]).await;
    }

    pub async fn dump(&self) -> Result<Value, StoreError> {
        let mut connection = self.connection.clone();
        let mut cursor = "0".to_owned();
        let mut keys: Vec<String> = Vec::new();
        loop {
            let (next, some): (String, Vec<Vec<u8>>) =
                ask(&mut connection, &["SCAN", &cursor, "COUNT", "1000"]).await?;
            keys.extend(
                some.iter()
                    .map(|key| String::from_utf8_lossy(key).into_owned()),
            );
            cursor = next;
            if cursor == "0" || keys.len() > MOST_KEYS {
                break;
            }
        }
        keys.sort();
        keys.dedup();
        let mut out = Map::new();
        for key in keys {
            let value = value(&mut connection, &key).await?;
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

async fn value(connection: &mut MultiplexedConnection, key: &str) -> Result<Value, StoreError> {
    let kind: String = ask(connection, &["TYPE", key]).await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(match kind.as_str() {
        "string" => {
            let bytes: Option<Vec<u8>> = ask(connection, &["GET", key]).await?;
            let text = bytes.map(text).unwrap_or_default();
            // Many keep JSON in strings, and a number is one that can be counted with.
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        "hash" => {
            let fields: BTreeMap<Vec<u8>, Vec<u8>> = ask(connection, &["HGETALL", key]).await?;
            fields
                .into_iter()
                .map(|(name, value)| (text(name), json!(text(value))))
                .collect()
        }
        "list" => {
            let items: Vec<Vec<u8>> = ask(connection, &["LRANGE", key, "0", "9999"]).await?;
            items.into_iter().map(text).collect()
        }
        "set" => {
            let items: Vec<Vec<u8>> = ask(connection, &["SMEMBERS", key]).await?;
            let mut items: Vec<String> = items.into_iter().map(text).collect();
            items.sort();
            json!(items)
        }
        "zset" => {
            let items: Vec<Vec<u8>> =
                ask(connection, &["ZRANGE", key, "0", "9999", "WITHSCORES"]).await?;
            items.into_iter().map(text).collect()
        }
        "none" => Value::Null,
        // A stream: its entries have times for ids.
        "stream" => json!({"entries": ask::<i64>(connection, &["XLEN", key]).await?}),
        other => json!(format!("a {other}, which is not looked into")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_the_oldest_of_ours_and_to_nobody_else() {
        let line =
            |id: i64, name: &str, db: i64| format!("id={id} addr=1:2 name={name} db={db} sub=0\n");
        let own = line(7, NAME, 15);
        assert!(is_ours(&own, 15, 7));
        assert!(is_ours(&(own.clone() + &line(8, NAME, 15)), 15, 7));
        assert!(!is_ours(&(own.clone() + &line(6, NAME, 15)), 15, 7));
        assert!(!is_ours(&(own.clone() + &line(9, "app", 15)), 15, 7));
        assert!(is_ours(&(own + &line(9, "app", 1)), 15, 7));
    }
}
