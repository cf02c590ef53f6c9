//! The part of the Language Server Protocol (3.17) that is spoken here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// 0-based; `character` counts UTF-16 units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) character: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Place {
    pub(crate) uri: String,
    pub(crate) range: Range,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diagnostic {
    pub(crate) range: Range,
    /// 1 error, 2 warning, 3 information, 4 hint.
    pub(crate) severity: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code_description: Option<CodeDescription>,
    pub(crate) source: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) related_information: Vec<Related>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct CodeDescription {
    pub(crate) href: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Related {
    pub(crate) location: Place,
    pub(crate) message: String,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) new_text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Initialize {
    pub(crate) root_uri: Option<String>,
    pub(crate) workspace_folders: Option<Vec<WorkspaceFolder>>,
    pub(crate) capabilities: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct WorkspaceFolder {
    pub(crate) uri: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FoldersChanged {
    pub(crate) event: FoldersEvent,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FoldersEvent {
    #[serde(default)]
    pub(crate) added: Vec<WorkspaceFolder>,
    #[serde(default)]
    pub(crate) removed: Vec<WorkspaceFolder>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    pub(crate) text_document: OpenedDocument,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OpenedDocument {
    pub(crate) uri: String,
    pub(crate) version: i64,
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    pub(crate) text_document: Document,
    pub(crate) content_changes: Vec<ContentChange>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ContentChange {
    /// Left out where the text is the whole text.
    #[serde(default)]
    pub(crate) range: Option<Range>,
    pub(crate) text: String,
}

/// Of a document that is saved or closed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfDocument {
    pub(crate) text_document: Document,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FilesChanged {
    pub(crate) changes: Vec<FileChange>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FileChange {
    pub(crate) uri: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct At {
    pub(crate) text_document: Document,
    pub(crate) position: Position,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Actions {
    pub(crate) text_document: Document,
    pub(crate) range: Range,
    #[serde(default)]
    pub(crate) context: ActionContext,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ActionContext {
    /// Kinds that are wanted; left out, all of them.
    #[serde(default)]
    pub(crate) only: Option<Vec<String>>,
}
