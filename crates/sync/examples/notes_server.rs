//! An MCP server (rmcp) that keeps notes in a file, and uses this crate as a library.
//!
//! `notes_server serve FILE` serves on standard input and output; several may be started for one file. Without
//! arguments it is its own client: 50 calls at once, of the tool that loses notes and of the one that does not, and then
//! a shutdown with calls in flight.

#[path = "common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{Anything, somebody_else_runs};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolRequestParams;
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use toctou_sync::{CloseGate, Host, HostOptions, InitScope, Limit, Semaphores, Wait, files};

#[derive(Clone)]
struct Notes {
    file: PathBuf,
    host: Arc<Host>,
    gate: CloseGate,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    text: String,
}

#[tool_router]
impl Notes {
    /// Loads, adds, saves: every call reports success.
    #[tool(description = "Adds a note, or loses another one")]
    async fn add_note_dangerously(
        &self,
        Parameters(note): Parameters<Note>,
    ) -> Result<String, String> {
        let notes = std::fs::read_to_string(&self.file).unwrap_or_default();
        somebody_else_runs().await;
        let saved = std::fs::write(&self.file, format!("{notes}{}\n", note.text));
        saved
            .map(|()| "added".to_owned())
            .map_err(|error| error.to_string())
    }

    #[tool(description = "Adds a note")]
    async fn add_note(&self, Parameters(note): Parameters<Note>) -> Result<String, String> {
        let _inside = self
            .gate
            .enter()
            .map_err(|_| "the server is shutting down")?;
        let limit = Limit::at_most(10).queue(100, std::time::Duration::from_secs(30));
        // With HTTP, the caller would be the one that authenticated.
        let _permit = self
            .host
            .enter("stdio", limit)
            .await
            .map_err(|error| error.to_string())?;
        let add = move |old: Option<Vec<u8>>| {
            let mut notes = old.unwrap_or_default();
            notes.extend_from_slice(note.text.as_bytes());
            notes.push(b'\n');
            Ok(notes)
        };
        let added = files::update(&*self.host, &self.file, Wait::Forever, add).await;
        added
            .map(|()| "added".to_owned())
            .map_err(|error| error.to_string())
    }
}

#[tool_handler]
impl ServerHandler for Notes {}

impl Notes {
    async fn open(file: PathBuf, locks: Option<PathBuf>) -> Result<Self, toctou_sync::Error> {
        let mut scope = InitScope::new();
        let opened = async {
            let gate = CloseGate::new();
            let closing = gate.clone();
            scope.defer(move || async move { closing.close().await });
            let options = locks.map_or_else(HostOptions::default, HostOptions::in_directory);
            let host = Arc::new(Host::open(options)?);
            Ok(Self { file, host, gate })
        }
        .await;
        scope.finish(opened).await
    }

    fn count(&self) -> usize {
        std::fs::read_to_string(&self.file).map_or(0, |notes| notes.lines().count())
    }
}

async fn fifty_calls(
    tool: &'static str,
    notes: Notes,
) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    let (here, there) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(async move {
        notes
            .serve(there)
            .await?
            .waiting()
            .await
            .map_err(Box::<dyn std::error::Error + Send + Sync>::from)
    });
    let client = ().serve(here).await?;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..50 {
        let peer = client.peer().clone();
        calls.spawn(async move {
            let arguments =
                serde_json::Map::from_iter([("text".into(), format!("note {number}").into())]);
            peer.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments))
                .await
        });
    }
    let mut added = 0;
    for answer in calls.join_all().await {
        added += usize::from(answer?.is_error != Some(true));
    }
    client.cancel().await?;
    server.await??;
    Ok(added)
}

pub async fn example() -> Anything {
    let folder = tempfile::tempdir()?;
    let locks = Some(folder.path().join("locks"));
    let notes = Notes::open(folder.path().join("lost"), locks.clone()).await?;
    let added = fifty_calls("add_note_dangerously", notes.clone()).await?;
    println!(
        "dangerous: {added} notes added, {} in the file",
        notes.count()
    );
    assert!(added == 50 && notes.count() < 50);

    let notes = Notes::open(folder.path().join("kept"), locks).await?;
    let added = fifty_calls("add_note", notes.clone()).await?;
    println!("safe: {added} notes added, {} in the file", notes.count());
    assert_eq!((added, notes.count()), (50, 50));

    let text = "last".to_owned();
    // The call comes first: closing begins when `close` is called.
    let (last, ()) = tokio::join!(biased; notes.add_note(Parameters(Note { text })), async {
        notes.gate.close().await;
    });
    let late = notes
        .add_note(Parameters(Note {
            text: "too late".into(),
        }))
        .await;
    println!("shutdown: the call in flight was {last:?}, a later one is {late:?}");
    assert!(last.is_ok() && late.is_err() && notes.count() == 51);
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["serve", file] => {
            let notes = Notes::open(file.into(), None).await?;
            let gate = notes.gate.clone();
            notes
                .serve(rmcp::transport::stdio())
                .await?
                .waiting()
                .await?;
            gate.close().await;
            Ok(())
        }
        _ => example().await,
    }
}
