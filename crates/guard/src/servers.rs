//! Which servers stand behind the guard.
//!
//! A file with `mcpServers`, as clients keep it, works as it is. Keys that a
//! client may have for itself are not looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::policy::file::ServerFile;
use crate::session::Server;
use crate::upstream::{ChildSpec, HttpSpec};

/// A server by name, and how to reach it.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub name: Arc<str>,
    pub spec: Spec,
}

#[derive(Clone, Debug)]
pub enum Spec {
    Child(ChildSpec),
    Http(HttpSpec),
}

#[derive(Debug, Error)]
pub enum ServersError {
    #[error("not an `mcpServers` file: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("server `{0}` has neither `command` nor `url`")]
    Neither(String),
    #[error("server `{0}` has both `command` and `url`")]
    Both(String),
    #[error("server `{name}`: {because}")]
    Url { name: String, because: String },
    #[error("the name `{0}` cannot be part of an address: use letters, digits, `-`, `_` and `.`")]
    Name(String),
}

#[derive(Deserialize)]
struct File {
    // Editors use the second name.
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, ServerFile>,
}

/// The servers of an `mcpServers` file.
pub fn parse_servers(json: &str) -> Result<Vec<Upstream>, ServersError> {
    let file: File = serde_json::from_str(json)?;
    file.servers
        .into_iter()
        .filter_map(|(name, server)| upstream(name, server).transpose())
        .collect()
}

/// One server; nothing if it is disabled.
pub fn upstream(name: String, server: ServerFile) -> Result<Option<Upstream>, ServersError> {
    if server.disabled {
        return Ok(None);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(ServersError::Name(name));
    }
    let spec = match (server.command, server.url) {
        (Some(_), Some(_)) => return Err(ServersError::Both(name)),
        (None, None) => return Err(ServersError::Neither(name)),
        (Some(command), None) => Spec::Child(ChildSpec {
            command,
            args: server.args,
            env: server.env,
            cwd: server.cwd,
        }),
        (None, Some(url)) => {
            let spec =
                HttpSpec::new(&url, &server.headers).map_err(|because| ServersError::Url {
                    name: name.clone(),
                    because,
                })?;
            Spec::Http(match server.kind.as_deref() {
                Some("sse") => spec.over_sse(),
                _ => spec,
            })
        }
    };
    Ok(Some(Upstream {
        name: name.into(),
        spec,
    }))
}

impl Upstream {
    /// A server given on the command line.
    pub fn command(command: &str, args: &[String]) -> Self {
        let base = command.rsplit('/').next().unwrap_or(command);
        Self {
            name: base.into(),
            spec: Spec::Child(ChildSpec {
                command: command.to_owned(),
                args: args.to_vec(),
                env: BTreeMap::new(),
                cwd: None,
            }),
        }
    }

    /// Two guards that start the same command, or lead to the same address,
    /// stand before the same state. Its name, folder and environment do not
    /// count: to lock too much is safe.
    pub fn server(&self) -> Server {
        let mut hash = Sha256::new();
        match &self.spec {
            Spec::Child(child) => {
                for part in std::iter::once(&child.command).chain(&child.args) {
                    hash.update((part.len() as u64).to_le_bytes());
                    hash.update(part.as_bytes());
                }
            }
            Spec::Http(http) => hash.update(http.url().as_bytes()),
        }
        let digest = hash.finalize();
        let short: String = digest[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Server {
            name: Arc::clone(&self.name),
            namespace: format!("{}-{short}", shown(&self.spec)).into(),
        }
    }
}

/// The command without its folder, or the host.
fn shown(spec: &Spec) -> String {
    match spec {
        Spec::Child(child) => child
            .command
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned(),
        Spec::Http(http) => http.host().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_file_works_as_it_is() {
        let servers = parse_servers(
            r#"{ "theme": "dark", "mcpServers": {
                "memory": { "command": "npx", "args": ["-y", "server-memory"], "env": {"A": "b"}, "type": "stdio", "autoApprove": [] },
                "old": { "type": "sse", "url": "http://127.0.0.1:9/sse" },
                "remote": { "type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer x"} },
                "off": { "command": "x", "disabled": true } } }"#,
        )
        .expect("valid");
        let names: Vec<_> = servers.iter().map(|server| &*server.name).collect();
        assert_eq!(names, ["memory", "old", "remote"]);
        let sse = |server: &Upstream| matches!(&server.spec, Spec::Http(http) if http.is_sse());
        let sse: Vec<bool> = servers.iter().map(sse).collect();
        assert_eq!(sse, [false, true, false]);
    }

    #[test]
    fn names_what_is_wrong() {
        for (text, message) in [
            (r#"{"mcpServers":{"a":{}}}"#, "`a` has neither"),
            (
                r#"{"mcpServers":{"a":{"command":"x","url":"http://h/"}}}"#,
                "`a` has both",
            ),
            (
                r#"{"mcpServers":{"../x":{"command":"x"}}}"#,
                "cannot be part of an address",
            ),
            (r#"{"mcpServers":{"a":{"url":"ftp://x"}}}"#, "server `a`"),
            ("{}", "not an `mcpServers` file"),
        ] {
            let error = parse_servers(text).expect_err(text).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn the_same_command_is_the_same_server() {
        let of = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            Upstream::command("/usr/bin/node", &args).server().namespace
        };
        assert_eq!(of(&["a.js"]), of(&["a.js"]));
        assert_ne!(of(&["a.js", "b"]), of(&["a.jsb"]));
    }
}
