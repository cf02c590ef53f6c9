//! The Rust SDK's client through the guard.

mod common;

use common::{Bench, SOON, example};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::json;
use tokio::io::AsyncBufReadExt as _;

const CALLS: usize = 50;

async fn session(bench: &Bench, client: RunningService<RoleClient, ()>) {
    let tools = client.list_all_tools().await.expect("tools");
    assert!(tools.iter().any(|tool| tool.name == "write"));
    let counter = bench.text("counter");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let peer = client.peer().clone();
        let arguments = json!({ "count": counter })
            .as_object()
            .cloned()
            .unwrap_or_default();
        calls.spawn(async move {
            peer.call_tool(CallToolRequestParams::new("write").with_arguments(arguments))
                .await
        });
    }
    while let Some(answer) = calls.join_next().await {
        let answer = answer.expect("a task").expect("an answer");
        assert_ne!(answer.is_error, Some(true), "{answer:?}");
    }
    assert_eq!(
        std::fs::read_to_string(counter).expect("a counter"),
        CALLS.to_string()
    );
    assert_eq!(bench.most_at_once(), 1);
    client.cancel().await.expect("an end");
}

#[tokio::test]
async fn on_stdio() {
    let bench = Bench::new();
    bench.policy("");
    let mut command = tokio::process::Command::new(example("guard"));
    command
        .arg("--policy")
        .arg(bench.path("guard.toml"))
        .arg("--");
    command.arg(example("server")).arg(bench.path("events"));
    let client =
        ().serve(TokioChildProcess::new(command).expect("a guard"))
            .await
            .expect("a session");
    tokio::time::timeout(SOON, session(&bench, client))
        .await
        .expect("in time");
}

#[tokio::test]
async fn on_http() {
    let bench = Bench::new();
    bench.policy("");
    let mut guard = tokio::process::Command::new(example("guard"))
        .arg("--policy")
        .arg(bench.path("guard.toml"))
        .args(["--listen", "127.0.0.1:0", "--"])
        .arg(example("server"))
        .arg(bench.path("events"))
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a guard");
    let mut lines = tokio::io::BufReader::new(guard.stderr.take().expect("errors")).lines();
    let line = lines.next_line().await.expect("text").expect("a line");
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let url = format!(
        "http://{}/mcp",
        line["address"].as_str().expect("an address")
    );
    let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await.expect("a session");
    tokio::time::timeout(SOON, session(&bench, client))
        .await
        .expect("in time");
}
