//! Notes in a file, names and a counter in memory, jobs in a database: no tool
//! has a window in it.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use rusqlite::Connection;
use serde::Deserialize;
use tokio::sync::{Mutex, RwLock};

type Result<T, E = ErrorData> = std::result::Result<T, E>;

#[derive(Clone)]
pub struct Notes {
    file: PathBuf,
    folder: PathBuf,
    names: Arc<Mutex<HashMap<String, String>>>,
    limits: Arc<RwLock<Limits>>,
    served: Arc<AtomicU64>,
    jobs: Arc<std::sync::Mutex<Connection>>,
}

#[derive(Clone)]
pub struct Limits {
    left: u32,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Note {
    name: String,
    text: String,
}

#[tool_router]
impl Notes {
    /// The file is locked, for other processes too, from the read to the write.
    #[tool(description = "Adds a note")]
    async fn add_note(&self, Parameters(note): Parameters<Note>) -> Result<String> {
        let door = std::fs::File::create("notes.lock").map_err(failed)?;
        door.lock().map_err(failed)?;
        let before = std::fs::read_to_string(&self.file).map_err(failed)?;
        let mut notes: Vec<String> = serde_json::from_str(&before).map_err(failed)?;
        notes.push(note.text);
        let after = serde_json::to_string(&notes).map_err(failed)?;
        std::fs::write(&self.file, after).map_err(failed)?;
        door.unlock().map_err(failed)?;
        Ok("added".to_owned())
    }

    /// The file system decides who made it.
    #[tool(description = "Makes a file for a note")]
    async fn new_note(&self, Parameters(note): Parameters<Note>) -> Result<String> {
        let path = self.folder.join(format!("{}.md", note.name));
        std::fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        Ok("created".to_owned())
    }

    /// One acquisition from the look to the insert.
    #[tool(description = "Reserves a name")]
    async fn reserve(&self, Parameters(note): Parameters<Note>) -> Result<String> {
        let mut names = self.names.lock().await;
        if names.contains_key(&note.name) {
            return Err(ErrorData::invalid_params("it is reserved", None));
        }
        names.insert(note.name, note.text);
        Ok("reserved".to_owned())
    }

    /// Changed in place, under the writer's guard.
    #[tool(description = "Spends one of what is left")]
    async fn spend(&self) -> Result<String> {
        let mut limits = self.limits.write().await;
        limits.left -= 1;
        audit().await;
        Ok("spent".to_owned())
    }

    /// One step.
    #[tool(description = "Counts a call")]
    async fn count(&self) -> Result<String> {
        let served = self.served.fetch_add(1, Ordering::SeqCst);
        Ok(served.to_string())
    }

    /// The statement asks again, and says how many rows it changed.
    #[tool(description = "Takes a job")]
    async fn take_job(&self) -> Result<String> {
        let id = self.next_job()?;
        self.start_job(&id)?;
        Ok(id)
    }
}

impl Notes {
    fn next_job(&self) -> Result<String> {
        let jobs = self.jobs.lock().unwrap();
        let id = jobs.query_row("SELECT id FROM jobs WHERE state = 'waiting' LIMIT 1", [], |row| row.get(0)).map_err(failed)?;
        Ok(id)
    }

    fn start_job(&self, id: &str) -> Result<()> {
        let jobs = self.jobs.lock().unwrap();
        let changed = jobs.execute(
            "UPDATE jobs SET state = 'running' WHERE id = ?1 AND state = 'waiting'",
            [id],
        ).map_err(failed)?;
        if changed == 0 {
            return Err(ErrorData::invalid_params("somebody else took it", None));
        }
        Ok(())
    }
}

#[tool_handler]
impl ServerHandler for Notes {}

async fn audit() {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

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
    prepare("notes.json", "[]")?;
    std::fs::create_dir_all("notes")?;
    let jobs = Connection::open("jobs.db")?;
    jobs.execute_batch(
        "CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, state TEXT NOT NULL);
         INSERT OR IGNORE INTO jobs VALUES ('wash', 'waiting'), ('cook', 'waiting'), ('sweep', 'waiting')",
    )?;
    let notes = Notes {
        file: PathBuf::from("notes.json"),
        folder: PathBuf::from("notes"),
        names: Arc::new(Mutex::new(HashMap::new())),
        limits: Arc::new(RwLock::new(Limits { left: 10 })),
        served: Arc::new(AtomicU64::new(0)),
        jobs: Arc::new(std::sync::Mutex::new(jobs)),
    };
    notes.serve(stdio()).await?.waiting().await?;
    Ok(())
}
