//! Notes in a file, a cache and a counter in memory, jobs in a database: no tool
//! has a window in it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServiceExt, tool, tool_handler, tool_router};
use rusqlite::Connection;
use tokio::sync::{Mutex, RwLock};

#[derive(Clone)]
pub struct Notes {
    file: PathBuf,
    folder: PathBuf,
    pages: Arc<Mutex<HashMap<String, String>>>,
    limits: Arc<RwLock<Limits>>,
    served: Arc<AtomicU64>,
    jobs: Arc<std::sync::Mutex<Connection>>,
}

#[derive(Clone)]
pub struct Limits {
    left: u32,
}

#[tool_router]
impl Notes {
    /// The file is locked, for other processes too, from the read to the write.
    #[tool]
    async fn add_note(&self, Parameters(text): Parameters<String>) -> Result<String> {
        let door = std::fs::File::create("notes.lock")?;
        door.lock()?;
        let before = std::fs::read_to_string(&self.file)?;
        let mut notes: Vec<String> = serde_json::from_str(&before)?;
        notes.push(text);
        std::fs::write(&self.file, serde_json::to_string(&notes)?)?;
        door.unlock()?;
        Ok("added".to_owned())
    }

    /// The file system decides who made it.
    #[tool]
    async fn new_note(&self, Parameters(name): Parameters<String>) -> Result<String> {
        let path = self.folder.join(format!("{name}.md"));
        std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok("created".to_owned())
    }

    /// One acquisition from the look to the insert.
    #[tool]
    async fn open_page(&self, Parameters(url): Parameters<String>) -> Result<String> {
        let mut pages = self.pages.lock().await;
        if pages.contains_key(&url) {
            return Ok("open already".to_owned());
        }
        let page = fetch(&url).await?;
        pages.insert(url, page.clone());
        Ok(page)
    }

    /// Changed in place, under the writer's guard.
    #[tool]
    async fn spend(&self) -> Result<String> {
        let mut limits = self.limits.write().await;
        limits.left -= 1;
        fetch("audit").await?;
        Ok("spent".to_owned())
    }

    /// One step.
    #[tool]
    async fn count(&self) -> Result<String> {
        let served = self.served.fetch_add(1, Ordering::SeqCst);
        Ok(served.to_string())
    }

    /// The statement asks again, and says how many rows it changed.
    #[tool]
    async fn take_job(&self) -> Result<String> {
        let id = self.next_job()?;
        self.start_job(&id)?;
        Ok(id)
    }
}

impl Notes {
    fn next_job(&self) -> Result<String> {
        let jobs = self.jobs.lock().unwrap();
        let id = jobs.query_row("SELECT id FROM jobs WHERE state = 'waiting' LIMIT 1", [], |row| row.get(0))?;
        Ok(id)
    }

    fn start_job(&self, id: &str) -> Result<()> {
        let jobs = self.jobs.lock().unwrap();
        let changed = jobs.execute(
            "UPDATE jobs SET state = 'running' WHERE id = ?1 AND state = 'waiting'",
            [id],
        )?;
        if changed == 0 {
            anyhow::bail!("somebody else took it");
        }
        Ok(())
    }
}

#[tool_handler]
impl rmcp::ServerHandler for Notes {}

async fn fetch(url: &str) -> Result<String> {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    Ok(url.to_owned())
}

#[tokio::main]
async fn main() -> Result<()> {
    let notes = Notes {
        file: PathBuf::from("notes.json"),
        folder: PathBuf::from("notes"),
        pages: Arc::new(Mutex::new(HashMap::new())),
        limits: Arc::new(RwLock::new(Limits { left: 10 })),
        served: Arc::new(AtomicU64::new(0)),
        jobs: Arc::new(std::sync::Mutex::new(Connection::open("jobs.db")?)),
    };
    notes.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
