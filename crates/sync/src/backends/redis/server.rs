//! The connection and the scripts.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{FromRedisValue, Script};
use tokio::runtime::Handle;

use super::claims::Claims;
use super::line::Line;
use crate::{Error, Result};

pub struct Server {
    line: Line,
    pub prefix: String,
    pub lease: Duration,
    pub claims: Claims,
    pub runtime: Handle,
}

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
        let line = Line::open(url).await?;
        let runtime = Handle::current();
        Ok(Self {
            line,
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
        self.line
            .ask(async |connection| invocation.invoke_async(connection).await)
            .await
    }

    pub async fn ping(&self) -> Result<()> {
        let ping = redis::cmd("PING");
        self.line
            .ask(async |connection| ping.query_async(connection).await)
            .await
    }

    /// Version and value of a cell.
    pub async fn cell(&self, id: &str) -> Result<(Option<u64>, Option<Vec<u8>>)> {
        let mut get = redis::cmd("HMGET");
        get.arg(format!("{}v:{id}", self.prefix))
            .arg(&["version", "value"]);
        self.line
            .ask(async |connection| get.query_async(connection).await)
            .await
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
