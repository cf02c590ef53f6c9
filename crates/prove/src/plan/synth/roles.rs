//! What a property is for, guessed from its name.

use serde_json::Value;

use super::{DEEPEST, kind, singular};

/// What a property is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Says which thing is meant, and is chosen by the caller.
    Key,
    /// Names a thing that the server named: an id from an earlier answer.
    Reference,
    Path,
    /// Where something goes, if another property says where it comes from.
    Destination,
    Payload,
    Other,
}

/// The role of a property, from its name.
pub fn role(name: &str, schema: &Value) -> Role {
    let lower: String = name
        .chars()
        .flat_map(|c| {
            let cut = c.is_uppercase().then_some('_');
            cut.into_iter().chain(c.to_lowercase())
        })
        .map(|c| if c == '-' { '_' } else { c })
        .collect();
    let words: Vec<&str> = lower.split('_').filter(|word| !word.is_empty()).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let last = words.last().copied().unwrap_or_default();
    if matches!(
        last,
        "id" | "ids" | "uuid" | "hash" | "sha" | "etag" | "revision" | "handle" | "ref"
    ) {
        return Role::Reference;
    }
    if has(&["destination", "dest", "target", "new_path", "output"]) {
        let text = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if has(&["path", "file", "destination", "dest"])
            || text.contains("path")
            || text.contains("file")
        {
            return Role::Destination;
        }
    }
    if has(&[
        "path",
        "filepath",
        "filename",
        "file",
        "dir",
        "directory",
        "folder",
    ]) || (has(&["source"]) && words.len() == 1)
    {
        return Role::Path;
    }
    if has(&[
        "content",
        "contents",
        "text",
        "body",
        "description",
        "value",
        "message",
        "data",
        "observation",
        "observations",
        "note",
        "summary",
        "details",
        "comment",
        "thought",
        "question",
        "query",
        "amount",
        "price",
        "new",
    ]) && !has(&["key", "name", "title"])
    {
        return Role::Payload;
    }
    if has(&[
        "name",
        "title",
        "key",
        "slug",
        "tag",
        "topic",
        "label",
        "user",
        "username",
        "caller",
        "session",
        "account",
        "code",
        "sku",
        "item",
        "job",
        "from",
        "to",
        "entity",
        "category",
        "project",
        "list",
        "namespace",
        "branch",
        "table",
        "subject",
        "owner",
        "agent",
        "channel",
        "queue",
        "resource",
    ]) {
        return Role::Key;
    }
    Role::Other
}

/// Whether any property of `schema` says which thing is meant.
pub fn has_key(schema: &Value) -> bool {
    any(schema, 0, &|name, schema| {
        matches!(role(name, schema), Role::Key | Role::Reference | Role::Path)
    })
}

/// The names by which a server's own things are asked for.
pub fn references(schema: &Value) -> Vec<String> {
    let names = std::cell::RefCell::new(Vec::new());
    any(schema, 0, &|name, schema| {
        if role(name, schema) == Role::Reference {
            names.borrow_mut().push(name.to_owned());
        }
        false
    });
    names.into_inner()
}

pub fn has_payload(schema: &Value) -> bool {
    any(schema, 0, &|name, schema| {
        matches!(role(name, schema), Role::Payload | Role::Other)
    })
}

pub fn has_number(schema: &Value) -> bool {
    any(schema, 0, &|_, schema| {
        matches!(kind(schema), "integer" | "number")
    })
}

fn any(schema: &Value, depth: usize, test: &dyn Fn(&str, &Value) -> bool) -> bool {
    if depth > DEEPEST {
        return false;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(name, property)| {
        let leaf = !matches!(kind(property), "object" | "array");
        let items = property.get("items");
        (leaf && test(name, property))
            || any(property, depth + 1, test)
            || items.is_some_and(|items| {
                any(items, depth + 1, test)
                    || (kind(items) != "object" && test(singular(name), items))
            })
    })
}
