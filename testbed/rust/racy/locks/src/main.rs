//! Settings in a file, with a lock that each tool uses wrongly in its own way.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::sync::Mutex;

type Settings = BTreeMap<String, String>;

#[derive(Clone)]
pub struct Locks {
    settings: PathBuf,
    log: PathBuf,
    door: Arc<Mutex<()>>,
    state: Arc<Mutex<Settings>>,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Change {
    key: String,
    value: String,
}

#[tool_router]
impl Locks {
    /// The file is read before the lock is taken.
    #[tool(description = "Changes a setting")]
    async fn set(&self, Parameters(change): Parameters<Change>) -> Result<String, ErrorData> {
        let text = tokio::fs::read_to_string(&self.settings).await.map_err(failed)?;
        let mut settings: Settings = serde_json::from_str(&text).map_err(failed)?;
        settings.insert(change.key, change.value);
        let text = serde_json::to_string(&settings).map_err(failed)?;
        let _door = self.door.lock().await;
        tokio::fs::write(&self.settings, text).await.map_err(failed)?;
        Ok("changed".to_owned())
    }

    /// The lock is one of this process; the server is started once per client.
    #[tool(description = "Adds a line to the log")]
    async fn log(&self, Parameters(change): Parameters<Change>) -> Result<String, ErrorData> {
        let _door = self.door.lock().await;
        let text = tokio::fs::read_to_string(&self.log).await.map_err(failed)?;
        let text = format!("{text}{}={}\n", change.key, change.value);
        tokio::fs::write(&self.log, text).await.map_err(failed)?;
        Ok("logged".to_owned())
    }

    /// The copy is taken under the lock and saved after it: the older one can come last.
    #[tool(description = "Remembers a setting")]
    async fn remember(&self, Parameters(change): Parameters<Change>) -> Result<String, ErrorData> {
        let copy = {
            let mut state = self.state.lock().await;
            state.insert(change.key, change.value);
            state.clone()
        };
        let text = serde_json::to_string(&copy).map_err(failed)?;
        tokio::fs::write("state.json", text).await.map_err(failed)?;
        Ok("remembered".to_owned())
    }
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[tool_handler]
impl ServerHandler for Locks {}

/// A file that is there from the start.
fn prepare(path: &str, content: &str) -> std::io::Result<()> {
    match std::fs::File::create_new(path) {
        Ok(mut file) => file.write_all(content.as_bytes()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    prepare("settings.json", "{}")?;
    prepare("changes.log", "")?;
    let locks = Locks {
        settings: PathBuf::from("settings.json"),
        log: PathBuf::from("changes.log"),
        door: Arc::default(),
        state: Arc::default(),
    };
    locks.serve(stdio()).await?.waiting().await?;
    Ok(())
}
