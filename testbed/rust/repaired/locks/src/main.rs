//! Settings in a file, under a lock that other processes see, too, from before
//! the read until after the write.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;

type Settings = BTreeMap<String, String>;

#[derive(Clone)]
pub struct Locks {
    settings: PathBuf,
    log: PathBuf,
    door: Arc<Mutex<()>>,
    state: Arc<Mutex<Settings>>,
}

/// Both locks, given back together.
struct Door<'a> {
    _here: MutexGuard<'a, ()>,
    _everywhere: File,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Change {
    key: String,
    value: String,
}

#[tool_router]
impl Locks {
    #[tool(description = "Changes a setting")]
    async fn set(&self, Parameters(change): Parameters<Change>) -> Result<String, ErrorData> {
        let _door = self.open_door()?;
        let text = std::fs::read_to_string(&self.settings).map_err(failed)?;
        let mut settings: Settings = serde_json::from_str(&text).map_err(failed)?;
        settings.insert(change.key, change.value);
        let text = serde_json::to_string(&settings).map_err(failed)?;
        std::fs::write(&self.settings, text).map_err(failed)?;
        Ok("changed".to_owned())
    }

    /// What is only added to needs no lock.
    #[tool(description = "Adds a line to the log")]
    async fn log(&self, Parameters(change): Parameters<Change>) -> Result<String, ErrorData> {
        let mut log = File::options().create(true).append(true).open(&self.log).map_err(failed)?;
        let line = format!("{}={}\n", change.key, change.value);
        log.write_all(line.as_bytes()).map_err(failed)?;
        Ok("logged".to_owned())
    }

    /// Saved before the lock is given back.
    #[tool(description = "Remembers a setting")]
    async fn remember(&self, Parameters(change): Parameters<Change>) -> Result<String, ErrorData> {
        let mut state = self.state.lock().map_err(failed)?;
        state.insert(change.key, change.value);
        let text = serde_json::to_string(&*state).map_err(failed)?;
        std::fs::write("state.json", text).map_err(failed)?;
        Ok("remembered".to_owned())
    }
}

impl Locks {
    fn open_door(&self) -> Result<Door<'_>, ErrorData> {
        let here = self.door.lock().map_err(failed)?;
        let everywhere = File::create("settings.lock").map_err(failed)?;
        everywhere.lock().map_err(failed)?;
        Ok(Door { _here: here, _everywhere: everywhere })
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
