//! Read a file, add to it, write it back. Two calls both read the old one, and one addition is lost.
//! Safe: under a lock that also reaches other processes, and with a file that is never half written.

#[path = "common/mod.rs"]
mod common;

use std::path::Path;

use common::{Anything, bytes, number, somebody_else_runs};
use toctou_sync::{Host, HostOptions, Wait, files};

async fn dangerous(file: &Path) -> std::io::Result<()> {
    let count = number(Some(&std::fs::read(file)?));
    somebody_else_runs().await;
    std::fs::write(file, bytes(count + 1))
}

async fn safe(host: &Host, file: &Path) -> toctou_sync::Result<()> {
    files::update(host, file, Wait::Forever, |old| {
        Ok(bytes(number(old.as_deref()) + 1))
    })
    .await
}

pub async fn example() -> Anything {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("user.json");
    std::fs::write(&file, "0")?;
    let (a, b) = tokio::join!(dangerous(&file), dangerous(&file));
    a?;
    b?;
    println!(
        "dangerous: two calls, counted {}",
        std::fs::read_to_string(&file)?
    );
    assert_eq!(std::fs::read_to_string(&file)?, "1");

    std::fs::write(&file, "0")?;
    // Two of them, as two processes would have.
    let open = || Host::open(HostOptions::in_directory(folder.path().join("locks")));
    let hosts = [open()?, open()?];
    let (a, b) = tokio::join!(safe(&hosts[0], &file), safe(&hosts[1], &file));
    a?;
    b?;
    println!(
        "safe: two calls, counted {}",
        std::fs::read_to_string(&file)?
    );
    assert_eq!(std::fs::read_to_string(&file)?, "2");
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
