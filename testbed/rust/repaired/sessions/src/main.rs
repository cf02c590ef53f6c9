//! What a client has said so far, kept in memory: every tool looks and changes
//! under one guard, or in one step.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::sync::{Mutex, RwLock};

/// Names that are in use, for all sessions of the process.
static NAMES: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(|| Mutex::new(HashMap::new()));

#[derive(Clone, Default)]
pub struct Session {
    topics: Vec<String>,
    language: String,
}

#[derive(Clone, Default)]
pub struct Sessions {
    current: Arc<RwLock<Session>>,
    turns: Arc<AtomicU64>,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Topic {
    topic: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Claim {
    name: String,
    owner: String,
}

#[tool_router]
impl Sessions {
    /// The slow part comes first; then the change is made in place, under the writer's guard.
    #[tool(description = "Adds a topic to the session")]
    async fn add_topic(&self, Parameters(Topic { topic }): Parameters<Topic>) -> Result<String, ErrorData> {
        let language = detect(&topic).await;
        let mut session = self.current.write().await;
        session.language = language;
        session.topics.push(topic);
        Ok("added".to_owned())
    }

    #[tool(description = "Lists the topics of the session")]
    async fn list_topics(&self) -> Result<String, ErrorData> {
        Ok(self.current.read().await.topics.join(", "))
    }

    /// One guard from the look to the insert.
    #[tool(description = "Takes a name for somebody")]
    async fn claim_name(&self, Parameters(claim): Parameters<Claim>) -> Result<String, ErrorData> {
        let mut names = NAMES.lock().await;
        if names.contains_key(&claim.name) {
            return Err(ErrorData::invalid_params("the name is taken", None));
        }
        names.insert(claim.name, claim.owner);
        Ok("yours".to_owned())
    }

    /// One step.
    #[tool(description = "Counts a turn")]
    async fn next_turn(&self) -> Result<String, ErrorData> {
        let turn = self.turns.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(turn.to_string())
    }
}

async fn detect(text: &str) -> String {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    if text.is_ascii() { "en" } else { "other" }.to_owned()
}

#[tool_handler]
impl ServerHandler for Sessions {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Sessions::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}
