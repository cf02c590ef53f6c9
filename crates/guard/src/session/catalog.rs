//! The server's tools, as far as it tells.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::admit::{Gatekeeper, Tool};
use crate::session::Server;
use crate::wire::{Mirrored, mirrored};

/// Names beyond these come from a client that makes them up.
const MOST_TOOLS: usize = 10_000;

#[derive(Default)]
pub(super) struct Catalog {
    /// Whether a tool only reads.
    read_only: FxHashMap<Box<str>, bool>,
    /// Pages that have come so far, of a list that is being read.
    pages: FxHashMap<Box<str>, bool>,
    tools: FxHashMap<Box<str>, Arc<Tool>>,
    /// Arguments that stand in headers, of the few tools that have such.
    mirrored: FxHashMap<Box<str>, Arc<[Mirrored]>>,
    mirrored_pages: FxHashMap<Box<str>, Arc<[Mirrored]>>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    tools: Vec<Listed>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    annotations: Option<Annotations>,
    #[serde(rename = "inputSchema", default)]
    schema: serde_json::Value,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint")]
    read_only: Option<serde_json::Value>,
}

impl Catalog {
    /// Takes a page of the list; gives back where the next begins.
    pub(super) fn page(&mut self, result: &str) -> Option<String> {
        let page: Page = serde_json::from_str(result).ok()?;
        for tool in page.tools {
            // Only a plain `true` counts.
            let read_only = tool
                .annotations
                .and_then(|annotations| annotations.read_only)
                .is_some_and(|value| value == serde_json::Value::Bool(true));
            let marked = mirrored(&tool.schema);
            if self.pages.len() < MOST_TOOLS {
                if !marked.is_empty() {
                    let name = tool.name.as_str().into();
                    self.mirrored_pages.insert(name, marked.into());
                }
                self.pages.insert(tool.name.into(), read_only);
            }
        }
        if page.next_cursor.is_some() && self.pages.len() < MOST_TOOLS {
            return page.next_cursor;
        }
        self.read_only = std::mem::take(&mut self.pages);
        self.mirrored = std::mem::take(&mut self.mirrored_pages);
        self.tools.clear();
        None
    }

    pub(super) fn mirrored(&self, tool: &str) -> Arc<[Mirrored]> {
        self.mirrored.get(tool).cloned().unwrap_or_default()
    }

    pub(super) fn tool(&mut self, keeper: &Gatekeeper, server: &Server, name: &str) -> Arc<Tool> {
        if let Some(tool) = self.tools.get(name) {
            return Arc::clone(tool);
        }
        let read_only = self.read_only.get(name).copied();
        let tool = Arc::new(keeper.tool(
            &server.name,
            &server.namespace,
            name,
            read_only == Some(true),
            read_only.is_some(),
        ));
        if self.tools.len() >= MOST_TOOLS {
            self.tools.clear();
        }
        self.tools.insert(name.into(), Arc::clone(&tool));
        tool
    }
}
