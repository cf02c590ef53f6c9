//! Arguments made up from a JSON schema, so that two calls meet where it hurts.
//!
//! Every property has a role, guessed from its name: a key says which thing is
//! meant, a payload what becomes of it. Two calls conflict by having the same
//! key or different ones, never by chance. The words are plain letters, so
//! that nobody takes them for made-up ids.

mod roles;
mod text;

use serde_json::{Map, Value, json};

use super::harvest::Harvest;

pub use roles::{Role, has_key, has_number, has_payload, references, role};

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
        if let Some(whole) = self.combined(schema) {
            return self.make(name, &whole, depth + 1);
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

    /// The schema with one of its alternatives and all of its parts in it.
    fn combined(&self, schema: &Value) -> Option<Value> {
        let own = schema.as_object()?;
        let mut whole = own.clone();
        let mut parts: Vec<&Value> = Vec::new();
        for either in ["anyOf", "oneOf"] {
            let Some(Value::Array(options)) = whole.remove(either).map(|_| &own[either]) else {
                continue;
            };
            let options: Vec<&Value> = options
                .iter()
                .filter(|option| option.get("type").and_then(Value::as_str) != Some("null"))
                .collect();
            let chosen = self.fill.choice % options.len().max(1);
            parts.extend(options.get(chosen));
        }
        if whole.remove("allOf").is_some() {
            parts.extend(own["allOf"].as_array().into_iter().flatten());
        }
        if whole.len() == own.len() {
            return None;
        }
        for part in parts {
            let target = part
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|target| self.root.pointer(target.strip_prefix('#')?));
            merge(&mut whole, target.unwrap_or(part));
        }
        Some(Value::Object(whole))
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
        // Any names will do: then one.
        let any = schema
            .get("additionalProperties")
            .filter(|any| any.is_object());
        if properties.is_none_or(Map::is_empty)
            && depth > 0
            && let Some(any) = any
        {
            out.insert(self.key(), self.make("value", any, depth + 1));
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
        if let Some(each) = schema.get("prefixItems").and_then(Value::as_array) {
            let items = each.iter().take(16);
            return items
                .map(|item| self.make(singular(name), item, depth + 1))
                .collect();
        }
        let items = schema.get("items").unwrap_or(&any);
        // All different, as some want it.
        (0..count as usize)
            .map(|index| {
                let fill = Fill {
                    key: self.fill.key + index,
                    ..self.fill.clone()
                };
                let maker = Maker {
                    fill: &fill,
                    ..*self
                };
                maker.make(singular(name), items, depth + 1)
            })
            .collect()
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
        if let Some(below) = schema.get("exclusiveMaximum").and_then(Value::as_f64) {
            value = value.min(below - 1.0);
        }
        if let Some(step) = schema.get("multipleOf").and_then(Value::as_f64)
            && step > 0.0
        {
            value = (value / step).ceil() * step;
        }
        if kind(schema) == "integer" || value.fract() == 0.0 {
            json!(value as i64)
        } else {
            json!(value)
        }
    }

    fn string(&self, name: &str, schema: &Value) -> Value {
        let harvest = self.fill.harvest;
        let reference = || harvest.reference(self.tool, name, self.fill.key, true);
        let format = schema.get("format").and_then(Value::as_str);
        let role = role(name, schema);
        if (role == Role::Reference || format == Some("uuid"))
            && let Some(value) = reference()
        {
            return value;
        }
        if let Some(made) =
            format.and_then(|format| text::of_format(format, &self.key(), self.fill.key))
        {
            return json!(made);
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && let Some(made) = text::of_pattern(pattern, &self.key())
        {
            return json!(made);
        }
        let lower = name.to_ascii_lowercase();
        let dated = ["date", "deadline", "due"];
        let value = match role {
            _ if dated.iter().any(|word| lower.contains(word)) => "2031-02-03".to_owned(),
            Role::Key => match harvest.key(name) {
                Some(value) => return value,
                None => self.key(),
            },
            Role::Reference => self.key(),
            Role::Path => return json!(self.path(name, self.fill.key)),
            Role::Destination => {
                let free = || NOT_THERE + self.fill.key;
                return json!(self.path(name, self.fill.other.unwrap_or_else(free)));
            }
            Role::Payload => self.payload(),
            Role::Other => match schema.get("default").and_then(Value::as_str) {
                Some(default) => default.to_owned(),
                None => self.payload(),
            },
        };
        json!(text::of_length(value, schema))
    }

    fn payload(&self) -> String {
        PAYLOADS[self.fill.payload % PAYLOADS.len()].to_owned()
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

/// What `part` adds: properties and requirements side by side, anything else in place of it.
fn merge(whole: &mut Map<String, Value>, part: &Value) {
    for (key, value) in part.as_object().into_iter().flatten() {
        match (whole.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(more)) if key == "properties" => {
                own.extend(more.clone());
            }
            (Some(Value::Array(own)), Value::Array(more)) if key == "required" => {
                own.extend(more.iter().cloned());
            }
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
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
    fn what_a_schema_asks_for_is_given() {
        let harvest = Harvest::default();
        let mut fill = Fill::new(&harvest, "/w");
        let schema = json!({"type": "object", "required": ["code", "short", "tags", "step", "pair", "labels"], "properties": {
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
            "short": {"type": "string", "minLength": 12, "maxLength": 14},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": true},
            "step": {"type": "integer", "multipleOf": 5, "exclusiveMaximum": 20},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "mail": {"type": "string", "format": "email"}},
            "oneOf": [{"required": ["mail"]}, {"required": ["phone"], "properties": {"phone": {"type": "string", "pattern": "\\d{4,6}"}}}]});
        let made = arguments("t", &schema, &fill);
        let code = made["code"].as_str().expect("a code");
        assert!(code.len() == 6 && code.as_bytes()[2] == b'-', "{code}");
        let short = made["short"].as_str().expect("a text").len();
        assert!((12..=14).contains(&short));
        assert_eq!(made["tags"], json!(["alpha", "bravo"]));
        assert_eq!(made["step"], 5);
        assert_eq!(made["pair"], json!([1, false]));
        assert_eq!(made["labels"], json!({"alpha": "lorem"}));
        assert_eq!(made["mail"], "alpha@example.org");
        fill.choice = 1;
        let phone = arguments("t", &schema, &fill)["phone"].clone();
        assert!(
            phone
                .as_str()
                .is_some_and(|phone| phone.len() >= 4 && phone.parse::<u32>().is_ok()),
            "{phone}"
        );
    }

    #[test]
    fn what_is_moved_is_there_and_where_it_goes_is_not() {
        let harvest = Harvest::default();
        let fill = Fill::new(&harvest, "/w");
        let text = json!({"type": "string"});
        let schema = json!({"type": "object", "required": ["source", "destination"],
            "properties": {"source": text, "destination": text}});
        let made = arguments("move_file", &schema, &fill);
        assert_eq!(
            made,
            json!({"source": "/w/alpha.txt", "destination": "/w/echo.txt"})
        );
    }

    #[test]
    fn roles_by_name() {
        let string = json!({"type": "string"});
        for (name, expected) in [
            ("title", Role::Key),
            ("noteId", Role::Reference),
            ("task_id", Role::Reference),
            ("file_hash", Role::Reference),
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
