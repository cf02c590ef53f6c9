//! How tools are registered by the SDKs for Rust beside `rmcp`, end to end.

use crate::common::Project;

/// The entry points of what a program reports, by kind.
fn kinds(source: &str) -> Vec<String> {
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let json = run.json();
    let findings = json["findings"].as_array().cloned().unwrap_or_default();
    let entries = findings.iter().flat_map(|f| f["entry_points"].as_array());
    entries
        .flatten()
        .filter_map(|e| e["kind"].as_str().map(str::to_owned))
        .collect()
}

const BODY: &str = "let old = tokio::fs::read_to_string(\"d.json\").await?;\n\
    let mut list: Vec<String> = serde_json::from_str(&old)?;\nlist.push(text);\n\
    tokio::fs::write(\"d.json\", serde_json::to_string(&list)?).await?;\n";

#[test]
fn functions_that_are_marked() {
    for import in [
        "use turbomcp::{server, tool};",
        "use turbomcp::prelude::*;",
        "use mcp_core_macros::tool;",
        "use pmcp_macros::tool;",
    ] {
        let source = format!(
            "{import}\npub struct Server;\nimpl Server {{\n#[tool(\"add\")]\n\
             async fn add(&self, text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n}}\n"
        );
        assert_eq!(kinds(&source), ["tool"], "{import}");
    }
    // An attribute of the same name that is something else.
    let other = format!(
        "use drill::tool;\n#[tool]\npub async fn add(text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n"
    );
    assert_eq!(kinds(&other), ["export"]);
}

#[test]
fn methods_of_a_trait() {
    for (import, of, method) in [
        ("mcp_protocol_sdk::prelude::*", "ToolHandler", "call"),
        (
            "ultrafast_mcp::ToolHandler",
            "ToolHandler",
            "handle_tool_call",
        ),
        ("turul_mcp_server::McpTool", "McpTool", "call"),
    ] {
        let source = format!(
            "use {import};\npub struct Add;\nimpl {of} for Add {{\n\
             async fn {method}(&self, text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n}}\n"
        );
        assert_eq!(kinds(&source), ["tool"], "{import}");
    }
}

#[test]
fn closures_that_are_registered() {
    for (import, call, kind) in [
        ("async_mcp::server::Server", "register_tool(tool(),", "tool"),
        (
            "mcpr::server::Server",
            "register_tool_handler(\"add\",",
            "tool",
        ),
        (
            "jsonrpsee::RpcModule",
            "register_async_method(\"add\",",
            "request",
        ),
    ] {
        let source = format!(
            "use {import};\nfn run(server: &mut Made) {{\nserver.{call} |text: String| async move {{\n{BODY}Ok(())\n}});\n}}\n\
             fn main() {{ run(&mut make()); }}\n"
        );
        assert_eq!(kinds(&source), [kind], "{import}");
    }
}
