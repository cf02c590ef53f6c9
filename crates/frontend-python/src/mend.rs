//! How changes that rules ask for are written in Python.

use toctou_core::Span;
use toctou_core::frontend::Remedy;
use toctou_core::mend::{Argument, Call, Line, call, line_break, lines_from};

type Changes = Vec<(Span, String)>;

pub(crate) fn mend(_path: &str, text: &str, remedy: &Remedy) -> Option<Changes> {
    match *remedy {
        Remedy::CreateExclusively { create } => create_exclusively(text, create),
        Remedy::ReleaseAlways { acquire } => release_always(text, acquire),
    }
}

fn create_exclusively(text: &str, create: Span) -> Option<Changes> {
    let call = call(text, create, "#")?;
    match call.name() {
        "open" => mode_x(&call),
        "write_text" | "write_bytes" => written(text, create, &call),
        "write" | "writelines" => opened(text, create, &call),
        _ => None,
    }
}

/// `open(p, "w")` and `p.open("w")`: the mode is the argument that says `w`.
fn mode_x(call: &Call<'_>) -> Option<Changes> {
    let position = usize::from(!call.callee.contains('.') || is_module(call.callee));
    let named = call.arguments.iter().find_map(|a| {
        let value = a.text.strip_prefix("mode=")?;
        let start = a.span.end - value.len() as u32;
        Some(Argument {
            span: Span::new(start, a.span.end),
            text: value,
        })
    });
    let mode = named.or_else(|| call.arguments.get(position).copied())?;
    let inner = mode.string()?;
    if !matches!(inner, "w" | "wb" | "wt" | "w+" | "wb+" | "w+b") {
        return None;
    }
    let at = mode.span.start + 1;
    Some(vec![(Span::new(at, at + 1), "x".to_owned())])
}

/// Modules whose `open` takes the path first.
fn is_module(callee: &str) -> bool {
    matches!(
        callee,
        "io.open" | "aiofiles.open" | "codecs.open" | "anyio.open_file"
    )
}

/// `path.write_text(text)`, a statement of its own.
fn written(text: &str, create: Span, call: &Call<'_>) -> Option<Changes> {
    const FILE: &str = "new_file";
    let line = lines_from(text, create.start).next()?;
    let whole = text.get(create.start as usize..create.end as usize)?;
    let (data, options) = call.arguments.split_first()?;
    let named = |a: &Argument<'_>| {
        ["encoding=", "errors=", "newline="]
            .iter()
            .any(|name| a.text.starts_with(name))
    };
    let receiver = call.callee.rsplit_once('.')?.0;
    let plain = line.code == whole && !whole.contains('\n') && !data.text.contains('=');
    if !plain || !options.iter().all(named) || text.contains(FILE) {
        return None;
    }
    let mode = if call.name() == "write_bytes" {
        "xb"
    } else {
        "x"
    };
    let options: String = options.iter().map(|a| format!(", {}", a.text)).collect();
    let new = format!(
        "with {receiver}.open(\"{mode}\"{options}) as {FILE}:{}{}    {FILE}.write({})",
        line_break(text),
        line.indent,
        data.text,
    );
    Some(vec![(create, new)])
}

/// `f.write(…)` in the body of `with open(p, "w") as f:`, on the line above it
/// that opens its block.
fn opened(text: &str, create: Span, call: &Call<'_>) -> Option<Changes> {
    let name = call.callee.rsplit_once('.')?.0;
    let inside = lines_from(text, create.start).next()?;
    let before: Vec<Line<'_>> = lines_from(text, 0)
        .take_while(|line| line.start < inside.start)
        .collect();
    let head = before
        .iter()
        .rev()
        .find(|line| !line.is_blank() && line.indent.len() < inside.indent.len())?;
    let rest = head.code.strip_prefix("async ").unwrap_or(head.code);
    let value = rest
        .strip_prefix("with ")?
        .strip_suffix(&format!(" as {name}:"))?;
    let offset = head.start + (head.indent.len() + head.code.find(value)?) as u32;
    let open = toctou_core::mend::call(text, Span::new(offset, offset + value.len() as u32), "#")?;
    (open.name() == "open").then(|| mode_x(&open))?
}

/// `lock.acquire()` … `lock.release()`, statements of one block.
fn release_always(text: &str, acquire: Span) -> Option<Changes> {
    let mut lines = lines_from(text, acquire.start);
    let first = lines.next()?;
    let taken = first.code.strip_prefix("await ").unwrap_or(first.code);
    let lock = taken.strip_suffix(".acquire()")?;
    let body: Vec<Line<'_>> = lines.take_while(|line| line.is_within(&first)).collect();
    let released = format!("{lock}.release()");
    let is_release = |line: &Line<'_>| {
        let code = line.code.strip_prefix("await ").unwrap_or(line.code);
        code == released && line.indent == first.indent
    };
    let at = body.iter().position(is_release)?;
    let (held, release) = (&body[..at], &body[at]);
    let mentioned = body
        .iter()
        .filter(|line| line.code.contains(&released))
        .count();
    let region = text.get(first.end as usize..release.start as usize)?;
    let odd = region.contains("\"\"\"") || region.contains("'''") || region.contains("\\\n");
    if mentioned != 1 || odd || held.iter().all(Line::is_blank) {
        return None;
    }
    let unit = if first.indent.contains('\t') {
        "\t"
    } else {
        "    "
    };
    let end = line_break(text);
    let mut new = format!("{}try:{end}", first.indent);
    for line in held {
        new += if line.is_blank() { "" } else { unit };
        new += text.get(line.start as usize..line.end as usize)?;
    }
    new += &format!("{indent}finally:{end}{indent}{unit}", indent = first.indent);
    let release_at = release.start + release.indent.len() as u32;
    Some(vec![(Span::new(first.end, release_at), new)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, from: &str, remedy: fn(Span) -> Remedy) -> Option<String> {
        let start = text.find(from).expect("the place") as u32;
        let span = Span::new(start, start + from.len() as u32);
        let changes = mend("a.py", text, &remedy(span))?;
        toctou_core::mend::apply(text, &changes)
    }

    fn created(text: &str, call: &str) -> Option<String> {
        of(text, call, |create| Remedy::CreateExclusively { create })
    }

    #[test]
    fn files_are_created_with_x() {
        for (text, call, after) in [
            (
                "f = open(p, \"w\")\n",
                "open(p, \"w\")",
                "f = open(p, \"x\")\n",
            ),
            (
                "f = open(p, mode='wb')\n",
                "open(p, mode='wb')",
                "f = open(p, mode='xb')\n",
            ),
            (
                "f = p.open(\"w\")\n",
                "p.open(\"w\")",
                "f = p.open(\"x\")\n",
            ),
            (
                "    p.write_text(t, encoding=\"utf-8\")\n",
                "p.write_text(t, encoding=\"utf-8\")",
                "    with p.open(\"x\", encoding=\"utf-8\") as new_file:\n        new_file.write(t)\n",
            ),
            (
                "  with open(p, \"w\") as f:\n    f.write(t)\n",
                "f.write(t)",
                "  with open(p, \"x\") as f:\n    f.write(t)\n",
            ),
        ] {
            assert_eq!(created(text, call).as_deref(), Some(after));
        }
        for (text, call) in [
            ("open(p, \"a\")", "open(p, \"a\")"),
            ("open(p, mode)", "open(p, mode)"),
            ("n = p.write_text(t)", "p.write_text(t)"),
            ("await p.write_text(t)", "p.write_text(t)"),
            ("p.write_text(data=t)", "p.write_text(data=t)"),
            ("f.write(t)", "f.write(t)"),
            ("with open(p, \"a\") as f:\n    f.write(t)", "f.write(t)"),
            ("with other as f:\n    f.write(t)", "f.write(t)"),
            ("shutil.copy(a, b)", "shutil.copy(a, b)"),
        ] {
            assert_eq!(created(text, call), None, "{text}");
        }
    }

    const HELD: &str = "async def f():\n    await lock.acquire()\n    async with client() as c:\n        answer = await c.get()\n    lock.release()\n    return answer\n";

    fn held(text: &str) -> Option<String> {
        of(text, "lock.acquire()", |acquire| Remedy::ReleaseAlways {
            acquire,
        })
    }

    #[test]
    fn locks_are_released_in_finally() {
        assert_eq!(
            held(HELD).as_deref(),
            Some(
                "async def f():\n    await lock.acquire()\n    try:\n        async with client() as c:\n            answer = await c.get()\n    finally:\n        lock.release()\n    return answer\n"
            )
        );
        for (from, to) in [
            (
                "    lock.release()\n",
                "    if answer:\n        lock.release()\n",
            ),
            ("    lock.release()\n", ""),
            ("c.get()", "c.get(\"\"\"a\nb\"\"\")"),
            ("await lock.acquire()", "ok = await lock.acquire()"),
        ] {
            assert_eq!(held(&HELD.replace(from, to)), None, "{to}");
        }
    }
}
