//! What an editor offers to do about a finding.
//!
//! To ignore it needs a reason, and only a person has one: the comment is put
//! there without it, which is an error until somebody writes why it is safe.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use toctou_core::finding::Edit;
use toctou_core::{Finding, SourceFile};

use crate::protocol::{Position, Range, TextEdit};
use crate::{Engine, Scan, diagnostics, text, uri};

/// Where the finding is, and in which state of the folder.
pub(crate) struct Context<'a> {
    /// The editor's name for the root.
    pub(crate) folder: &'a Path,
    pub(crate) scan: &'a Scan,
    pub(crate) engine: &'a dyn Engine,
}

impl Context<'_> {
    /// Changes that close the window first, the comment last.
    pub(crate) fn of_finding(&self, finding: &Finding, diagnostic: &Value) -> Vec<Value> {
        let mut actions = Vec::new();
        if let Some(edit) = &finding.edit
            && let Some(changes) = self.changes(edit)
        {
            actions.push(action(&edit.title, true, &changes, diagnostic));
        }
        if let Some(source) = diagnostics::source(self.scan, &finding.location.file)
            && let Some(change) = self.ignore(finding, source)
        {
            let changes = BTreeMap::from([(self.uri(&finding.location.file), vec![change])]);
            let title = format!("Ignore {} here, with a reason", finding.rule);
            actions.push(action(&title, false, &changes, diagnostic));
        }
        actions
    }

    fn uri(&self, file: &str) -> String {
        uri::of_path(&self.folder.join(file))
    }

    fn changes(&self, edit: &Edit) -> Option<BTreeMap<String, Vec<TextEdit>>> {
        let mut all: BTreeMap<String, Vec<TextEdit>> = BTreeMap::new();
        for change in &edit.changes {
            let source = diagnostics::source(self.scan, &change.file)?;
            all.entry(self.uri(&change.file))
                .or_default()
                .push(TextEdit {
                    range: Range {
                        start: text::position(&source.text, change.start as usize),
                        end: text::position(&source.text, change.end as usize),
                    },
                    new_text: change.text.clone(),
                });
        }
        Some(all)
    }

    /// A line of its own above the finding, or a word at the end of the comment
    /// that is there already. Not where it would be part of a string.
    fn ignore(&self, finding: &Finding, source: &SourceFile) -> Option<TextEdit> {
        let path = self.folder.join(&finding.location.file);
        let mark = self.engine.comment(&path)?;
        let line = finding.location.line;
        let code = source.line_text(line);
        let indent = &code[..code.len() - code.trim_start().len()];
        let comment = format!("{indent}{mark} toctou: ignore[{}] ", finding.rule);
        let ending = if source.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let at = Position {
            line: line.saturating_sub(1),
            character: 0,
        };
        let offset = text::offset(&source.text, at);
        let mut after = source.text.to_string();
        after.insert_str(offset, &format!("{comment}{ending}"));
        self.engine
            .is_comment(&path, &after, line)
            .then(|| TextEdit {
                range: Range { start: at, end: at },
                new_text: format!("{comment}{ending}"),
            })
    }
}

fn action(
    title: &str,
    preferred: bool,
    changes: &BTreeMap<String, Vec<TextEdit>>,
    diagnostic: &Value,
) -> Value {
    json!({
        "title": title,
        "kind": "quickfix",
        "isPreferred": preferred,
        "diagnostics": [diagnostic],
        "edit": { "changes": changes },
    })
}
