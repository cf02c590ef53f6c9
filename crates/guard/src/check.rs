//! Whether a policy and a server's tools fit each other.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::policy::{Mode, Policy, Template};
use crate::run::{Guard, GuardError, Options, runtime};
use crate::servers::Upstream;
use crate::session::{Origin, Session, Sink};
use crate::upstream::Shutdown;
use crate::wire::Limits;

/// What was found.
#[derive(Debug)]
pub struct Report {
    pub text: String,
    /// Entries of the policy that cannot mean what they say.
    pub faults: usize,
}

/// A tool as the server describes it.
#[derive(Debug, Deserialize)]
pub struct Tool {
    pub name: String,
    #[serde(default, rename = "inputSchema")]
    pub input: Value,
    #[serde(default)]
    pub annotations: Value,
}

const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Starts the server, asks for its tools, and compares.
pub fn check(policy: &Policy, upstream: &Upstream) -> Result<Report, GuardError> {
    let options = Options {
        policy: Policy {
            backend: Some("memory".to_owned()),
            ..Policy::default()
        },
        servers: Vec::new(),
        limits: Limits::default(),
        record: None,
        grace: Duration::ZERO,
        metrics: None,
        shutdown: Shutdown::default(),
    };
    let tools = runtime()?.block_on(async {
        let guard = Guard::new(&options).await?;
        list_tools(&guard, upstream).await
    })?;
    Ok(compare(policy, &upstream.name, &tools))
}

struct Inbox(mpsc::UnboundedSender<Bytes>);

impl Sink for Inbox {
    fn deliver(&self, message: Bytes, _last: bool) {
        let _ = self.0.send(message);
    }
    fn close(&self) {}
    fn flush(&self) {}
}

async fn list_tools(guard: &Guard, upstream: &Upstream) -> Result<Vec<Tool>, GuardError> {
    let (inbox, mut messages) = mpsc::unbounded_channel();
    let sink: Arc<dyn Sink> = Arc::new(Inbox(inbox));
    let session = guard.session(upstream.server(), Arc::clone(&sink), false, false);
    let server = guard.start(upstream, &session, None)?;
    let origin = Origin {
        sink,
        subject: None,
    };
    let asked = tokio::time::timeout(ANSWER_WITHIN, ask(&session, &origin, &mut messages)).await;
    server.stop().await;
    match asked {
        Ok(Ok(tools)) => Ok(tools),
        Ok(Err(because)) => Err(GuardError::NoTools {
            server: upstream.name.as_ref().into(),
            because,
        }),
        Err(_) => Err(GuardError::NoTools {
            server: upstream.name.as_ref().into(),
            because: format!("it has not answered within {} s", ANSWER_WITHIN.as_secs()),
        }),
    }
}

async fn ask(
    session: &Arc<Session>,
    origin: &Origin,
    messages: &mut mpsc::UnboundedReceiver<Bytes>,
) -> Result<Vec<Tool>, String> {
    let say = |value: Value| {
        session.from_client(&value.to_string().into(), origin);
        session.flush();
    };
    say(
        serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "toctou guard check", "version": env!("CARGO_PKG_VERSION")}}}),
    );
    answer(messages, 0).await?;
    say(serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let mut tools = Vec::new();
    let mut cursor = Value::Null;
    for page in 1..=100 {
        let params = match &cursor {
            Value::Null => serde_json::json!({}),
            cursor => serde_json::json!({ "cursor": cursor }),
        };
        say(
            serde_json::json!({"jsonrpc": "2.0", "id": page, "method": "tools/list", "params": params}),
        );
        let mut result = answer(messages, page).await?;
        let found: Vec<Tool> =
            serde_json::from_value(result["tools"].take()).map_err(|error| error.to_string())?;
        tools.extend(found);
        cursor = result["nextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    Ok(tools)
}

async fn answer(messages: &mut mpsc::UnboundedReceiver<Bytes>, id: i32) -> Result<Value, String> {
    while let Some(message) = messages.recv().await {
        let Ok(mut message) = serde_json::from_slice::<Value>(&message) else {
            continue;
        };
        if message["id"] == id && message.get("method").is_none() {
            if let Some(error) = message.get("error") {
                return Err(error["message"]
                    .as_str()
                    .unwrap_or("an error without a message")
                    .to_owned());
            }
            return Ok(message["result"].take());
        }
    }
    Err("the connection ended".to_owned())
}

/// What the policy means for each tool, and what in it means nothing.
pub fn compare(policy: &Policy, server: &str, tools: &[Tool]) -> Report {
    let mut faults = Vec::new();
    let mut text = String::new();
    let width = tools
        .iter()
        .map(|tool| tool.name.len())
        .max()
        .unwrap_or(0)
        .min(40);
    let mut used = vec![false; policy.tools.len()];
    for tool in tools {
        let found = policy.find(server, &tool.name);
        let entry = found.map(|(_, entry)| entry);
        if let Some((at, _)) = found {
            used[at] = true;
        }
        let read_only = tool.annotations["readOnlyHint"] == true;
        let shared = match entry.map_or(Mode::Annotated, |entry| entry.mode) {
            Mode::Shared => true,
            Mode::Exclusive => false,
            Mode::Annotated => read_only,
        };
        let locks = entry.and_then(|entry| entry.locks.as_deref());
        let keys = match locks {
            None => "the whole server".to_owned(),
            Some([]) => "nothing".to_owned(),
            Some(locks) => locks
                .iter()
                .map(Template::text)
                .collect::<Vec<_>>()
                .join(", "),
        };
        let how = match (locks, shared) {
            (Some([]), _) => "free     ",
            (_, true) => "shared   ",
            (_, false) => "exclusive",
        };
        let by = if found.is_some() { "" } else { "  (default)" };
        let _ = writeln!(text, "{:width$}  {how}  {keys}{by}", clean(&tool.name));
        let idempotency = entry
            .and_then(|entry| entry.idempotency.as_ref())
            .map(|entry| &entry.key);
        for template in locks.into_iter().flatten().chain(idempotency) {
            for argument in template.arguments() {
                let known = tool.input["properties"].as_object();
                if known.is_none_or(|known| !known.contains_key(argument)) {
                    faults.push(format!(
                        "`{}` has no argument `{argument}`, which `{}` needs: every call would be refused",
                        clean(&tool.name),
                        template.text()
                    ));
                }
            }
        }
    }
    for (entry, _) in policy.tools.iter().zip(used).filter(|(_, used)| !used) {
        if entry.server.as_deref().is_some_and(|name| name != server) {
            continue;
        }
        let names = entry.names.iter().map(|name| format!("`{}`", name.text));
        let names = names.collect::<Vec<_>>().join(", ");
        faults.push(format!(
            "the entry for {names} matches no tool that an earlier entry has not"
        ));
    }
    if tools.is_empty() {
        faults.push("the server has no tools".to_owned());
    }
    if !faults.is_empty() {
        text.push('\n');
    }
    for fault in &faults {
        let _ = writeln!(text, "fault: {fault}");
    }
    let _ = writeln!(text, "\n{} tools, {} faults", tools.len(), faults.len());
    Report {
        text,
        faults: faults.len(),
    }
}

/// Names come from a server that is not trusted with a terminal.
fn clean(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn says_what_the_policy_means_and_what_means_nothing() {
        let (policy, _) = crate::policy::parse(
            "[[tool]]\nmatch = \"pay\"\nlock = \"invoice:{invoiceId}\"\n[[tool]]\nmatch = \"py\"\n\
             [[tool]]\nmatch = \"list\"\nlock = \"x:{nope}\"\n",
        )
        .expect("valid");
        let tool = |name: &str, read_only: bool| Tool {
            name: name.to_owned(),
            input: json!({"properties": {"invoiceId": {}}}),
            annotations: json!({ "readOnlyHint": read_only }),
        };
        let report = compare(
            &policy,
            "s",
            &[tool("pay", false), tool("list", true), tool("read", true)],
        );
        assert_eq!(
            report.text,
            "pay   exclusive  invoice:{invoiceId}\n\
             list  shared     x:{nope}\n\
             read  shared     the whole server  (default)\n\n\
             fault: `list` has no argument `nope`, which `x:{nope}` needs: every call would be refused\n\
             fault: the entry for `py` matches no tool that an earlier entry has not\n\n\
             3 tools, 2 faults\n"
        );
        assert_eq!(report.faults, 2);
    }
}
