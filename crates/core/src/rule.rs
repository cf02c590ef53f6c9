//! What a rule is, to everybody but itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    Low,
    Medium,
    High,
}

/// Who wants to see a finding. Each persona sees its own and those before it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Persona {
    /// What a maintainer would thank you for.
    Regular,
    /// Plausible; depends on deployment or on an unknown.
    Pedantic,
    /// Everything a reviewer may want to look at.
    Auditor,
}

/// Who is on the other side of the window.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Another call in the same server process.
    InProcess,
    /// Another server process on the same files or database.
    CrossProcess,
}

/// Static facts about a rule. `page` is its documentation, the `explain` text,
/// the SARIF help and a test.
#[derive(Clone, Copy, Debug)]
pub struct RuleMeta {
    pub id: &'static str,
    /// One line that names the bad thing.
    pub summary: &'static str,
    pub severity: Severity,
    pub persona: Persona,
    /// What the first finding takes off the score.
    pub points: u32,
    /// CWE number: 362, 367, …
    pub cwe: u32,
    /// First released version that has the rule.
    pub since: &'static str,
    pub page: &'static str,
}

macro_rules! text_enum {
    ($ty:ident { $($variant:ident => $text:literal),* $(,)? }) => {
        impl $ty {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }

        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $ty {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(format!("expected one of: {}", [$($text),*].join(", "))),
                }
            }
        }
    };
}

text_enum!(Severity { Info => "info", Low => "low", Medium => "medium", High => "high", Critical => "critical" });
text_enum!(Confidence { Low => "low", Medium => "medium", High => "high" });
text_enum!(Persona { Regular => "regular", Pedantic => "pedantic", Auditor => "auditor" });
text_enum!(Scope { InProcess => "in-process", CrossProcess => "cross-process" });
