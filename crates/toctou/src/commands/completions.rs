//! `toctou completions`: a script for the user's shell.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs};
use crate::errors::Error;
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toctou", &mut script);
    output::to_stdout(&String::from_utf8_lossy(&script))
}
