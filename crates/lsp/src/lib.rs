//! The language server: findings while you type.
//!
//! Knows the protocol and nothing of scanning: whoever starts it brings an
//! [`Engine`]. One thread talks to the editor and never waits; scans run on
//! threads of their own, one per folder, and are told to stop when the text
//! has moved on. A race is between files, so a folder is always scanned whole,
//! with what is open in the editor in place of what is on disk.

mod actions;
mod diagnostics;
mod folders;
mod hover;
mod protocol;
mod questions;
mod server;
mod text;
mod transport;
mod uri;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;
use toctou_core::{Finding, SourceFile};

pub use server::{serve, serve_stdio};

/// Texts of the editor, by absolute path.
pub type Overlay = BTreeMap<PathBuf, Arc<str>>;

/// What a scan of a folder gives.
#[derive(Debug, Default)]
pub struct Scan {
    /// What is to be shown.
    pub findings: Vec<Finding>,
    /// Sorted by path.
    pub sources: Vec<SourceFile>,
    /// Comments and settings that are wrong.
    pub problems: Vec<Problem>,
}

/// Something to mend before toctou does what its user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Absolute, or relative to the folder.
    pub path: PathBuf,
    /// 1-based.
    pub line: u32,
    pub text: String,
}

/// Why there is no scan.
#[derive(Debug, Error)]
pub enum Failure {
    /// It was told to.
    #[error("stopped")]
    Stopped,
    #[error("{text}")]
    Failed {
        text: String,
        problems: Vec<Problem>,
    },
}

/// Who scans.
pub trait Engine: Send + Sync + 'static {
    fn scan(&self, folder: &Path, overlay: &Overlay, stop: &AtomicBool) -> Result<Scan, Failure>;

    /// What begins a comment in a file of this name.
    fn comment(&self, path: &Path) -> Option<&'static str>;

    /// Is there a toctou comment on this line, and not just text that looks like one?
    fn is_comment(&self, path: &Path, text: &str, line: u32) -> bool;
}

/// The connection broke, or the editor does not keep to the protocol.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Protocol(#[from] lsp_server::ProtocolError),
    #[error("standard input or output failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("the editor went away without a word")]
    Gone,
}
