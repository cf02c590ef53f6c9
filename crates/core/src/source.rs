//! Source files and places in them.

use std::sync::Arc;

/// Index of a file in [`crate::ir::Program::files`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub u32);

/// A byte range in one file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }
}

/// What a file is there for. Only [`FileRole::Product`] counts towards the score;
/// tests are not read at all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileRole {
    Product,
    Example,
    Script,
    /// The programs of its package do without it.
    Unused,
}

/// A file that was read. `path` is relative to the scanned root, with `/`.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub path: Arc<str>,
    pub text: Arc<str>,
    pub role: FileRole,
    /// Byte offset of the start of every line.
    line_starts: Vec<u32>,
}

/// A 1-based position. `column` counts Unicode scalar values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineColumn {
    pub line: u32,
    pub column: u32,
}

impl SourceFile {
    pub fn new(path: Arc<str>, text: Arc<str>, role: FileRole) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes());
        let mut line_starts = Vec::with_capacity(breaks.clone().count() + 1);
        line_starts.push(0);
        line_starts.extend(breaks.map(|at| at as u32 + 1));
        Self {
            path,
            text,
            role,
            line_starts,
        }
    }

    pub fn line_count(&self) -> u32 {
        self.line_starts.len() as u32
    }

    /// The 1-based line of a byte offset.
    pub fn line(&self, offset: u32) -> u32 {
        self.line_starts.partition_point(|&s| s <= offset) as u32
    }

    pub fn line_column(&self, offset: u32) -> LineColumn {
        let line = self.line(offset);
        let start = self.line_starts[line as usize - 1] as usize;
        let end = (offset as usize).min(self.text.len());
        let column = self
            .text
            .get(start..end)
            .map_or(end.saturating_sub(start), |s| s.chars().count()) as u32
            + 1;
        LineColumn { line, column }
    }

    /// The text of a 1-based line, without its line break.
    pub fn line_text(&self, line: u32) -> &str {
        let Some(&start) = self.line_starts.get((line as usize).wrapping_sub(1)) else {
            return "";
        };
        let end = self
            .line_starts
            .get(line as usize)
            .map_or(self.text.len(), |&e| e as usize);
        self.text
            .get(start as usize..end)
            .unwrap_or("")
            .trim_end_matches(['\n', '\r'])
    }

    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }
}
