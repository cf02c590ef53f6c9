//! "Is it your file? Then delete it." Between the two, the file is given to somebody else.
//! Safe: the deletion names the version whose owner was checked.

#[path = "common/mod.rs"]
mod common;

use common::{Anything, somebody_else_runs};
use toctou_sync::{Cells, Error, Fence, Memory, Retry, Swap, update};

async fn dangerous_delete(files: &Memory, caller: &str) -> Result<bool, Error> {
    let owner = files.read("file").await?.map(|found| found.value);
    if owner.as_deref() != Some(caller.as_bytes()) {
        return Ok(false);
    }
    somebody_else_runs().await;
    files
        .write_fenced("file", Fence::new(0), b"deleted".to_vec())
        .await?;
    Ok(true)
}

async fn safe_delete(files: &Memory, caller: &str) -> Result<bool, Error> {
    let Some(found) = files.read("file").await? else {
        return Ok(false);
    };
    if found.value != caller.as_bytes() {
        return Ok(false);
    }
    somebody_else_runs().await;
    let deleted = files
        .compare_and_swap("file", Some(found.version), None)
        .await?;
    Ok(matches!(deleted, Swap::Done(_)))
}

async fn give_to_bob(files: &Memory) -> Result<(), Error> {
    update(files, "file", Retry::default(), |_| {
        Ok(Some(b"bob".to_vec()))
    })
    .await?;
    Ok(())
}

async fn file_of_alice() -> Result<Memory, Error> {
    let files = Memory::default();
    files
        .compare_and_swap("file", None, Some(b"alice".to_vec()))
        .await?;
    Ok(files)
}

pub async fn example() -> Anything {
    let files = file_of_alice().await?;
    let (deleted, given) =
        tokio::join!(biased; dangerous_delete(&files, "alice"), give_to_bob(&files));
    given?;
    let deleted = deleted?;
    println!("dangerous: alice deleted bob's file: {deleted}");
    assert!(deleted);

    let files = file_of_alice().await?;
    let (deleted, given) = tokio::join!(biased; safe_delete(&files, "alice"), give_to_bob(&files));
    given?;
    let deleted = deleted?;
    println!("safe: alice deleted bob's file: {deleted}");
    assert!(!deleted);
    assert_eq!(
        files.read("file").await?.map(|found| found.value),
        Some(b"bob".to_vec())
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
