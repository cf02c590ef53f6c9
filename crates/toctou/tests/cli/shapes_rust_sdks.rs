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
    // In a block that is marked as well, which says what the server is.
    for (import, block, mark) in [
        ("turbomcp::{server, tool}", "server", "tool"),
        ("turbomcp::prelude::*", "server(name = \"n\")", "tool"),
        ("mcpkit::prelude::*", "mcp_server(name = \"n\")", "tool"),
        ("pmcp::{mcp_server, mcp_tool}", "mcp_server", "mcp_tool"),
    ] {
        let source = format!(
            "use {import};\npub struct Notes;\n#[{block}]\nimpl Notes {{\n#[{mark}(description = \"Adds\")]\n\
             async fn add(&self, text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n}}\n"
        );
        assert_eq!(kinds(&source), ["tool"], "{import}");
    }
    // By themselves.
    for (import, mark, kind) in [
        ("mcp_core_macros::{tool, tool_param}", "tool", "tool"),
        ("mcp_attr::server::tool", "tool", "tool"),
        ("pmcp_macros::mcp_tool", "mcp_tool", "tool"),
        ("pmcp_macros::mcp_resource", "mcp_resource", "resource"),
        ("turul_mcp_derive::mcp_tool", "mcp_tool", "tool"),
        ("fastmcp_macros::mcp_tool", "mcp_tool", "tool"),
        ("fastmcp_rust::prelude::*", "tool", "tool"),
        ("fastmcp_rust::prompt", "prompt", "prompt"),
    ] {
        let source = format!(
            "use {import};\n#[{mark}(name = \"add\")]\n\
             async fn add(text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n"
        );
        assert_eq!(kinds(&source), [kind], "{import}");
    }
    // An attribute that nobody imports: the block's own replaces it.
    let within = format!(
        "use mcp_attr::server::{{mcp_server, McpServer}};\npub struct Notes;\n#[mcp_server]\nimpl McpServer for Notes {{\n\
         #[tool]\nasync fn add(&self, text: String) -> mcp_attr::Result<()> {{\n{BODY}Ok(())\n}}\n}}\n"
    );
    assert_eq!(kinds(&within), ["tool"]);
    // An attribute of the same name that is something else.
    let other = format!(
        "use drill::tool;\n#[tool]\npub async fn add(text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n"
    );
    assert_eq!(kinds(&other), ["export"]);
}

#[test]
fn methods_of_a_trait() {
    for (import, of, method) in [
        ("pmcp::ToolHandler", "ToolHandler", "handle"),
        ("mcp_protocol_sdk::prelude::*", "ToolHandler", "call"),
        ("fastmcp::Tool", "Tool", "execute"),
        ("turul_mcp_server::McpTool", "McpTool", "call"),
        ("turul_mcp_server::prelude::*", "McpTool", "call"),
        ("mcpkit::prelude::*", "ToolHandler", "call_tool"),
        (
            "ultrafast_mcp::{ToolCall, ToolHandler}",
            "ToolHandler",
            "handle_tool_call",
        ),
        ("mcp_server::Router", "Router", "call_tool"),
    ] {
        let source = format!(
            "use {import};\npub struct Add;\n#[async_trait::async_trait]\nimpl {of} for Add {{\n\
             async fn {method}(&self, text: String) -> anyhow::Result<()> {{\n{BODY}Ok(())\n}}\n}}\n"
        );
        assert_eq!(kinds(&source), ["tool"], "{import}");
    }
}

#[test]
fn closures_that_are_registered() {
    let own = |path: &str| format!("let mut server = {path};\nserver.");
    for (start, call, kind) in [
        (
            own("async_mcp::server::Server::builder(transport()).name(\"n\").build()"),
            "register_tool(tool(), |text: String| Box::pin(",
            "tool",
        ),
        (
            own("mcp_core::server::Server::builder(\"n\".into(), \"1\".into(), version())"),
            "register_tool(tool(), |text: String| Box::pin(",
            "tool",
        ),
        (
            own("jsonrpsee::RpcModule::new(())"),
            "register_async_method(\"add\", |text: String, _, _| ",
            "request",
        ),
        (
            own("pmcp::Server::builder()"),
            "tool_typed(\"add\", |text: String, _| ",
            "tool",
        ),
        (
            "pmcp::".to_owned(),
            "SimpleTool::new(\"add\", |text: String, _| Box::pin(",
            "tool",
        ),
    ] {
        let end = if call.ends_with('(') { "))" } else { ")" };
        let source =
            format!("fn main() {{\n{start}{call}async move {{\n{BODY}Ok(())\n}}{end};\n}}\n");
        assert_eq!(kinds(&source), [kind], "{start}{call}");
    }
    // A function gives the closure.
    let source = format!(
        "use mcp_core::{{server::Server, tools::ToolHandlerFn}};\nstruct Add;\nimpl Add {{\nfn call() -> ToolHandlerFn {{\n\
         move |text: String| Box::pin(async move {{\n{BODY}Ok(())\n}})\n}}\n}}\n\
         fn main() {{\nServer::builder(name(), version(), protocol()).register_tool(tool(), Add::call());\n}}\n"
    );
    assert_eq!(kinds(&source), ["tool"]);
    // Not asynchronous.
    let body = BODY.replace("tokio::fs", "std::fs").replace(".await", "");
    let source = format!(
        "use mcpr::server::Server;\nfn main() {{\nlet mut server = Server::new(config());\n\
         server.register_tool_handler(\"add\", |text: String| {{\n{body}Ok(())\n}});\n}}\n"
    );
    assert_eq!(kinds(&source), ["tool"]);
}
