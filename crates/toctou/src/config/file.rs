//! The config as written: names of keys, their types, their documentation.
//! The JSON schema is made from this.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Deserialize;
use toctou_core::rule::{Persona, Severity};
pub(super) use toml::Spanned;

/// Settings of toctou for one project.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "toctou.toml")]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct ConfigFile {
    /// Whose findings to show.
    pub(super) persona: Option<Persona>,
    /// Hide findings below this severity.
    pub(super) min_severity: Option<Severity>,
    /// Exit with 1 only for findings of this severity or worse.
    pub(super) fail_on: Option<Severity>,
    /// Globs of files and folders that are not scanned.
    #[schemars(with = "Vec<String>")]
    pub(super) exclude: Vec<Spanned<String>>,
    /// Files with models of further libraries.
    pub(super) models: Vec<PathBuf>,
    /// The file with known findings.
    pub(super) baseline: Option<PathBuf>,
    /// Rules that are off, or have another severity than their own.
    #[schemars(with = "BTreeMap<String, Level>")]
    pub(super) rules: BTreeMap<String, Spanned<Level>>,
    /// Findings that need no fix, and why.
    pub(super) ignore: Vec<Ignore>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    Off,
    Info,
    Low,
    Medium,
    High,
    Critical,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Ignore {
    /// Id of the rule.
    #[schemars(with = "String")]
    pub(super) rule: Spanned<String>,
    /// Glob of the files; everywhere if it is left out.
    #[schemars(with = "Option<String>")]
    pub(super) path: Option<Spanned<String>>,
    /// Why these findings need no fix.
    #[schemars(with = "String")]
    pub(super) reason: Spanned<String>,
    /// Last day on which the entry holds, such as `2027-01-31`.
    #[schemars(with = "Option<String>")]
    pub(super) expires: Option<Spanned<String>>,
}

/// JSON schema of the file.
pub(crate) fn schema() -> Schema {
    schema_for!(ConfigFile)
}
