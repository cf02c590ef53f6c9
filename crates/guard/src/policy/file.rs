//! The policy as written: names of keys, their types, their documentation.
//! The JSON schema is made from this.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
pub use toml::Spanned;

/// What may run beside what, for the servers behind one guard.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "guard.toml")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PolicyFile {
    /// `enforce`, or `observe`: decide and log, but hold up nothing.
    pub mode: RunMode,
    /// Where locks and limits live: `memory`, `host` (the default), `host:FOLDER`, `redis://…`, `rediss://…`, `postgres://…`.
    pub backend: Option<String>,
    /// What to do when the backend is lost: refuse calls (`closed`) or let them through (`open`).
    pub on_backend_loss: OnLoss,
    /// Guards with the same namespace share their keys. By default each server is its own.
    pub namespace: Option<String>,
    /// Put lock keys and waiting time into the `_meta` of every answer.
    pub meta: bool,
    /// For tools that no entry names, and for keys that an entry leaves out.
    pub defaults: DefaultsFile,
    /// Tools, in order: the first entry that matches counts.
    pub tool: Vec<ToolFile>,
    /// The servers, by name, as in an `mcpServers` file.
    pub servers: BTreeMap<String, ServerFile>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    #[default]
    Enforce,
    Observe,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLoss {
    #[default]
    Closed,
    Open,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DefaultsFile {
    /// How long a call may wait to be let in, such as `30s`.
    #[schemars(with = "Option<String>")]
    pub wait: Option<Spanned<String>>,
    /// How many calls may wait at once.
    pub queue: Option<usize>,
    /// After this long the caller is told that the server has not answered. The lock is kept.
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Spanned<String>>,
    /// How long a lock is kept for a cancelled call that is not answered.
    #[schemars(with = "Option<String>")]
    pub cancel_hold: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToolFile {
    /// Names of tools; `*` stands for any text.
    #[schemars(with = "OneOrMany")]
    #[serde(rename = "match")]
    pub matches: Spanned<OneOrMany>,
    /// Only for this server.
    pub server: Option<String>,
    /// Keys to lock, with arguments: `invoice:{invoiceId}`, `{a.b}`, `{items[].id}`. Empty for none;
    /// without it, one key for the whole server.
    #[schemars(with = "Option<OneOrMany>")]
    pub lock: Option<Spanned<OneOrMany>>,
    /// `exclusive`, `shared`, or `annotated` (the default): shared if the server says that the tool only reads.
    #[serde(default)]
    pub mode: LockMode,
    /// How long a call may wait to be let in.
    #[schemars(with = "Option<String>")]
    pub wait: Option<Spanned<String>>,
    /// How many calls of these tools may wait at once.
    pub queue: Option<usize>,
    /// After this long the caller is told that the server has not answered. The lock is kept.
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Spanned<String>>,
    /// How many calls of one caller may run at once.
    #[schemars(with = "Option<InFlightFile>")]
    pub in_flight: Option<Spanned<InFlightFile>>,
    /// How many calls may start in a time.
    #[schemars(with = "Option<RateFile>")]
    pub rate: Option<Spanned<RateFile>>,
    /// Calls with one key run once; a repetition gets the first one's result.
    pub idempotency: Option<IdempotencyFile>,
    /// Tell the server about a cancellation (`forward`), or let it finish so that it answers (`keep`).
    #[serde(default)]
    pub on_cancel: CancelFile,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockMode {
    #[default]
    Annotated,
    Shared,
    Exclusive,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CancelFile {
    #[default]
    Forward,
    Keep,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ByFile {
    #[default]
    Caller,
    Everybody,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InFlightFile {
    pub max: u32,
    /// Whose calls are counted together.
    #[serde(default)]
    pub by: ByFile,
    /// Calls that may wait for their turn; 0 refuses at once.
    #[serde(default)]
    pub queue: usize,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateFile {
    pub calls: u32,
    /// Such as `1s` or `1m`.
    pub per: String,
    /// Calls that may come at once; as many as `calls` if it is left out.
    pub burst: Option<u32>,
    #[serde(default)]
    pub by: ByFile,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IdempotencyFile {
    /// From arguments, such as `{requestId}`.
    #[schemars(with = "String")]
    pub key: Spanned<String>,
    /// How long a result is kept; a day if it is left out.
    #[schemars(with = "Option<String>")]
    pub keep: Option<Spanned<String>>,
}

/// One server: a command to start, or an address.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerFile {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<std::path::PathBuf>,
    /// As clients have it: `sse` for the transport of 2024-11-05.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Address of a server that speaks Streamable HTTP, or HTTP+SSE.
    pub url: Option<String>,
    /// Headers to send to it.
    pub headers: BTreeMap<String, String>,
    /// As clients have it: such a server is not started.
    pub disabled: bool,
}

/// JSON schema of the file.
pub fn schema() -> Schema {
    schema_for!(PolicyFile)
}
