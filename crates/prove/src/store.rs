//! State that is not in files: a scratch place in the user's PostgreSQL or Redis.
//!
//! Every run has a place of its own, made for it and removed after it. What else
//! is in the server is neither read nor written. The sandbox has no network, so
//! a [`relay`] stands at its loopback that leads to this one address and nowhere else.

mod address;
mod postgres;
mod redis;
pub mod relay;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio::runtime::Handle;

pub use address::Address;

/// What a server's state needs, besides an address: part of a recipe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    pub kind: Kind,
    /// The variable in which the server finds the address.
    pub env: String,
    /// SQL that is run before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Postgres,
    Redis,
}

impl Kind {
    /// By the scheme of a URL.
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once("://")?.0 {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "redis" => Some(Self::Redis),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis",
        }
    }

    /// Where most servers look for the address.
    pub fn usual_env(self) -> &'static str {
        match self {
            Self::Postgres => "DATABASE_URL",
            Self::Redis => "REDIS_URL",
        }
    }
}

/// As the user named it. The URL often has a password in it and goes into no report.
#[derive(Clone)]
pub struct StoreSpec {
    pub url: String,
    pub needs: Needs,
}

impl std::fmt::Debug for StoreSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.needs.fmt(f)
    }
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error(
        "not an address of PostgreSQL or Redis: give postgres://user@host/database or redis://host"
    )]
    Url,
    #[error("{kind} cannot be used: {because}")]
    Server { kind: &'static str, because: String },
    #[error("the SQL of `--state-init` fails: {0}")]
    Init(String),
    #[error("Redis has no empty database left: one is needed for each run, and some run ahead")]
    Full,
}

/// Nothing that is asked of a database takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with room for scratch places.
pub struct Store {
    handle: Handle,
    address: Address,
    env: String,
    maker: Maker,
}

enum Maker {
    Postgres(Box<postgres::Maker>),
    Redis(redis::Maker),
}

/// One run's place. Removed when dropped.
pub struct Place {
    handle: Handle,
    inner: Inner,
}

enum Inner {
    Postgres(postgres::Database),
    Redis(redis::Database),
}

impl Store {
    pub fn open(handle: &Handle, spec: &StoreSpec) -> Result<Self, StoreError> {
        let address = Address::parse(&spec.url).ok_or(StoreError::Url)?;
        let maker = within(handle, spec.needs.kind, async {
            Ok(match spec.needs.kind {
                Kind::Postgres => {
                    let init = spec.needs.init.as_deref();
                    Maker::Postgres(Box::new(postgres::Maker::open(&address, init).await?))
                }
                Kind::Redis => Maker::Redis(redis::Maker::open(&address).await?),
            })
        })?;
        Ok(Self {
            handle: handle.clone(),
            address,
            env: spec.needs.env.clone(),
            maker,
        })
    }

    /// What a user has to know about the isolation.
    pub fn note(&self) -> &'static str {
        match &self.maker {
            Maker::Postgres(maker) if maker.by_schema() => {
                "PostgreSQL: a scratch schema for each run, since the user may create no databases; a server that names another schema is not kept from it"
            }
            Maker::Postgres(_) => "PostgreSQL: a scratch database for each run",
            Maker::Redis(_) => {
                "Redis: an empty database number for each run; a server that selects another one is not kept from it"
            }
        }
    }

    pub fn fresh(&self) -> Result<Place, StoreError> {
        let kind = self.kind();
        let inner = within(&self.handle, kind, async {
            Ok(match &self.maker {
                Maker::Postgres(maker) => Inner::Postgres(maker.make().await?),
                Maker::Redis(maker) => Inner::Redis(maker.make().await?),
            })
        })?;
        Ok(Place {
            handle: self.handle.clone(),
            inner,
        })
    }

    fn kind(&self) -> Kind {
        match &self.maker {
            Maker::Postgres(_) => Kind::Postgres,
            Maker::Redis(_) => Kind::Redis,
        }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The variable in which the server finds the address.
    pub fn env(&self) -> &str {
        &self.env
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Maker::Postgres(maker) = &self.maker {
            let _ = within(&self.handle, Kind::Postgres, async {
                maker.clean_up().await;
                Ok(())
            });
        }
    }
}

impl Place {
    /// What the server is told: this place, reached at `host` and `port` or where it really is.
    pub fn url(&self, address: &Address, at: Option<(&str, u16)>) -> String {
        match &self.inner {
            Inner::Postgres(database) => database.url(address, at),
            Inner::Redis(database) => database.url(address, at),
        }
    }

    /// All that is in it. Nothing if it cannot be read.
    pub fn dump(&self) -> Option<Value> {
        let kind = match &self.inner {
            Inner::Postgres(_) => Kind::Postgres,
            Inner::Redis(_) => Kind::Redis,
        };
        within(&self.handle, kind, async {
            match &self.inner {
                Inner::Postgres(database) => database.dump().await,
                Inner::Redis(database) => database.dump().await,
            }
        })
        .ok()
    }

    /// Under which it is shown next to files.
    pub fn name(&self) -> &'static str {
        match &self.inner {
            Inner::Postgres(_) => "postgres",
            Inner::Redis(_) => "redis",
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let inner = &self.inner;
        let _ = within(&self.handle, Kind::Postgres, async {
            match inner {
                Inner::Postgres(database) => database.remove().await,
                Inner::Redis(database) => database.remove().await,
            }
            Ok(())
        });
    }
}

fn within<T>(
    handle: &Handle,
    kind: Kind,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    handle
        .block_on(async { tokio::time::timeout(PATIENCE, work).await })
        .unwrap_or_else(|_| {
            Err(StoreError::Server {
                kind: kind.as_str(),
                because: "no answer".to_owned(),
            })
        })
}
