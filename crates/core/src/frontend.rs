//! What a front end is, seen from outside: some functions and some names.
//!
//! A language is one of these, and models for its libraries. Whoever drives a
//! scan knows front ends by this table only.

use crate::ir::{Module, ModuleId};
use crate::shipped::Programs;
use crate::source::{FileId, Span};

pub type Lower = fn(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError>;

/// `paths[i]` is the file of `modules[i]`.
pub type Resolve = fn(paths: &[String], modules: &mut [Module], manifests: &[Manifest]);

/// What to put in place of which parts of the text; nothing where it is not sure.
pub type Mend = fn(path: &str, text: &str, remedy: &Remedy) -> Option<Vec<(Span, String)>>;

/// A change that a rule asks for. How it is written is for the language to know.
/// Places are those of findings: calls, as they were lowered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// A file is created by this call, and it is to fail if there is one.
    CreateExclusively { create: Span },
    /// What is taken here is to be given back on every way out.
    ReleaseAlways { acquire: Span },
}

/// A language, or a family of them that one parser reads.
#[derive(Debug)]
pub struct Frontend {
    /// As in the `languages` of a model.
    pub id: &'static str,
    /// For people, as part of a list: `TypeScript, JavaScript`.
    pub label: &'static str,
    /// Is a file of this name lowered here?
    pub is_source: fn(name: &str) -> bool,
    /// Does a file of this name say how imports resolve, or which versions are used?
    pub is_manifest: fn(name: &str) -> bool,
    /// Does a manifest of this name stand at the head of a package?
    pub is_package: fn(name: &str) -> bool,
    /// Lowers one file. Pure; never panics, whatever the text.
    pub lower: Lower,
    /// Says what every import leads to.
    pub resolve: Resolve,
    /// Which versions of which packages a manifest asks for.
    pub requirements: fn(manifest: &Manifest) -> Vec<Requirement>,
    /// Which packages say where all their programs start, and where.
    pub programs: fn(paths: &[String], manifests: &[Manifest]) -> Vec<Programs>,
    /// What runs when a module is loaded.
    pub loads: fn(modules: &[Module], at: ModuleId) -> Vec<ModuleId>,
    /// What begins a comment that ends with its line.
    pub comment: &'static str,
    /// Pure; never panics, whatever the text.
    pub mend: Mend,
}

/// A file beside the sources: `package.json`, `pyproject.toml`, `go.mod`.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Relative to the scanned root, with `/`.
    pub path: String,
    pub text: String,
}

/// What a manifest says about a package.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// As the manifest names it.
    pub package: String,
    /// Major and minor: the lowest version that is allowed.
    pub version: (u32, u32),
    /// By a lock file or an exact pin, and not by a lower bound.
    pub exact: bool,
}

/// A file that could not be lowered at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerError {
    pub message: String,
    /// 1-based.
    pub line: u32,
}

impl std::fmt::Display for LowerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LowerError {}

/// A lowered file, and what was wrong with it.
#[derive(Debug)]
pub struct Lowered {
    pub module: Module,
    /// Syntax errors the parser recovered from, nesting that was cut off.
    pub warnings: Vec<String>,
}
