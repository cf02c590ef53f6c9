//! Two users edit one document. The second save overwrites the first.
//! Safe: a save names the version that was edited, and is refused if that is no longer the current one.

#[path = "common/mod.rs"]
mod common;

use common::{Anything, somebody_else_runs};
use toctou_sync::{Cells, Error, Fence, Memory, Swap};

async fn dangerous(documents: &Memory, change: &str) -> Result<(), Error> {
    let body = documents
        .read("document")
        .await?
        .map(|found| found.value)
        .unwrap_or_default();
    somebody_else_runs().await;
    let body = [&body, change.as_bytes()].concat();
    documents
        .write_fenced("document", Fence::new(0), body)
        .await?;
    Ok(())
}

/// False if somebody else saved in the meantime: the user has to look again.
async fn safe(documents: &Memory, change: &str) -> Result<bool, Error> {
    let found = documents.read("document").await?;
    let version = found.as_ref().map(|found| found.version);
    somebody_else_runs().await;
    let body = found.map(|found| found.value).unwrap_or_default();
    let body = [&body, change.as_bytes()].concat();
    let saved = documents
        .compare_and_swap("document", version, Some(body))
        .await?;
    Ok(matches!(saved, Swap::Done(_)))
}

async fn text(documents: &Memory) -> Result<String, Error> {
    let found = documents
        .read("document")
        .await?
        .map(|found| found.value)
        .unwrap_or_default();
    Ok(String::from_utf8_lossy(&found).into_owned())
}

pub async fn example() -> Anything {
    let documents = Memory::default();
    let (a, b) = tokio::join!(dangerous(&documents, "A"), dangerous(&documents, "B"));
    a?;
    b?;
    println!(
        "dangerous: both saved, the document is {:?}",
        text(&documents).await?
    );
    assert_eq!(text(&documents).await?.len(), 1, "one of them is lost");

    let documents = Memory::default();
    let (a, b) = tokio::join!(safe(&documents, "A"), safe(&documents, "B"));
    let (a, b) = (a?, b?);
    println!(
        "safe: saved {a} and {b}, the document is {:?}",
        text(&documents).await?
    );
    assert!(a != b, "one was refused");
    // It reads again, and its change comes after the other.
    assert!(safe(&documents, if a { "B" } else { "A" }).await?);
    assert_eq!(text(&documents).await?.len(), 2);
    Ok(())
}

#[tokio::main]
async fn main() -> Anything {
    example().await
}
