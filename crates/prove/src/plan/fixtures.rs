//! Files that a server may want to find in its workspace.

use std::path::PathBuf;

use serde_json::Value;

use super::synth::KEYS;

/// What a tool's files are called, by what it says about them.
pub fn ending(tool: &str, schema: &Value) -> &'static str {
    let text = format!("{tool} {schema}").to_ascii_lowercase();
    for (word, ending) in [
        ("xlsx", ".xlsx"),
        ("docx", ".docx"),
        ("sqlite", ".db"),
        (".json", ".json"),
        (".csv", ".csv"),
        (".md", ".md"),
        (".yaml", ".yaml"),
    ] {
        if text.contains(word) {
            return ending;
        }
    }
    ".txt"
}

/// Two files of each common kind and two folders, below the workspace.
pub fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for word in &KEYS[..2] {
        for (ending, content) in [
            (".txt", format!("text of {word}\n")),
            (".md", format!("# {word}\n\ntext of {word}\n")),
            (".json", format!("{{\"name\": \"{word}\"}}\n")),
            (".csv", format!("name,count\n{word},1\n")),
            (".yaml", format!("name: {word}\n")),
        ] {
            all.push((
                PathBuf::from(format!("{word}{ending}")),
                content.into_bytes(),
            ));
        }
    }
    all
}
