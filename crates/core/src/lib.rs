//! The vocabulary that every part of toctou shares.
//!
//! Data flows one way: a front end lowers source text to [`ir`], the analysis
//! turns IR into windows, rules turn windows into [`finding`]s, reports turn
//! findings into bytes. Nothing here does I/O, knows a language, a library or
//! a rule; that is what keeps the arrows pointing one way.

pub mod finding;
pub mod fingerprint;
pub mod frontend;
pub mod interleaving;
pub mod ir;
pub mod mend;
pub mod names;
pub mod rule;
pub mod shipped;
pub mod source;

pub use finding::{EntryPoint, Finding, Location, Resource};
pub use interleaving::{Interleaving, Step};
pub use names::{Name, Names};
pub use source::{FileId, FileRole, SourceFile, Span};
