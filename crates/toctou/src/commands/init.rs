//! `toctou init`: a config to start from.

use crate::cli::InitArgs;
use crate::config;
use crate::errors::Error;
use crate::{output, terminal};

/// Every key, commented out with `#: `, so that a test can turn them all on.
pub(crate) const TEMPLATE: &str = include_str!("init.toml");

pub(crate) fn run(args: &InitArgs) -> Result<(), Error> {
    if !args.folder.is_dir() {
        return Err(Error::NoSuchPath {
            path: args.folder.clone(),
        });
    }
    let path = args.folder.join(config::NAME);
    if path.exists() && !args.force {
        return Err(Error::Exists { path });
    }
    output::to_file(&path, TEMPLATE)?;
    terminal::to_stderr(&format!("wrote {}\n", path.display()));
    Ok(())
}
