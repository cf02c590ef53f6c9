//! `toctou`: finds race conditions in MCP servers.
//!
//! Parses the command line, runs one command, and turns what comes back into
//! an exit code. Everything that can go wrong has an entry in [`errors`].

mod cli;
mod commands;
mod config;
mod confine;
mod discover;
mod errors;
mod fetch;
mod fix;
mod git;
mod languages;
mod output;
mod pipeline;
mod roles;
mod select;
mod since;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let color = terminal::color_of_stderr();
            // Nobody may be listening any more; the exit code still tells.
            terminal::to_stderr(&error.render(color));
            ExitCode::from(error.exit_code())
        }
    }
}
