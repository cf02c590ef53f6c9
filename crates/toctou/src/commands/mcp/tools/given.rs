//! Arguments, as a model gives them.

use serde_json::{Map, Value};
use toctou_report::clean;
use toctou_rules::registry;

use super::failure;
use crate::errors::Error;

/// Arguments, and what is wrong with them, for the model to read.
pub(super) struct Given<'a>(pub(super) &'a Value);

impl<'a> Given<'a> {
    pub(super) fn only(&self, names: &[&str]) -> Result<(), String> {
        let empty = Map::new();
        let stranger = self
            .0
            .as_object()
            .unwrap_or(&empty)
            .keys()
            .find(|key| !names.contains(&key.as_str()));
        match stranger {
            None => Ok(()),
            Some(key) => Err(format!(
                "there is no argument `{}`; there is {}",
                clean::short(key, 100),
                names.join(", ")
            )),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match &self.0[name] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            _ => Err(format!("`{name}` is not a string")),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match &self.0[name] {
            Value::Null => Ok(None),
            value => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| format!("`{name}` is not a number from 0 on")),
        }
    }

    pub(super) fn word<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| format!("`{}` is no {name}", clean::short(text, 100)))
    }

    pub(super) fn rules(&self) -> Result<Vec<String>, String> {
        let Value::Array(names) = &self.0["rules"] else {
            return match &self.0["rules"] {
                Value::Null => Ok(Vec::new()),
                _ => Err("`rules` is not a list".to_owned()),
            };
        };
        names
            .iter()
            .map(|name| {
                let name = name.as_str().unwrap_or_default();
                match registry::find(name) {
                    Some(rule) => Ok(rule.id.to_owned()),
                    None => Err(failure(&Error::UnknownRule {
                        rule: clean::short(name, 100),
                        closest: registry::closest(name),
                    })),
                }
            })
            .collect()
    }
}
