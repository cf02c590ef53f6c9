//! For people, in a browser: one file that needs nothing else.
//!
//! The page is a shell. What was found is JSON inside it, and a script of ours
//! builds what is looked at, when it is looked at: a thousand findings open as
//! fast as ten. The policy in the head names the hashes of that one script and
//! that one style sheet, so nothing else runs, wherever the page is opened and
//! whatever the scanned code says. Names and source reach the page only as JSON
//! without `<`, and the script writes them only as text.

mod data;
mod excerpt;
mod story;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::clean;
use crate::view::{View, plural};

const SHELL: &str = include_str!("html/page.html");
/// The colours of the page in light and dark, for pages that shall look like it.
pub const COLOURS: &str = include_str!("html/colours.css");
/// Chooses between them: as the system has it, or as the reader chose.
pub const THEME: &str = include_str!("html/theme.js");
const STYLE: &str = concat!(
    include_str!("html/colours.css"),
    include_str!("html/base.css"),
    include_str!("html/summary.css"),
    include_str!("html/finding.css"),
    include_str!("html/timeline.css"),
    include_str!("html/print.css"),
);
/// The first part runs before the page is drawn, the others share its scope.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("html/theme.js"),
    include_str!("html/base.js"),
    include_str!("html/summary.js"),
    include_str!("html/timeline.js"),
    include_str!("html/source.js"),
    include_str!("html/finding.js"),
    include_str!("html/filters.js"),
    include_str!("html/main.js"),
    "})();\n",
);
/// Findings that a reader without scripts is shown.
const WITHOUT_SCRIPT: usize = 500;

pub(crate) fn render(view: &View<'_>) -> String {
    fill(SHELL, |name| match name {
        "policy" => policy(),
        "title" => escape(&title(view)),
        "style" => STYLE.to_owned(),
        "script" => SCRIPT.to_owned(),
        "data" => embed(&data::of(view)),
        "plain" => plain(view),
        _ => String::new(),
    })
}

/// What the page may do: run its own script, use its own style, and nothing
/// that needs a network. A server that hands the page out sends the same.
pub fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

fn title(view: &View<'_>) -> String {
    let summary = &view.report.summary;
    let roots: Vec<String> = view.roots.iter().map(|r| clean::short(r, 60)).collect();
    format!("{} · grade {} · toctou", roots.join(", "), summary.grade)
}

/// Puts parts in place of `{{name}}`, in one pass: a part that holds such a
/// name is text.
fn fill(shell: &str, part: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(shell.len() + STYLE.len() + SCRIPT.len());
    let mut rest = shell;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        out += before;
        out += &part(name);
        rest = after;
    }
    out + rest
}

/// JSON that a script element cannot end in: no `<`, and nothing hidden.
fn embed<T: serde::Serialize>(data: &T) -> String {
    let text = match serde_json::to_string(data) {
        Ok(text) => text,
        // Strings, numbers and lists only: there is nothing in it that can fail.
        Err(error) => unreachable!("a report is always JSON: {error}"),
    };
    // Such characters stand in strings only.
    clean::json(&text)
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean::line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// For readers without scripts: what was found, as a list.
fn plain(view: &View<'_>) -> String {
    let summary = &view.report.summary;
    let mut out = format!(
        "<p>Grade {}, {} of 100. {}. This page needs its script to show timelines and source.</p>\n<ul>\n",
        escape(&summary.grade),
        summary.score,
        plural(view.active().count(), "finding"),
    );
    for finding in view.active().take(WITHOUT_SCRIPT) {
        out += &format!(
            "<li>{} <code>{}</code> at {}:{}: {}</li>\n",
            finding.severity,
            escape(&finding.rule),
            escape(&finding.location.file),
            finding.location.line,
            escape(&finding.message)
        );
    }
    let left = view.active().count().saturating_sub(WITHOUT_SCRIPT);
    if left > 0 {
        out += &format!("<li>and {left} more</li>\n");
    }
    out + "</ul>"
}

fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests;
