//! A proxy that closes the race windows of an MCP server without touching it.

pub mod policy;
pub mod wire;
