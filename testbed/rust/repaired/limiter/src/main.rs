//! Limits on calls: tested and counted in one step, before the work begins.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ErrorData, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use tokio::sync::Mutex;

const LIMIT: u32 = 10;

#[derive(Clone, Default)]
pub struct Limiter {
    used: Arc<AtomicU32>,
    by_user: Arc<Mutex<HashMap<String, u32>>>,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Question {
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub struct UserQuestion {
    user: String,
    text: String,
}

#[tool_router]
impl Limiter {
    #[tool(description = "Asks, within the limit of all")]
    async fn ask(&self, Parameters(question): Parameters<Question>) -> Result<String, ErrorData> {
        if self.used.fetch_add(1, Ordering::SeqCst) >= LIMIT {
            return Err(ErrorData::invalid_request("rate limit exceeded", None));
        }
        Ok(answer(&question.text).await)
    }

    #[tool(description = "Asks, within the limit of one user")]
    async fn ask_as(&self, Parameters(question): Parameters<UserQuestion>) -> Result<String, ErrorData> {
        self.count(question.user).await?;
        Ok(answer(&question.text).await)
    }
}

impl Limiter {
    /// The guard is held from the look to the count, not during the work.
    async fn count(&self, user: String) -> Result<(), ErrorData> {
        let mut by_user = self.by_user.lock().await;
        let used = by_user.get(&user).copied().unwrap_or(0);
        if used >= LIMIT {
            return Err(ErrorData::invalid_request("rate limit exceeded", None));
        }
        by_user.insert(user, used + 1);
        Ok(())
    }
}

async fn answer(text: &str) -> String {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    text.to_uppercase()
}

#[tool_handler]
impl ServerHandler for Limiter {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Limiter::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}
