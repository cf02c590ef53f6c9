//! Findings to bytes: one file per format, one list of them here.
//!
//! A format is a function from a [`View`] to text. It does no I/O and asks
//! nothing of its surroundings, so the same view gives the same bytes.
//! Source text and names come from strangers: every format passes them
//! through [`clean`], which leaves nothing that a terminal, a CI log or a web
//! page would act on.

pub mod clean;
mod github;
mod gitlab;
mod html;
mod json;
mod junit;
mod layout;
mod markdown;
mod proofs;
mod sarif;
mod snippet;
mod style;
mod text;
mod timeline;
mod view;

pub use html::{COLOURS as HTML_COLOURS, THEME as HTML_THEME, policy as html_policy};
pub use json::scan_schema;
pub use layout::{pad, width, wrap};
pub use proofs::{Proofs, ProofsError};
pub use style::Paint;
pub use view::{Hidden, Stats, Terminal, View, plural};

/// Every format: its name, what it is for, and how it is made.
pub const FORMATS: &[Format] = &[
    Format {
        name: "text",
        summary: "for people: source, timeline, fix",
        render: text::render,
    },
    Format {
        name: "json",
        summary: "for programs: the documented toctou.scan/1",
        render: json::render,
    },
    Format {
        name: "sarif",
        summary: "SARIF 2.1.0, for GitHub code scanning and editors",
        render: sarif::render,
    },
    Format {
        name: "github",
        summary: "workflow commands: annotations in a GitHub Actions run",
        render: github::render,
    },
    Format {
        name: "markdown",
        summary: "for a pull request comment or a job summary",
        render: markdown::render,
    },
    Format {
        name: "html",
        summary: "one page for a browser: grade, source, timelines to step through",
        render: html::render,
    },
    Format {
        name: "gitlab",
        summary: "GitLab's code quality report",
        render: gitlab::render,
    },
    Format {
        name: "junit",
        summary: "JUnit XML, for Jenkins and other readers of test results",
        render: junit::render,
    },
];

#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub name: &'static str,
    pub summary: &'static str,
    render: fn(&View<'_>) -> String,
}

impl Format {
    pub fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    pub fn render(&self, view: &View<'_>) -> String {
        (self.render)(view)
    }
}

/// An interleaving as columns, with no source around it.
pub fn timeline(steps: &[toctou_core::interleaving::Step], terminal: Terminal) -> String {
    let gutter = snippet::Gutter {
        digits: 1,
        terminal,
    };
    timeline::render(steps, "", gutter)
}

#[cfg(test)]
mod fixtures;
