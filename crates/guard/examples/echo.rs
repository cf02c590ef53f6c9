//! A server that answers at once, for `benches/guard`: what is measured should
//! be the guard, not the server.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};

/// What other proxies want to hear before they pass on a call.
const HELLO: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;

fn main() -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(id) = line.split("\"id\":").nth(1) {
            let end = id.find([',', '}']).unwrap_or(id.len());
            let result = if line.contains("\"tools/call\"") {
                r#"{"content":[]}"#
            } else if line.contains("\"initialize\"") {
                HELLO
            } else if line.contains("\"tools/list\"") {
                TOOLS
            } else {
                "{}"
            };
            writeln!(
                output,
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}",
                id[..end].trim()
            )?;
        }
        line.clear();
        // Whatever came together is answered together.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}
