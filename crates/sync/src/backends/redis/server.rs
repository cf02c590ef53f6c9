//! The connection and the scripts.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{FromRedisValue, Script};
use tokio::runtime::Handle;

use super::claims::Claims;
use crate::{Error, Result};

pub struct Server {
    connection: ConnectionManager,
    pub prefix: String,
    pub lease: Duration,
    pub claims: Claims,
    pub runtime: Handle,
}

/// No answer in this time is a failure.
const ANSWER: Duration = Duration::from_secs(2);

macro_rules! scripts {
    ($($name:ident = $file:literal;)*) => {
        $(pub static $name: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!($file)));)*
    };
}

scripts! {
    LOCK = "lua/lock.lua";
    PERMIT = "lua/permit.lua";
    RENEW = "lua/renew.lua";
    RELEASE = "lua/release.lua";
    TAKE = "lua/take.lua";
    SWAP = "lua/swap.lua";
    WRITE = "lua/write.lua";
    BEGIN = "lua/begin.lua";
    FINISH = "lua/finish.lua";
}

pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::unavailable("redis", error)
}

/// Milliseconds, at least one and at most ten years.
pub fn milliseconds(time: Duration) -> u64 {
    const TEN_YEARS: u64 = 10 * 366 * 24 * 3600 * 1000;
    u64::try_from(time.as_millis())
        .unwrap_or(TEN_YEARS)
        .clamp(1, TEN_YEARS)
}

impl Server {
    pub async fn connect(url: &str, prefix: String, lease: Duration) -> Result<Self> {
        // What the client says of a URL that it does not understand may repeat it, and the password with it.
        let client = redis::Client::open(url)
            .map_err(|_| Error::Invalid("not a Redis URL that can be used here".into()))?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(ANSWER))
            .set_connection_timeout(Some(ANSWER))
            .set_number_of_retries(2)
            .set_max_delay(Duration::from_millis(200));
        let connection = ConnectionManager::new_with_config(client, config)
            .await
            .map_err(failed)?;
        let runtime = Handle::current();
        Ok(Self {
            connection,
            prefix,
            lease,
            claims: Claims::default(),
            runtime,
        })
    }

    pub async fn call<T: FromRedisValue>(
        &self,
        script: &Script,
        arguments: impl FnOnce(&mut redis::ScriptInvocation<'_>),
    ) -> Result<T> {
        let mut invocation = script.prepare_invoke();
        arguments(&mut invocation);
        invocation
            .invoke_async(&mut self.connection.clone())
            .await
            .map_err(failed)
    }

    pub async fn ping(&self) -> Result<()> {
        redis::cmd("PING")
            .query_async(&mut self.connection.clone())
            .await
            .map_err(failed)
    }

    /// Version and value of a cell.
    pub async fn cell(&self, id: &str) -> Result<(Option<u64>, Option<Vec<u8>>)> {
        redis::cmd("HMGET")
            .arg(format!("{}v:{id}", self.prefix))
            .arg(&["version", "value"])
            .query_async(&mut self.connection.clone())
            .await
            .map_err(failed)
    }

    pub async fn renew(&self, claim: &str, keys: &[String], kept: Duration) -> Result<bool> {
        self.call(&RENEW, |call| {
            call.arg(&self.prefix)
                .arg(claim)
                .arg(milliseconds(self.lease));
            call.arg(milliseconds(kept)).arg(keys);
        })
        .await
    }

    /// True if the claim had lasted until now.
    pub async fn release(&self, claim: &str, members: &[(String, String)]) -> Result<bool> {
        self.call(&RELEASE, |call| {
            call.arg(&self.prefix).arg(claim);
            for (key, member) in members {
                call.arg(key).arg(member);
            }
        })
        .await
    }
}
