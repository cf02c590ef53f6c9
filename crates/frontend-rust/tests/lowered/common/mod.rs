//! What the tests of the lowering share.

use toctou_core::FileId;
use toctou_core::ir::{Module, dump, validate};
use toctou_frontend_rust::lower;

/// Lowers a file that must be clean and must give a valid module.
pub fn module(path: &str, text: &str) -> Module {
    match lower(FileId(0), path, text) {
        Ok(lowered) => {
            assert_eq!(lowered.warnings, Vec::<String>::new(), "{text}");
            assert_eq!(validate(&lowered.module), Vec::<String>::new(), "{text}");
            lowered.module
        }
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// The function of this name, as text.
pub fn function(text: &str, name: &str) -> String {
    let dump = dump(&module("src/main.rs", text));
    let mut out = String::new();
    let mut inside = false;
    for line in dump.lines() {
        if line.starts_with("fn ") {
            inside = line.split(' ').nth(2) == Some(name);
        } else if !line.starts_with(' ') {
            inside = false;
        }
        if inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The lines stand in the text, in this order.
#[track_caller]
pub fn in_order(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for line in wanted {
        match rest.find(line) {
            Some(at) => rest = &rest[at + line.len()..],
            None => panic!("`{line}` is missing, or not in order, in\n{text}"),
        }
    }
}
