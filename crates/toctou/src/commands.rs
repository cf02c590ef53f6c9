//! One file per command; this is the list.

pub(crate) mod baseline;
pub(crate) mod completions;
pub(crate) mod dev;
pub(crate) mod explain;
pub(crate) mod guard;
pub(crate) mod init;
pub(crate) mod lsp;
pub(crate) mod mcp;
pub(crate) mod prove;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod serve;

use crate::cli::{Cli, Command};
use crate::errors::Error;
use crate::terminal;

/// Runs one command; the number is the exit code.
pub(crate) fn run(cli: Cli) -> Result<u8, Error> {
    terminal::choose_color(cli.color);
    match cli.command {
        Command::Scan(args) => scan::run(&args),
        Command::Explain(args) => explain::run(&args).map(|()| 0),
        Command::Rules(args) => rules::run(&args).map(|()| 0),
        Command::Init(args) => init::run(&args).map(|()| 0),
        Command::Baseline(args) => baseline::run(&args).map(|()| 0),
        Command::Guard(args) => guard::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Lsp => lsp::run().map(|()| 0),
        Command::Mcp(args) => mcp::run(&args).map(|()| 0),
        Command::Serve(args) => serve::run(&args).map(|()| 0),
        Command::Completions(args) => completions::run(&args).map(|()| 0),
        Command::Dev(args) => dev::run(&args).map(|()| 0),
    }
}
