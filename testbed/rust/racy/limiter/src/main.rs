//! Limits on calls: each is tested before the work and counted after it, so that
//! calls at the same time all pass.

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
        let used = self.used.load(Ordering::SeqCst);
        if used >= LIMIT {
            return Err(ErrorData::invalid_request("rate limit exceeded", None));
        }
        let answer = answer(&question.text).await;
        self.used.store(used + 1, Ordering::SeqCst);
        Ok(answer)
    }

    #[tool(description = "Asks, within the limit of one user")]
    async fn ask_as(&self, Parameters(question): Parameters<UserQuestion>) -> Result<String, ErrorData> {
        let used = self.by_user.lock().await.get(&question.user).copied().unwrap_or(0);
        if used >= LIMIT {
            return Err(ErrorData::invalid_request("rate limit exceeded", None));
        }
        let answer = answer(&question.text).await;
        self.by_user.lock().await.insert(question.user, used + 1);
        Ok(answer)
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
