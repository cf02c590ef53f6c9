//! How changes that rules ask for are written in TypeScript and JavaScript.

use toctou_core::Span;
use toctou_core::frontend::Remedy;
use toctou_core::mend::{Line, call, line_break, lines_from};

type Changes = Vec<(Span, String)>;

pub(crate) fn mend(_path: &str, text: &str, remedy: &Remedy) -> Option<Changes> {
    match *remedy {
        Remedy::CreateExclusively { create } => create_exclusively(text, create),
        Remedy::ReleaseAlways { acquire } => release_always(text, acquire),
    }
}

/// The standard library's ways to create a file, each with the flag `wx`.
fn create_exclusively(text: &str, create: Span) -> Option<Changes> {
    let call = call(text, create, "//")?;
    if call.arguments.iter().any(|a| a.text.starts_with("...")) {
        return None;
    }
    let change = match (call.name(), call.arguments.as_slice()) {
        ("writeFile" | "writeFileSync", [_, data]) => {
            let end = Span::new(data.span.end, data.span.end);
            (end, ", { flag: \"wx\" }".to_owned())
        }
        ("writeFile" | "writeFileSync", [_, _, options]) if options.string().is_some() => {
            let new = format!("{{ encoding: {}, flag: \"wx\" }}", options.text);
            (options.span, new)
        }
        ("writeFile" | "writeFileSync", [_, _, options]) => {
            let inner = options.text.strip_prefix('{')?.strip_suffix('}')?.trim();
            if inner.contains("flag") || inner.contains("...") {
                return None;
            }
            let new = match inner.trim_end_matches(',') {
                "" => "{ flag: \"wx\" }".to_owned(),
                inner => format!("{{ {inner}, flag: \"wx\" }}"),
            };
            (options.span, new)
        }
        ("open" | "openSync", [_, flags, ..]) if matches!(flags.string()?, "w" | "w+") => {
            // Behind the quote and the letter.
            let at = flags.span.start + 2;
            (Span::new(at, at), "x".to_owned())
        }
        _ => return None,
    };
    Some(vec![change])
}

/// `const release = await mutex.acquire();` … `release();`, each a line of its
/// own: what is between and behind goes into a `try`. What is behind must not
/// wait for anything, since the lock is held there from now on.
fn release_always(text: &str, acquire: Span) -> Option<Changes> {
    let mut lines = lines_from(text, acquire.start);
    let first = lines.next()?;
    let declared = first.code.strip_prefix("const ")?;
    let (name, value) = declared.split_once('=')?;
    let name = name.trim();
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    if !plain || !value.ends_with(';') || acquire.end > first.end {
        return None;
    }
    let body: Vec<Line<'_>> = lines.take_while(|line| line.is_within(&first)).collect();
    let released = |line: &&Line<'_>| {
        let code = line.code.strip_prefix("await ").unwrap_or(line.code);
        code.strip_prefix(name) == Some("();") && line.indent == first.indent
    };
    let release = body.iter().find(released)?;
    let behind = body.iter().skip_while(|line| line.start <= release.start);
    let mentions = |line: &&Line<'_>| line.code.contains(name);
    let others = body.iter().filter(mentions).count();
    let last = body.iter().rev().find(|line| !line.is_blank())?;
    let region = text.get(first.end as usize..last.end as usize)?;
    let waits = behind
        .clone()
        .any(|line| line.code.contains("await") || line.code.contains("yield"));
    // Texts over several lines would be changed by moving them in.
    if others != 1 || waits || region.contains('`') || region.contains("/*") {
        return None;
    }
    let unit = if first.indent.contains('\t') {
        "\t"
    } else {
        "  "
    };
    let end = line_break(text);
    let mut new = format!("{}try {{{end}", first.indent);
    for line in &body {
        if line.start > last.start || line.start == release.start {
            continue;
        }
        let moved = text.get(line.start as usize..line.end as usize)?;
        new += if line.is_blank() { "" } else { unit };
        new += moved;
    }
    new += &format!(
        "{indent}}} finally {{{end}{indent}{unit}{}{end}{indent}}}{end}",
        release.code,
        indent = first.indent,
    );
    Some(vec![(Span::new(first.end, last.end), new)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, from: &str, remedy: fn(Span) -> Remedy) -> Option<String> {
        let start = text.find(from).expect("the place") as u32;
        let span = Span::new(start, start + from.len() as u32);
        let changes = mend("a.ts", text, &remedy(span))?;
        toctou_core::mend::apply(text, &changes)
    }

    fn created(call: &str) -> Option<String> {
        of(call, call, |create| Remedy::CreateExclusively { create })
    }

    #[test]
    fn files_are_created_with_wx() {
        for (before, after) in [
            ("writeFile(p, t)", "writeFile(p, t, { flag: \"wx\" })"),
            (
                "fs.writeFileSync(p, f(t, u))",
                "fs.writeFileSync(p, f(t, u), { flag: \"wx\" })",
            ),
            (
                "writeFile(p, t, 'utf8')",
                "writeFile(p, t, { encoding: 'utf8', flag: \"wx\" })",
            ),
            (
                "writeFile(p, t, { mode: 0o600 })",
                "writeFile(p, t, { mode: 0o600, flag: \"wx\" })",
            ),
            ("writeFile(p, t, {})", "writeFile(p, t, { flag: \"wx\" })"),
            ("open(p, \"w\")", "open(p, \"wx\")"),
            (
                "fs.openSync(p, 'w+', 0o600)",
                "fs.openSync(p, 'wx+', 0o600)",
            ),
        ] {
            assert_eq!(created(before).as_deref(), Some(after));
        }
        for refused in [
            "writeFile(p, t, options)",
            "writeFile(p, t, { flag: \"a\" })",
            "writeFile(p, t, { ...options })",
            "writeFile(p, t, (error) => done(error))",
            "writeFile(...all)",
            "writeFile(p, /* text */ t)",
            "open(p, flags)",
            "open(p, \"r+\")",
            "copyFile(a, b)",
            "save(p)",
        ] {
            assert_eq!(created(refused), None, "{refused}");
        }
    }

    const HELD: &str = "async function f() {\n  const release = await mutex.acquire();\n  const html = await render(page);\n\n  release();\n  return { html };\n}\n";

    fn held(text: &str) -> Option<String> {
        of(text, "mutex.acquire()", |acquire| Remedy::ReleaseAlways {
            acquire,
        })
    }

    #[test]
    fn locks_are_released_in_finally() {
        assert_eq!(
            held(HELD).as_deref(),
            Some(
                "async function f() {\n  const release = await mutex.acquire();\n  try {\n    const html = await render(page);\n\n    return { html };\n  } finally {\n    release();\n  }\n}\n"
            )
        );
        let windows = HELD.replace('\n', "\r\n");
        let after = held(&windows).expect("mended");
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    }

    #[test]
    fn locks_are_left_alone_where_it_is_not_plain() {
        for (from, to) in [
            ("return { html }", "return await send(html)"),
            ("render(page)", "render(`a\nb`)"),
            ("  release();\n", "  if (html) {\n    release();\n  }\n"),
            ("  release();\n", "  release();\n  release();\n"),
            ("const release", "let release"),
            ("const release", "const { release }"),
            ("  release();\n", ""),
        ] {
            assert_eq!(held(&HELD.replace(from, to)), None, "{to}");
        }
    }
}
