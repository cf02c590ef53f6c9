//! "Does the report exist? No: write it." Two calls both see none, and both write.
//! Safe: create it only if it is not there, in one step.

#[path = "common/mod.rs"]
mod common;

use std::path::Path;

use common::{Anything, somebody_else_runs};
use toctou_sync::{Error, files};

async fn dangerous(report: &Path, text: &str) -> bool {
    if report.exists() {
        return false;
    }
    somebody_else_runs().await;
    std::fs::write(report, text).is_ok()
}

async fn safe(report: &Path, text: &str) -> Result<bool, Error> {
    match files::create(report, text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(Error::File { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

pub async fn example() -> Anything {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("lost.md");
    let saved = tokio::join!(dangerous(&report, "from A"), dangerous(&report, "from B"));
    println!(
        "dangerous: saved {saved:?}, and the file is {:?}",
        std::fs::read_to_string(&report)?
    );
    assert_eq!(
        saved,
        (true, true),
        "both were told that their report is saved"
    );

    let report = folder.path().join("kept.md");
    let saved = tokio::join!(safe(&report, "from A"), safe(&report, "from B"));
    let saved = (saved.0?, saved.1?);
    println!(
        "safe: saved {saved:?}, and the file is {:?}",
        std::fs::read_to_string(&report)?
    );
    assert!(
        saved.0 != saved.1,
        "one of them was told that there is one already"
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
