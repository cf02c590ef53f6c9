//! The server of `echo.rs` once more, written with the Rust SDK as servers are: for `benches/guard`,
//! what the guard leaves of the throughput of a real one.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};

struct Echo;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u64,
}

#[tool_router]
impl Echo {
    #[tool(description = "Gives back the number")]
    async fn echo(&self, Parameters(number): Parameters<Number>) -> String {
        number.n.to_string()
    }
}

#[tool_handler]
impl ServerHandler for Echo {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Echo.serve(rmcp::transport::stdio())
        .await?
        .waiting()
        .await?;
    Ok(())
}
