//! Arguments made up from a JSON schema, so that two calls meet where it hurts.
//!
//! Every property has a role, guessed from its name: a key says which thing is
//! meant, a payload what becomes of it. Two calls conflict by having the same
//! key or different ones, never by chance. The words are plain letters, so
//! that nobody takes them for made-up ids.

use serde_json::{Map, Value, json};

use super::harvest::Harvest;

pub const KEYS: [&str; 8] = [
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel",
];

const PAYLOADS: [&str; 8] = [
    "lorem",
    "ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua",
    "quis",
    "nostrud",
    "exercitation",
    "ullamco",
    "laboris",
    "nisi",
];

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

/// What to put where.
#[derive(Clone, Debug)]
pub struct Fill<'a> {
    pub key: usize,
    /// The key of what something is moved to, which is not there yet. One for each key if not given.
    pub other: Option<usize>,
    pub payload: usize,
    /// Stands for amounts, if there is one to be exhausted.
    pub amount: Option<i64>,
    /// Also the properties that may be left out.
    pub optional: bool,
    /// Which of an enumeration's values to take.
    pub choice: usize,
    pub harvest: &'a Harvest,
    pub workspace: &'a str,
    /// Behind every word that names a thing.
    pub suffix: &'a str,
}

impl<'a> Fill<'a> {
    pub fn new(harvest: &'a Harvest, workspace: &'a str) -> Self {
        Self {
            key: 0,
            other: None,
            payload: 0,
            amount: None,
            optional: false,
            choice: 0,
            harvest,
            workspace,
            suffix: "",
        }
    }
}

const DEEPEST: usize = 8;
/// Of the keys, from this one on nothing is there at the start.
pub const NOT_THERE: usize = 4;

/// Arguments that fit `schema`.
pub fn arguments(tool: &str, schema: &Value, fill: &Fill<'_>) -> Value {
    let maker = Maker {
        tool,
        root: schema,
        fill,
    };
    match maker.make("", schema, 0) {
        Value::Object(map) => Value::Object(map),
        _ => json!({}),
    }
}

struct Maker<'a> {
    tool: &'a str,
    root: &'a Value,
    fill: &'a Fill<'a>,
}

impl Maker<'_> {
    fn make(&self, name: &str, schema: &Value, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            return match found {
                Some(found) => self.make(name, found, depth + 1),
                None => Value::Null,
            };
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array)
            && !choices.is_empty()
        {
            return choices[self.fill.choice % choices.len()].clone();
        }
        for either in ["anyOf", "oneOf"] {
            let options = schema.get(either).and_then(Value::as_array);
            let first = options
                .into_iter()
                .flatten()
                .find(|option| option.get("type").and_then(Value::as_str) != Some("null"));
            if let Some(first) = first {
                return self.make(name, first, depth + 1);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let mut all = Map::new();
            for part in parts {
                if let Value::Object(map) = self.make(name, part, depth + 1) {
                    all.extend(map);
                }
            }
            return Value::Object(all);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(name, schema, depth),
            "integer" | "number" => self.number(name, schema),
            "boolean" => json!(
                schema
                    .get("default")
                    .and_then(Value::as_bool)
                    .unwrap_or(false)
            ),
            "null" => Value::Null,
            _ => self.string(name, schema),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut out = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let wanted = required.contains(&name.as_str()) || self.fill.optional;
            if wanted {
                let value = self.make(name, property, depth + 1);
                if !value.is_null() {
                    out.insert(name.clone(), value);
                }
            }
        }
        Value::Object(out)
    }

    fn array(&self, name: &str, schema: &Value, depth: usize) -> Value {
        let count = schema
            .get("minItems")
            .and_then(Value::as_u64)
            .unwrap_or(1)
            .clamp(1, 4);
        let any = json!({"type": "string"});
        let items = schema.get("items").unwrap_or(&any);
        let item = self.make(singular(name), items, depth + 1);
        Value::Array(vec![item; count as usize])
    }

    fn number(&self, name: &str, schema: &Value) -> Value {
        if role(name, schema) == Role::Reference
            && let Some(value) = self
                .fill
                .harvest
                .reference(self.tool, name, self.fill.key, false)
        {
            return value;
        }
        let low = schema.get("minimum").and_then(Value::as_f64);
        let above = schema.get("exclusiveMinimum").and_then(Value::as_f64);
        let high = schema.get("maximum").and_then(Value::as_f64);
        let mut value = match self.fill.amount {
            Some(amount) => amount as f64,
            None => (self.fill.payload as f64) + 1.0,
        };
        if let Some(low) = low {
            value = value.max(low);
        }
        if let Some(above) = above {
            value = value.max(above + 1.0);
        }
        if let Some(high) = high {
            value = value.min(high);
        }
        if kind(schema) == "integer" || value.fract() == 0.0 {
            json!(value as i64)
        } else {
            json!(value)
        }
    }

    fn string(&self, name: &str, schema: &Value) -> Value {
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            match format {
                "date-time" => return json!("2031-02-03T04:05:06Z"),
                "date" => return json!("2031-02-03"),
                "time" => return json!("04:05:06"),
                "email" => return json!(format!("{}@example.org", self.key())),
                "uri" | "url" => return json!(format!("https://example.org/{}", self.key())),
                "uuid" => {
                    if let Some(value) =
                        self.fill
                            .harvest
                            .reference(self.tool, name, self.fill.key, true)
                    {
                        return value;
                    }
                    return json!(format!(
                        "00000000-0000-4000-8000-00000000000{}",
                        self.fill.key
                    ));
                }
                _ => {}
            }
        }
        let lower = name.to_ascii_lowercase();
        if ["date", "deadline", "due"]
            .iter()
            .any(|word| lower.contains(word))
        {
            return json!("2031-02-03");
        }
        match role(name, schema) {
            Role::Reference => {
                match self
                    .fill
                    .harvest
                    .reference(self.tool, name, self.fill.key, true)
                {
                    Some(value) => value,
                    None => json!(self.key()),
                }
            }
            Role::Key => match self.fill.harvest.key(name) {
                Some(value) => value,
                None => json!(self.key()),
            },
            Role::Path => json!(self.path(name, self.fill.key)),
            Role::Destination => {
                let free = || NOT_THERE + self.fill.key;
                json!(self.path(name, self.fill.other.unwrap_or_else(free)))
            }
            Role::Payload => json!(PAYLOADS[self.fill.payload % PAYLOADS.len()]),
            Role::Other => match schema.get("default").and_then(Value::as_str) {
                Some(default) => json!(default),
                None => json!(PAYLOADS[self.fill.payload % PAYLOADS.len()]),
            },
        }
    }

    fn key(&self) -> String {
        self.word(self.fill.key)
    }

    fn word(&self, key: usize) -> String {
        format!("{}{}", KEYS[key % KEYS.len()], self.fill.suffix)
    }

    fn path(&self, name: &str, key: usize) -> String {
        let lower = name.to_ascii_lowercase();
        let word = self.word(key);
        let folder = match self.fill.workspace {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        if lower.contains("dir") || lower.contains("folder") {
            return format!("{folder}{word}");
        }
        let end = super::fixtures::ending(self.tool, self.root);
        format!("{folder}{word}{end}")
    }
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or("string"),
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
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
    if matches!(last, "id" | "ids" | "uuid" | "hash" | "handle" | "ref") {
        return Role::Reference;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_servers_entities() {
        let schema = json!({"type": "object", "required": ["entities"], "properties": {"entities": {
            "type": "array", "items": {"type": "object", "required": ["name", "entityType", "observations"], "properties": {
                "name": {"type": "string"}, "entityType": {"type": "string"},
                "observations": {"type": "array", "items": {"type": "string"}}}}}}});
        let harvest = Harvest::default();
        let mut fill = Fill::new(&harvest, "/w");
        let a = arguments("create_entities", &schema, &fill);
        assert_eq!(a["entities"][0]["name"], "alpha");
        fill.key = 1;
        let b = arguments("create_entities", &schema, &fill);
        assert_eq!(b["entities"][0]["name"], "bravo");
        assert_eq!(
            a["entities"][0]["observations"],
            b["entities"][0]["observations"]
        );
    }

    #[test]
    fn odd_schemas_are_no_trouble() {
        let harvest = Harvest::default();
        let fill = Fill::new(&harvest, "/w");
        for schema in [
            json!(null),
            json!({"properties": 3}),
            json!({"$ref": "#/x"}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}),
            json!({"type": ["null", "object"], "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 5}}}),
        ] {
            assert!(arguments("t", &schema, &fill).is_object(), "{schema}");
        }
    }

    #[test]
    fn roles_by_name() {
        let string = json!({"type": "string"});
        for (name, expected) in [
            ("title", Role::Key),
            ("noteId", Role::Reference),
            ("task_id", Role::Reference),
            ("filePath", Role::Path),
            ("source", Role::Path),
            ("destination", Role::Destination),
            ("content", Role::Payload),
            ("entityType", Role::Key),
        ] {
            assert_eq!(role(name, &string), expected, "{name}");
        }
    }
}
