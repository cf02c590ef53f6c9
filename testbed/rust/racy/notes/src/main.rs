//! Notes in a file, a cache and a counter in memory, jobs in a database: each
//! tool has a window in it.

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
    /// Two calls read the same list; the second write drops the first one's note.
    #[tool]
    async fn add_note(&self, Parameters(text): Parameters<String>) -> Result<String> {
        let before = tokio::fs::read_to_string(&self.file).await?;
        let mut notes: Vec<String> = serde_json::from_str(&before)?;
        notes.push(text);
        tokio::fs::write(&self.file, serde_json::to_string(&notes)?).await?;
        Ok("added".to_owned())
    }

    /// Two calls both see that there is no such file.
    #[tool]
    async fn new_note(&self, Parameters((name, text)): Parameters<(String, String)>) -> Result<String> {
        let path = self.folder.join(format!("{name}.md"));
        if path.exists() {
            anyhow::bail!("{name} exists");
        }
        tokio::fs::write(&path, text).await?;
        Ok("created".to_owned())
    }

    /// The lock is given back between the look and the insert.
    #[tool]
    async fn open_page(&self, Parameters(url): Parameters<String>) -> Result<String> {
        let known = self.pages.lock().await.contains_key(&url);
        if known {
            return Ok("open already".to_owned());
        }
        let page = fetch(&url).await?;
        self.pages.lock().await.insert(url, page.clone());
        Ok(page)
    }

    /// Copied out, changed, put back: what others did meanwhile is gone.
    #[tool]
    async fn spend(&self) -> Result<String> {
        let mut limits = self.limits.read().await.clone();
        limits.left -= 1;
        fetch("audit").await?;
        *self.limits.write().await = limits;
        Ok("spent".to_owned())
    }

    /// `load` and `store` are two steps.
    #[tool]
    async fn count(&self) -> Result<String> {
        let served = self.served.load(Ordering::SeqCst);
        self.served.store(served + 1, Ordering::SeqCst);
        Ok(served.to_string())
    }

    /// Two workers choose the same job.
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
        jobs.execute("UPDATE jobs SET state = 'running' WHERE id = ?1", [id])?;
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
