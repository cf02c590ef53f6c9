//! Colour, which only ever repeats what the words already say.
//!
//! One colour per role, the same in the snippet and in the timeline: what is
//! read is cyan, the gap is yellow, what acts on the read is red.

use anstyle::{AnsiColor, Style};
use toctou_core::interleaving::Action;
use toctou_core::rule::Severity;

#[derive(Clone, Copy, Debug)]
pub struct Paint {
    pub color: bool,
}

impl Paint {
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    pub fn severity(self, severity: Severity, text: &str) -> String {
        self.paint(severity_style(severity), text)
    }
}

pub(crate) const GUTTER: Style = AnsiColor::Blue.on_default().bold();
pub(crate) const READ: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const GAP: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const ACT: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();

fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Critical => AnsiColor::Magenta.on_default().bold(),
        Severity::High => AnsiColor::Red.on_default().bold(),
        Severity::Medium => AnsiColor::Yellow.on_default().bold(),
        Severity::Low => AnsiColor::Cyan.on_default().bold(),
        Severity::Info => AnsiColor::Blue.on_default().bold(),
    }
}

pub(crate) fn action_style(action: Action) -> Style {
    match action {
        Action::Read => AnsiColor::Cyan.on_default(),
        Action::Yield => AnsiColor::Yellow.on_default(),
        Action::Write | Action::Delete | Action::Send => AnsiColor::Red.on_default(),
        Action::Outcome => ACT,
        Action::Acquire
        | Action::Release
        | Action::Begin
        | Action::Commit
        | Action::Open
        | Action::Close => Style::new(),
    }
}
