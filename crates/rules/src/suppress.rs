//! Saying "I know, and here is why": ignore comments and ignores in the config.
//!
//! A suppression names its rules and gives a reason, always. A wildcard, an
//! unknown rule or a missing reason is an error, not a shrug: an ignore that
//! does not do what its author thinks hides a race. One that matches nothing
//! is reported, so that the list cannot rot.

use globset::GlobMatcher;
use jiff::civil::Date;
use thiserror::Error;
use toctou_core::finding::{Finding, Location, Note, Suppression, SuppressionKind};
use toctou_core::ir::Program;
use toctou_core::source::SourceFile;

use crate::registry;

/// `// toctou: ignore[rule-a, rule-b] reason`, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommentIgnore {
    pub file: String,
    /// Line of the comment.
    pub line: u32,
    /// Line of the code that it is about.
    pub covers: u32,
    pub rules: Vec<&'static str>,
    pub reason: String,
}

/// `[[ignore]]` in the config.
#[derive(Clone, Debug)]
pub struct ConfigIgnore {
    pub rule: &'static str,
    /// Relative to the folder of the config file. `None` is everywhere.
    pub path: Option<GlobMatcher>,
    pub reason: String,
    /// Last day on which it holds.
    pub expires: Option<Date>,
    /// Where the config says so, for the notes.
    pub source: String,
    pub line: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: {fault}")]
pub struct SuppressError {
    pub file: String,
    pub line: u32,
    pub fault: Fault,
}

#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    #[error("there is no rule `{rule}`")]
    UnknownRule {
        rule: String,
        closest: Option<&'static str>,
    },
    #[error("the ignore comment gives no reason")]
    MissingReason { rules: String },
    #[error("an ignore comment must name the rules that it ignores")]
    NoRules,
    #[error("`{0}` is not a toctou comment")]
    UnknownDirective(String),
}

impl Fault {
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownRule {
                closest: Some(id), ..
            } => format!("did you mean `{id}`?"),
            Self::UnknownRule { closest: None, .. } => "`toctou rules` lists them all".to_owned(),
            Self::MissingReason { rules } => {
                format!(
                    "write why it is safe: `toctou: ignore[{rules}] only one writer, started once`"
                )
            }
            Self::NoRules | Self::UnknownDirective(_) => {
                "write `toctou: ignore[rule-id] why it is safe`".to_owned()
            }
        }
    }
}

/// All ignore comments of a program, in the order of files and lines.
pub fn comments(program: &Program) -> Result<Vec<CommentIgnore>, Vec<SuppressError>> {
    let mut ignores = Vec::new();
    let mut errors = Vec::new();
    for module in &program.modules {
        let Some(file) = program.files.get(module.file.0 as usize) else {
            continue;
        };
        for directive in &module.directives {
            let line = file.line(directive.span.start);
            match parse(&directive.text) {
                Ok((rules, reason)) => ignores.push(CommentIgnore {
                    file: file.path.to_string(),
                    line,
                    covers: if directive.alone {
                        line_below(file, line)
                    } else {
                        line
                    },
                    rules,
                    reason,
                }),
                Err(fault) => errors.push(SuppressError {
                    file: file.path.to_string(),
                    line,
                    fault,
                }),
            }
        }
    }
    if errors.is_empty() {
        Ok(ignores)
    } else {
        Err(errors)
    }
}

/// `text` begins with `toctou:`.
fn parse(text: &str) -> Result<(Vec<&'static str>, String), Fault> {
    let body = text.strip_prefix("toctou:").unwrap_or(text).trim();
    let Some(rest) = body.strip_prefix("ignore") else {
        return Err(Fault::UnknownDirective(text.chars().take(60).collect()));
    };
    let Some((list, reason)) = rest
        .trim_start()
        .strip_prefix('[')
        .and_then(|r| r.split_once(']'))
    else {
        return Err(Fault::NoRules);
    };
    let names: Vec<&str> = list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() || names.contains(&"*") {
        return Err(Fault::NoRules);
    }
    let mut rules = Vec::new();
    for name in names {
        match registry::find(name) {
            Some(rule) => rules.push(rule.id),
            None => {
                return Err(Fault::UnknownRule {
                    rule: name.to_owned(),
                    closest: registry::closest(name),
                });
            }
        }
    }
    let reason = reason
        .trim_matches([' ', '\t', ':', '-', '—', '–'])
        .trim_end_matches("*/")
        .trim();
    if reason.is_empty() {
        return Err(Fault::MissingReason {
            rules: rules.join(", "),
        });
    }
    Ok((rules, reason.to_owned()))
}

/// The code under a comment that stands alone; further comment lines may stand between.
fn line_below(file: &SourceFile, line: u32) -> u32 {
    (line + 1..=file.line_count())
        .find(|&below| !is_comment(file.line_text(below).trim()))
        .unwrap_or(line + 1)
}

/// Is there nothing but a comment on this line, or an attribute of what is below?
fn is_comment(line: &str) -> bool {
    if let Some(block) = line.strip_prefix("/*") {
        return block
            .split_once("*/")
            .is_none_or(|(_, code)| code.is_empty());
    }
    if let Some(rest) = line.strip_prefix('*') {
        // `*count += 1` is code.
        return rest.is_empty() || rest.starts_with([' ', '/', '*']);
    }
    line.starts_with("//") || line.starts_with('#')
}

/// Marks what is ignored, and says which ignores did nothing.
///
/// `prefix` leads from the config's folder to the scanned root (`packages/a/`).
/// `today` is a parameter so that a test does not depend on the calendar.
pub fn apply(
    findings: &mut [Finding],
    comments: &[CommentIgnore],
    config: &[ConfigIgnore],
    prefix: &str,
    today: Date,
) -> Vec<Note> {
    let mut used_comments: Vec<Vec<bool>> = comments
        .iter()
        .map(|ignore| vec![false; ignore.rules.len()])
        .collect();
    let mut used_config = vec![0_u32; config.len()];
    for finding in findings {
        for (ignore, used) in comments.iter().zip(&mut used_comments) {
            let Some(rule) = ignore.rules.iter().position(|rule| *rule == finding.rule) else {
                continue;
            };
            if covers(ignore, &finding.location)
                || finding
                    .read
                    .as_ref()
                    .is_some_and(|read| covers(ignore, read))
            {
                used[rule] = true;
                suppress(finding, SuppressionKind::Comment, &ignore.reason);
            }
        }
        for (ignore, used) in config.iter().zip(&mut used_config) {
            let here = ignore
                .path
                .as_ref()
                .is_none_or(|glob| glob.is_match(format!("{prefix}{}", finding.location.file)));
            if ignore.rule == finding.rule && here {
                *used += 1;
                if ignore.expires.is_none_or(|last| today <= last) {
                    suppress(finding, SuppressionKind::Config, &ignore.reason);
                }
            }
        }
    }
    let mut notes = Vec::new();
    for (ignore, used) in comments.iter().zip(used_comments) {
        for (rule, _) in ignore.rules.iter().zip(used).filter(|(_, used)| !used) {
            notes.push(Note {
                file: Some(ignore.file.clone()),
                line: Some(ignore.line),
                text: format!(
                    "nothing to ignore here: `{rule}` does not fire on line {}",
                    ignore.covers
                ),
            });
        }
    }
    for (ignore, used) in config.iter().zip(used_config) {
        let text = match ignore.expires {
            Some(last) if today > last => format!(
                "the ignore of `{}` expired on {last}: {used} finding{} count{} again",
                ignore.rule,
                if used == 1 { "" } else { "s" },
                if used == 1 { "s" } else { "" },
            ),
            _ if used == 0 => format!(
                "nothing to ignore: no `{}` finding matches this entry",
                ignore.rule
            ),
            _ => continue,
        };
        notes.push(Note {
            file: Some(ignore.source.clone()),
            line: Some(ignore.line),
            text,
        });
    }
    notes
}

fn covers(ignore: &CommentIgnore, place: &Location) -> bool {
    place.file == ignore.file && place.line == ignore.covers
}

/// The first reason stands: a comment is nearer to the code than a config.
fn suppress(finding: &mut Finding, kind: SuppressionKind, reason: &str) {
    finding.suppressed.get_or_insert_with(|| Suppression {
        kind,
        reason: reason.to_owned(),
    });
}

#[cfg(test)]
mod tests;
