//! A policy from what `toctou scan` found.
//!
//! Each resource that a window is open on becomes a key, and each tool that
//! reaches the window takes the keys of its resources. What scan calls the
//! resource (`this.memoryFilePath`) is an expression of the source, not a value,
//! so the key is the same for every call: wider than it must be, never narrower.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ScanError {
    #[error("not the JSON of `toctou scan`: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("the schema is `{0}`, not `toctou.scan/1`")]
    Schema(String),
    #[error("no finding is reached by a tool")]
    NoTool,
}

#[derive(Deserialize)]
struct Scan {
    schema: String,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    rule: String,
    resource: Resource,
    location: Location,
    entry_points: Vec<EntryPoint>,
}

#[derive(Deserialize)]
struct Resource {
    kind: String,
    key: String,
}

#[derive(Deserialize)]
struct Location {
    file: String,
    line: u32,
}

#[derive(Deserialize)]
struct EntryPoint {
    kind: String,
    name: String,
}

/// The text of a policy that closes what `scan` found.
pub fn from_scan(json: &str) -> Result<String, ScanError> {
    let scan: Scan = serde_json::from_str(json)?;
    if scan.schema != "toctou.scan/1" {
        return Err(ScanError::Schema(scan.schema));
    }
    // Tools by the keys they need, so that tools with the same keys share an entry.
    let mut keys: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut unreached = BTreeSet::new();
    for finding in &scan.findings {
        let place = format!(
            "{} in {}:{}",
            finding.rule, finding.location.file, finding.location.line
        );
        let mut reached = false;
        for entry in finding
            .entry_points
            .iter()
            .filter(|entry| entry.kind == "tool")
        {
            reached = true;
            keys.entry(&entry.name)
                .or_default()
                .insert(key(&finding.resource));
            reasons
                .entry(&entry.name)
                .or_default()
                .insert(place.clone());
        }
        if !reached {
            unreached.insert(place);
        }
    }
    if keys.is_empty() {
        return Err(ScanError::NoTool);
    }
    let mut entries: BTreeMap<&BTreeSet<String>, Vec<&str>> = BTreeMap::new();
    for (tool, keys) in &keys {
        entries.entry(keys).or_default().push(tool);
    }
    let mut out = String::from(
        "# Closes the windows that `toctou scan` found. Keys are the same for every call;\n\
         # where calls on different things may run side by side, name the argument:\n\
         # lock = \"notes:{id}\"\n",
    );
    for (keys, tools) in &entries {
        out.push('\n');
        let why: BTreeSet<&String> = tools.iter().flat_map(|tool| &reasons[tool]).collect();
        for reason in why {
            let _ = writeln!(out, "# {}", one_line(reason));
        }
        out += &entry(tools, keys.iter().cloned());
    }
    let all: BTreeSet<&String> = keys.values().flatten().collect();
    let _ = write!(
        out,
        "\n# Scan names those who read and then write. Another tool may write the same thing blindly,\n\
         # so the others wait too, unless the server says that they only read.\n\
         [[tool]]\nmatch = \"*\"\nlock = {}\nmode = \"annotated\"\n",
        list(all.into_iter().cloned())
    );
    if !unreached.is_empty() {
        out.push_str("\n# Not reached by a tool, so the guard cannot close these:\n");
        for place in unreached {
            let _ = writeln!(out, "# {}", one_line(&place));
        }
    }
    Ok(out)
}

/// The entry for these tools on this one resource, without the policy around it.
pub fn entry_for(tools: &[&str], kind: &str, resource: &str) -> String {
    let resource = Resource {
        kind: kind.to_owned(),
        key: resource.to_owned(),
    };
    entry(tools, std::iter::once(key(&resource)))
}

fn entry(tools: &[&str], keys: impl Iterator<Item = String>) -> String {
    format!(
        "[[tool]]\nmatch = {}\nlock = {}\nmode = \"exclusive\"\n",
        list(tools.iter().map(|tool| glob(tool))),
        list(keys)
    )
}

/// Without braces: they would name an argument.
fn key(resource: &Resource) -> String {
    format!("{}:{}", resource.kind, resource.key)
        .chars()
        .map(|c| match c {
            '{' => '(',
            '}' => ')',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

/// A name as a pattern that matches itself only.
fn glob(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items
        .map(|item| toml::Value::String(item).to_string())
        .collect();
    format!("[{}]", items.join(", "))
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(tools: &[&str], key: &str) -> serde_json::Value {
        serde_json::json!({
            "rule": "file-read-modify-write", "resource": {"kind": "file", "key": key},
            "location": {"file": "a.ts", "line": 3},
            "entry_points": tools.iter().map(|name| serde_json::json!({"kind": "tool", "name": name})).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn every_tool_takes_the_keys_of_its_windows() {
        let scan = serde_json::json!({ "schema": "toctou.scan/1", "findings": [
            finding(&["add", "drop"], "this.path"), finding(&["drop", "we*ird]\n"], "`${dir}/x`"), finding(&[], "y"),
        ]});
        let text = from_scan(&scan.to_string()).expect("a policy");
        let (policy, _) = super::super::parse(&text).expect("valid");
        let locks = |tool: &str| -> Vec<String> {
            let (_, entry) = policy.find("s", tool).expect("an entry");
            entry
                .locks
                .iter()
                .flatten()
                .map(|lock| lock.text().to_owned())
                .collect()
        };
        assert_eq!(locks("add"), ["file:this.path"]);
        assert_eq!(locks("drop"), ["file:`$(dir)/x`", "file:this.path"]);
        assert_eq!(locks("we*ird]\n"), ["file:`$(dir)/x`"]);
        assert_eq!(locks("other").len(), 2);
        assert!(text.contains("cannot close these:\n# file-read-modify-write in a.ts:3"));
    }

    #[test]
    fn what_is_not_a_scan() {
        assert!(matches!(from_scan("{}"), Err(ScanError::Syntax(_))));
        assert!(matches!(
            from_scan(r#"{"schema":"x","findings":[]}"#),
            Err(ScanError::Schema(_))
        ));
        assert!(matches!(
            from_scan(r#"{"schema":"toctou.scan/1","findings":[]}"#),
            Err(ScanError::NoTool)
        ));
    }
}
