//! `toctou.toml`: what a project has decided, once, for everybody.
//!
//! Unknown keys are refused, with the place and a suggestion: a misspelt
//! `exlude` that is silently ignored scans what it should not. Paths and globs
//! are relative to the folder of the file.

mod file;

use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use jiff::civil::Date;
use toctou_core::rule::{Persona, Severity};
use toctou_rules::registry;
use toctou_rules::suppress::ConfigIgnore;

use crate::errors::Error;
pub(crate) use file::schema;
use file::{ConfigFile, Level, Spanned};

pub(crate) const NAME: &str = "toctou.toml";

/// The config, checked and understood.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The file it came from.
    pub(crate) path: Option<PathBuf>,
    pub(crate) persona: Option<Persona>,
    pub(crate) min_severity: Option<Severity>,
    pub(crate) fail_on: Option<Severity>,
    pub(crate) exclude: GlobSet,
    /// Rules that are off (`None`) or have another severity.
    pub(crate) levels: Vec<(&'static str, Option<Severity>)>,
    pub(crate) ignores: Vec<ConfigIgnore>,
    pub(crate) models: Vec<PathBuf>,
    pub(crate) baseline: Option<PathBuf>,
}

impl Config {
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.path.as_deref().and_then(Path::parent)
    }

    /// Leads from the config's folder to `root`: `packages/a/`, or nothing.
    pub(crate) fn prefix(&self, root: &Path) -> String {
        let below = self
            .folder()
            .and_then(|folder| root.strip_prefix(folder).ok());
        let mut prefix = below.map(crate::discover::slashed).unwrap_or_default();
        if !prefix.is_empty() {
            prefix.push('/');
        }
        prefix
    }
}

/// The nearest `toctou.toml` in `folder` or above it, up to the root of the repository.
pub(crate) fn find(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let candidate = folder.join(NAME);
        if candidate.is_file() {
            return Some(candidate);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

pub(crate) fn load(path: &Path) -> Result<Config, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Read {
        path: path.to_owned(),
        error,
    })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Config, Error> {
    let reader = Reader { path, text };
    let file: ConfigFile = toml::from_str(text).map_err(|error| reader.syntax(&error))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut config = Config {
        path: Some(path.to_owned()),
        persona: file.persona,
        min_severity: file.min_severity,
        fail_on: file.fail_on,
        exclude: reader.globs(&file.exclude)?,
        models: file.models.iter().map(|model| folder.join(model)).collect(),
        baseline: file.baseline.map(|baseline| folder.join(baseline)),
        ..Config::default()
    };
    for (id, level) in &file.rules {
        let rule = reader.rule(id, level.span())?;
        config.levels.push((rule, level.get_ref().severity()));
    }
    for entry in &file.ignore {
        config.ignores.push(reader.ignore(entry)?);
    }
    Ok(config)
}

/// Turns what is wrong into an error that says where.
pub(crate) struct Reader<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Reader<'_> {
    pub(crate) fn error(&self, at: usize, message: String, hint: Option<String>) -> Error {
        let (line, column) = self.position(at);
        Error::Config {
            path: self.path.to_owned(),
            line,
            column,
            message,
            hint,
        }
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        (
            before.matches('\n').count() + 1,
            before[start..].chars().count() + 1,
        )
    }

    /// `toml` names the unknown key and the known ones; we add which was meant.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> Error {
        let at = error.span().map_or(0, |span| span.start);
        let message = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let (message, hint) = match names.as_slice() {
            [unknown, known @ ..] if message.starts_with("unknown field") => (
                format!("there is no key `{unknown}` here"),
                Some(match registry::closest_of(unknown, known.iter().copied()) {
                    Some(closest) => format!("did you mean `{closest}`?"),
                    None => format!("known keys: {}", known.join(", ")),
                }),
            ),
            [unknown, known @ ..] if message.starts_with("unknown variant") => (
                format!("`{unknown}` is not a value of this key"),
                Some(format!("use one of: {}", known.join(", "))),
            ),
            _ => (message, None),
        };
        self.error(at, message, hint)
    }

    fn rule(&self, id: &str, span: std::ops::Range<usize>) -> Result<&'static str, Error> {
        if let Some(rule) = registry::find(id) {
            return Ok(rule.id);
        }
        let hint = match registry::closest(id) {
            Some(closest) => format!("did you mean `{closest}`?"),
            None => "`toctou rules` lists them all".to_owned(),
        };
        Err(self.error(span.start, format!("there is no rule `{id}`"), Some(hint)))
    }

    fn glob(&self, pattern: &Spanned<String>) -> Result<Glob, Error> {
        globset::GlobBuilder::new(pattern.get_ref().trim_start_matches("./"))
            .literal_separator(true)
            .build()
            .map_err(|error| self.error(pattern.span().start, error.to_string(), None))
    }

    /// A pattern that names a folder means what is in it.
    fn globs(&self, patterns: &[Spanned<String>]) -> Result<GlobSet, Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(self.glob(pattern)?);
            let inside = format!("{}/**", pattern.get_ref().trim_end_matches('/'));
            set.add(self.glob(&Spanned::new(pattern.span(), inside))?);
        }
        set.build()
            .map_err(|error| self.error(0, error.to_string(), None))
    }

    fn ignore(&self, entry: &file::Ignore) -> Result<ConfigIgnore, Error> {
        let rule = self.rule(entry.rule.get_ref(), entry.rule.span())?;
        if entry.reason.get_ref().trim().is_empty() {
            let hint = "write why these findings need no fix".to_owned();
            return Err(self.error(
                entry.reason.span().start,
                "the reason is empty".to_owned(),
                Some(hint),
            ));
        }
        let expires = match &entry.expires {
            None => None,
            Some(text) => Some(text.get_ref().parse::<Date>().map_err(|_| {
                let message = format!("`{}` is not a date", text.get_ref());
                self.error(
                    text.span().start,
                    message,
                    Some("write it as \"2027-01-31\"".to_owned()),
                )
            })?),
        };
        Ok(ConfigIgnore {
            rule,
            path: entry
                .path
                .as_ref()
                .map(|path| self.glob(path))
                .transpose()?
                .map(|glob| glob.compile_matcher()),
            reason: entry.reason.get_ref().clone(),
            expires,
            source: self.path.file_name().map_or_else(
                || NAME.to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            line: self.position(entry.rule.span().start).0 as u32,
        })
    }
}

impl Level {
    fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Info => Some(Severity::Info),
            Self::Low => Some(Severity::Low),
            Self::Medium => Some(Severity::Medium),
            Self::High => Some(Severity::High),
            Self::Critical => Some(Severity::Critical),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        parse(Path::new("toctou.toml"), text).map_err(|error| error.render(false))
    }

    #[test]
    fn reads_everything() {
        let config = config(
            r#"
            persona = "pedantic"
            min-severity = "low"
            fail-on = "high"
            exclude = ["generated", "src/*.gen.ts"]
            models = ["models/ours.toml"]
            baseline = "known.txt"
            [rules]
            data-race = "off"
            db-lost-update = "medium"
            [[ignore]]
            rule = "file-check-then-act"
            path = "src/setup/**"
            reason = "runs once, before the server starts"
            expires = "2027-01-31"
            "#,
        )
        .expect("valid");
        assert_eq!(config.persona, Some(Persona::Pedantic));
        assert_eq!(
            config.levels,
            [
                ("data-race", None),
                ("db-lost-update", Some(Severity::Medium))
            ]
        );
        assert!(config.exclude.is_match("generated/a/b.ts"));
        assert!(config.exclude.is_match("src/a.gen.ts"));
        assert!(!config.exclude.is_match("src/a.ts"));
        assert_eq!(config.ignores[0].rule, "file-check-then-act");
        assert_eq!(config.ignores[0].line, 12);
    }

    #[test]
    fn the_template_is_valid() {
        let template = crate::commands::init::TEMPLATE;
        assert!(config(template).is_ok());
        // And so is every line of it that is commented out.
        let on: String = template
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
            .collect();
        assert_eq!(config(&on).err(), None);
    }

    #[test]
    fn a_reason_is_required() {
        let error = config("[[ignore]]\nrule = \"data-race\"\n").expect_err("no reason");
        assert!(error.contains("missing field `reason`"), "{error}");
        let error =
            config("[[ignore]]\nrule = \"data-race\"\nreason = \" \"\n").expect_err("empty");
        assert!(
            error.contains("toctou.toml:3:10: the reason is empty"),
            "{error}"
        );
    }

    #[test]
    fn says_where_and_what_was_meant() {
        for (text, place, hint) in [
            (
                "exlude = []\n",
                "1:1: there is no key `exlude` here",
                "did you mean `exclude`?",
            ),
            (
                "persona = \"strict\"\n",
                "1:11: `strict` is not a value",
                "use one of: regular, pedantic, auditor",
            ),
            (
                "[rules]\ndata-rac = \"off\"\n",
                "2:12: there is no rule `data-rac`",
                "did you mean `data-race`?",
            ),
            ("exclude = [\"a[\"]\n", "1:12: error parsing glob", ""),
            ("persona = \n", "1:11: ", ""),
        ] {
            let error = config(text).expect_err(text);
            assert!(error.contains(place), "{error}");
            assert!(error.contains(hint), "{error}");
        }
    }
}
