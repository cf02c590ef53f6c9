//! A finding: a window with a name, an explanation and a way out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interleaving::Interleaving;
use crate::rule::{Confidence, Persona, Scope, Severity};

/// What is raced on.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct Resource {
    pub kind: ResourceKind,
    /// As the source names it: `this.memoryFilePath`, `accounts.balance`.
    pub key: String,
}

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    File,
    Row,
    Memory,
    Kv,
    External,
    Lock,
    Server,
}

/// A place in the source. Lines and columns are 1-based, the end is exclusive.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct Location {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    pub function: String,
}

/// How a client reaches the window.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct EntryPoint {
    pub kind: EntryKind,
    pub name: String,
    pub file: String,
    pub line: u32,
    /// Functions called on the way, outermost first.
    pub via: Vec<String>,
}

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    Tool,
    Resource,
    Prompt,
    Request,
    Route,
    Event,
    Timer,
    /// An exported function of a library without a server.
    Export,
    /// Code that runs once, when the process starts.
    Startup,
}

impl EntryKind {
    /// What an MCP client asks for.
    pub fn is_call(self) -> bool {
        use EntryKind::{Prompt, Request, Resource, Tool};
        matches!(self, Tool | Resource | Prompt | Request)
    }

    pub fn noun(self) -> &'static str {
        match self {
            Self::Tool => "MCP tool",
            Self::Resource => "MCP resource",
            Self::Prompt => "MCP prompt",
            Self::Request => "MCP request handler",
            Self::Route => "HTTP route",
            Self::Event => "event handler",
            Self::Timer => "timer",
            Self::Export => "exported function",
            Self::Startup => "start-up code",
        }
    }
}

/// Why a finding is not counted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Suppression {
    pub kind: SuppressionKind,
    /// The reason that the user wrote.
    pub reason: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SuppressionKind {
    Comment,
    Config,
    Baseline,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub rule: String,
    pub severity: Severity,
    pub confidence: Confidence,
    pub persona: Persona,
    pub scopes: Vec<Scope>,
    pub message: String,
    /// How to fix it here.
    pub fix: String,
    /// Why the tool believes that calls can meet here.
    pub because: String,
    pub fingerprint: String,
    /// The fingerprint without the path: what a renamed file takes with it.
    #[serde(skip)]
    pub anchor: String,
    pub resource: Resource,
    /// The write, as seen in the function where read and write meet.
    pub location: Location,
    /// The read, as seen in the same function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Location>,
    /// The point between them where somebody else runs, if it has a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Location>,
    pub entry_points: Vec<EntryPoint>,
    pub interleaving: Interleaving,
    /// The same code in other files: a build for another module system, another bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<Location>,
    /// In a test, an example or a script: shown, not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_product: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppression>,
    /// A change of the source that closes the window, where it is safe to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

/// A change of the source. Nobody makes it unasked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// What it does, in a few words.
    pub title: String,
    /// In one file each, none of them overlapping.
    pub changes: Vec<Change>,
}

/// Replaces the bytes `start..end` of a file's text, counted behind a byte order mark.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub file: String,
    pub start: u32,
    pub end: u32,
    pub text: String,
}

/// The head of a report.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub score: u32,
    pub grade: String,
    pub files: u32,
    pub functions: u32,
    pub entry_points: u32,
    /// Files that were there and not analysed, for any reason.
    pub skipped: u32,
    pub suppressed: u32,
    /// What 100 minus the score is made up of, in the order of the rules' ids.
    #[serde(default)]
    pub deductions: Vec<Deduction>,
    /// A critical finding of high confidence keeps the grade at D or below.
    #[serde(default)]
    pub capped: bool,
}

/// What the findings of one rule take off the score.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Deduction {
    pub rule: String,
    /// Findings that count; past the second they cost nothing.
    pub findings: u32,
    /// For the first finding.
    pub first: u32,
    /// For the second, 0 if there is none.
    pub second: u32,
}

/// A file that was not analysed, or only in part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    pub file: String,
    pub reason: String,
    /// A fault (cannot be read, cannot be parsed), not a choice (vendored, generated).
    pub fault: bool,
}

/// Where a tree of source came from: a repository, a package, an archive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// As one would name it to scan it again: `https://github.com/owner/name@main`, `npm:name`.
    pub name: String,
    /// The commit or the version that was scanned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        match self.revision.as_deref() {
            // A commit is known by its first digits.
            Some(id) if id.len() >= 40 && id.is_ascii() => write!(f, " ({})", &id[..12]),
            Some(version) => write!(f, " ({version})"),
            None => Ok(()),
        }
    }
}

/// Everything a report shows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScanReport {
    pub schema: String,
    pub tool_version: String,
    /// Where the source came from, if not from a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub summary: Summary,
    pub findings: Vec<Finding>,
    /// Notes about the scan itself: unused suppressions, unknown versions.
    pub notes: Vec<Note>,
    pub skipped: Vec<Skipped>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub text: String,
}

pub const SCAN_SCHEMA: &str = "toctou.scan/1";
