//! Arguments that clients repeat in headers (revision 2026-07-28).
//!
//! A tool's schema may mark an argument with `x-mcp-header`. By HTTP, its value
//! then stands in a header `Mcp-Param-NAME` too, for those on the way who do not
//! read bodies. What they decided by must be what the server gets.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// One such argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// The whole name of the header, in lower case.
    pub header: String,
    path: Vec<String>,
}

/// More in one tool are not looked at.
const MOST: usize = 64;
const DEEPEST: usize = 16;

/// The marked arguments of a tool. A schema that marks what cannot be marked is
/// not followed at all.
pub fn mirrored(schema: &Value) -> Vec<Mirrored> {
    let mut found = Vec::new();
    if collect(schema, &mut Vec::new(), &mut found).is_none() {
        found.clear();
    }
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) -> Option<()> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Some(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(mark) = property.get("x-mcp-header") {
            let header = format!("mcp-param-{}", mark.as_str().filter(|mark| is_token(mark))?)
                .to_ascii_lowercase();
            let kind = property.get("type").and_then(Value::as_str);
            let plain = matches!(kind, Some("string" | "integer" | "number" | "boolean"));
            let twice = found.iter().any(|other| other.header == header);
            if !plain || twice || found.len() == MOST {
                return None;
            }
            let path = path.clone();
            found.push(Mirrored { header, path });
        }
        if path.len() < DEEPEST {
            collect(property, path, found)?;
        }
        path.pop();
    }
    Some(())
}

/// What a name of a header may consist of.
fn is_token(text: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(may)
}

impl Mirrored {
    /// The value as a header; `None` if there is none, and no header to be sent.
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let mut at = arguments;
        for name in &self.path {
            at = at.get(name)?;
        }
        match at {
            Value::String(text) => Some(header_value(text)),
            Value::Number(_) | Value::Bool(_) => Some(at.to_string()),
            _ => None,
        }
    }

    /// Whether a header says what the arguments say.
    pub fn agrees(&self, header: Option<&str>, arguments: &Value) -> bool {
        match (header, self.value(arguments)) {
            (None, None) => true,
            (Some(header), Some(value)) => match (from_header(header), from_header(&value)) {
                (Some(said), Some(meant)) => {
                    // `42.0` is `42`.
                    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
                    said == meant || number(&said).is_some_and(|said| number(&meant) == Some(said))
                }
                _ => false,
            },
            _ => false,
        }
    }
}

const WRAPPED: (&str, &str) = ("=?base64?", "?=");

/// Text as a header: what is not plain ASCII goes as Base64.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim() == text
        && !(text.starts_with(WRAPPED.0) && text.ends_with(WRAPPED.1));
    if plain {
        text.to_owned()
    } else {
        format!("{}{}{}", WRAPPED.0, BASE64_STANDARD.encode(text), WRAPPED.1)
    }
}

/// And back; `None` if it is not well wrapped.
pub fn from_header(value: &str) -> Option<String> {
    match value
        .strip_prefix(WRAPPED.0)
        .and_then(|rest| rest.strip_suffix(WRAPPED.1))
    {
        Some(text) => String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_are_found_where_they_can_be() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "to": {"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Id"}}},
            "list": {"type": "array", "items": {"type": "string", "x-mcp-header": "No"}}}});
        let found = mirrored(&schema);
        let names: Vec<&str> = found.iter().map(|found| found.header.as_str()).collect();
        assert_eq!(names, ["mcp-param-region", "mcp-param-id"]);
        let arguments = json!({"region": "\u{fc}ber", "to": {"id": 42}});
        assert_eq!(
            found[0].value(&arguments).as_deref(),
            Some("=?base64?w7xiZXI=?=")
        );
        assert!(found[0].agrees(Some("=?base64?w7xiZXI=?="), &arguments));
        assert!(!found[0].agrees(Some("=?base64?*?="), &arguments));
        assert!(!found[0].agrees(None, &arguments));
        assert!(found[1].agrees(Some("42.0"), &arguments));
        assert!(!found[1].agrees(Some("43"), &arguments));
        assert!(found[1].agrees(None, &json!({"to": {"id": null}})));
        assert!(!found[1].agrees(Some("42"), &json!({})));
    }

    #[test]
    fn a_schema_that_marks_what_cannot_be_marked_is_not_followed() {
        for property in [
            json!({"type": "object", "x-mcp-header": "A"}),
            json!({"type": "string", "x-mcp-header": "a b"}),
            json!({"type": "string", "x-mcp-header": 1}),
            json!({"type": "string", "x-mcp-header": "good"}),
        ] {
            let schema = json!({"properties": {
                "x": property, "y": {"type": "string", "x-mcp-header": "GOOD"}}});
            assert_eq!(mirrored(&schema), []);
        }
    }
}
