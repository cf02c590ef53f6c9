//! How changes that rules ask for are written in Rust.

use toctou_core::Span;
use toctou_core::frontend::Remedy;
use toctou_core::mend::call;

pub(crate) fn mend(_path: &str, text: &str, remedy: &Remedy) -> Option<Vec<(Span, String)>> {
    match *remedy {
        Remedy::CreateExclusively { create } => create_exclusively(text, create),
        // A guard is dropped on every way out.
        Remedy::ReleaseAlways { .. } => None,
    }
}

/// `fs::write` has no flags: to open and write instead takes statements and traits in scope.
fn create_exclusively(text: &str, create: Span) -> Option<Vec<(Span, String)>> {
    let call = call(text, create, "//")?;
    let at = |offset: usize| call.start + offset as u32;
    if call.callee.ends_with("File::create") && call.arguments.len() == 1 {
        let end = at(call.callee.len());
        return Some(vec![(Span::new(end, end), "_new".to_owned())]);
    }
    // `OpenOptions::new().write(true).create(true).open(path)`
    let chain = call.callee.contains("OpenOptions::new()") && call.name() == "open";
    let plain = !call.callee.contains("create_new") && !call.callee.contains(".append(");
    let (before, after) = call
        .callee
        .split_once(".create(true)")
        .filter(|_| chain && plain)?;
    if after.contains(".create(") {
        return None;
    }
    let end = at(before.len() + ".create".len());
    Some(vec![(Span::new(end, end), "_new".to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_created_new() {
        let created = |text: &str| {
            let create = Span::new(0, text.len() as u32);
            let changes = mend("a.rs", text, &Remedy::CreateExclusively { create })?;
            toctou_core::mend::apply(text, &changes)
        };
        for (before, after) in [
            (
                "tokio::fs::File::create(&path)",
                "tokio::fs::File::create_new(&path)",
            ),
            (
                "OpenOptions::new().write(true).create(true).open(p)",
                "OpenOptions::new().write(true).create_new(true).open(p)",
            ),
        ] {
            assert_eq!(created(before).as_deref(), Some(after));
        }
        for refused in [
            "fs::write(&path, text)",
            "OpenOptions::new().append(true).create(true).open(p)",
            "OpenOptions::new().create_new(true).open(p)",
            "options.open(p)",
            "File::create(p)?",
        ] {
            assert_eq!(created(refused), None, "{refused}");
        }
    }
}
