//! `toctou dev generate`: files that are made, not written.
//!
//! One command makes them all and a test checks that they are current, so the
//! schemas, the command line reference and the rule pages cannot drift.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use toctou_rules::absent::{Absence, LANGUAGES, absence};
use toctou_rules::registry;

use crate::cli::{Cli, DevAction, DevArgs};
use crate::errors::Error;
use crate::{config, output, terminal};

const MADE: &str = "<!-- Made by `toctou dev generate`; do not edit. -->\n";

pub(crate) fn run(args: &DevArgs) -> Result<(), Error> {
    let DevAction::Generate { root, check } = &args.action;
    let mut stale = Vec::new();
    for (path, text) in files() {
        let full = root.join(&path);
        if std::fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        stale.push(path.display().to_string());
        if !check {
            let folder = full.parent().unwrap_or(root);
            std::fs::create_dir_all(folder).map_err(|error| Error::Write {
                path: folder.to_owned(),
                error,
            })?;
            output::to_file(&full, &text)?;
        }
    }
    for path in left_over(root) {
        stale.push(path.display().to_string());
        if !check {
            std::fs::remove_file(root.join(&path)).map_err(|error| Error::Write { path, error })?;
        }
    }
    if *check && !stale.is_empty() {
        return Err(Error::Stale { files: stale });
    }
    for file in stale {
        terminal::to_stderr(&format!("wrote {file}\n"));
    }
    Ok(())
}

/// Every generated file, with its path in the repository.
fn files() -> Vec<(PathBuf, String)> {
    let mut files = vec![
        (PathBuf::from("docs/reference/cli.md"), command_line()),
        (
            PathBuf::from("docs/reference/scan.schema.json"),
            schema(toctou_report::scan_schema()),
        ),
        (
            PathBuf::from("docs/reference/config.schema.json"),
            schema(config::schema()),
        ),
        (
            PathBuf::from("docs/reference/guard.schema.json"),
            schema(toctou_guard::policy::file::schema()),
        ),
        (
            PathBuf::from("docs/reference/prove.schema.json"),
            schema(toctou_prove::report::Report::schema()),
        ),
        (PathBuf::from("docs/rules/README.md"), rule_index()),
    ];
    for rule in registry::all() {
        let source = format!(
            "crates/rules/src/rules/{}/page.md",
            rule.id.replace('-', "_")
        );
        let text = format!(
            "<!-- Made from {source} by `toctou dev generate`; do not edit. -->\n{}",
            rule.page
        );
        files.push((PathBuf::from(format!("docs/rules/{}.md", rule.id)), text));
    }
    files
}

/// Pages of rules that are gone.
fn left_over(root: &Path) -> Vec<PathBuf> {
    let folder = Path::new("docs/rules");
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(".md")?;
            (id != "README" && registry::find(id).is_none()).then(|| folder.join(&name))
        })
        .collect();
    paths.sort_unstable();
    paths
}

fn schema(schema: schemars::Schema) -> String {
    format!("{:#}\n", schema.to_value())
}

fn rule_index() -> String {
    let mut out = format!(
        "{MADE}# Rules\n\n| rule | severity | persona | points | what it names |\n|---|---|---|---|---|\n"
    );
    for rule in registry::all() {
        let _ = writeln!(
            out,
            "| [{id}]({id}.md) | {} | {} | {} | {} |",
            rule.severity,
            rule.persona,
            rule.points,
            rule.summary,
            id = rule.id,
        );
    }
    out + &coverage()
}

/// Which rule is shown in which language, by an example that the tests run.
fn coverage() -> String {
    let mut out = String::from(
        "\n## Languages\n\nHow many examples of the rule, in that language, are on its page: \
         bad ones that must be reported + good ones that must not, both run by the tests. \
         \"n/a\" says that the race cannot be written in that language, for the reason below the \
         table; a dash, that it can, and that nobody has shown yet that it is found there.\n\n| rule |",
    );
    for (_, label) in LANGUAGES {
        let _ = write!(out, " {label} |");
    }
    out += "\n|---|";
    out += &"---|".repeat(LANGUAGES.len());
    out.push('\n');
    let mut reasons: Vec<&str> = Vec::new();
    for rule in registry::all() {
        let _ = write!(out, "| {} |", rule.id);
        for (tag, _) in LANGUAGES {
            let blocks = |verdict: &str| {
                let fence = format!("```{tag} {verdict}");
                rule.page
                    .lines()
                    .filter(|line| line.starts_with(&fence))
                    .count()
            };
            let _ = match (blocks("bad"), blocks("good"), absence(rule.id, tag)) {
                (0, _, Some(Absence::Cannot(reason))) => {
                    let known = reasons.iter().position(|r| *r == reason);
                    let number = known.unwrap_or(reasons.len()) + 1;
                    if known.is_none() {
                        reasons.push(reason);
                    }
                    write!(out, " n/a ({number}) |")
                }
                (0, _, _) => write!(out, " – |"),
                (bad, good, _) => write!(out, " {bad} + {good} |"),
            };
        }
        out.push('\n');
    }
    out += "\nn/a, because:\n\n";
    for (number, reason) in (1..).zip(reasons) {
        let _ = writeln!(out, "{number}. {reason}.");
    }
    out
}

fn command_line() -> String {
    let mut out = format!("{MADE}# Command line\n\n");
    let mut root = Cli::command().term_width(100);
    root.build();
    section(&mut out, &mut root, 2);
    out
}

fn section(out: &mut String, command: &mut clap::Command, depth: usize) {
    let name = command
        .get_bin_name()
        .unwrap_or(command.get_name())
        .to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = writeln!(
        out,
        "{} `{name}`\n\n```text\n{}\n```\n",
        "#".repeat(depth),
        lines.join("\n").trim_end()
    );
    for sub in command
        .get_subcommands_mut()
        .filter(|sub| !sub.is_hide_set())
    {
        section(out, sub, (depth + 1).min(4));
    }
}
