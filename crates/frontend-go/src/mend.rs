//! How changes that rules ask for are written in Go.

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

/// `os.WriteFile` has no flags: to open and write instead takes statements, and a name for the error.
fn create_exclusively(text: &str, create: Span) -> Option<Changes> {
    let call = call(text, create, "//")?;
    match (call.callee, call.arguments.as_slice()) {
        ("os.Create", [name]) => Some(vec![(
            create,
            format!(
                "os.OpenFile({}, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)",
                name.text
            ),
        )]),
        ("os.OpenFile", [_, flags, _])
            if flags.text.contains("os.O_CREATE") && !flags.text.contains("os.O_EXCL") =>
        {
            let words = |c: char| c.is_alphanumeric() || "._| \t".contains(c);
            if !flags.text.chars().all(words) || flags.text.contains("O_APPEND") {
                return None;
            }
            let end = Span::new(flags.span.end, flags.span.end);
            Some(vec![(end, "|os.O_EXCL".to_owned())])
        }
        _ => None,
    }
}

/// `mu.Lock()` in the outermost block of a function, with one `mu.Unlock()`
/// behind which there is only a return that does nothing more.
fn release_always(text: &str, acquire: Span) -> Option<Changes> {
    let mut lines = lines_from(text, acquire.start);
    let first = lines.next()?;
    let (lock, unlock) = match first.code.strip_suffix(".RLock()") {
        Some(lock) => (lock, "RUnlock()"),
        None => (first.code.strip_suffix(".Lock()")?, "Unlock()"),
    };
    // As gofmt writes it: one tab is the body of a function, and `}` its end.
    if first.indent != "\t" {
        return None;
    }
    let body: Vec<Line<'_>> = lines.take_while(|line| line.is_within(&first)).collect();
    let released = format!("{lock}.{unlock}");
    let mentioned = body
        .iter()
        .filter(|line| line.code.contains(&released))
        .count();
    let at = body
        .iter()
        .position(|line| line.code == released && line.indent == "\t")?;
    let release = &body[at];
    let region = text.get(first.end as usize..release.end as usize)?;
    let idle = |line: &Line<'_>| {
        line.is_blank() || line.code.starts_with("return") && !line.code.contains('(')
    };
    let again = body
        .iter()
        .any(|line| line.code.contains(&format!("{lock}.Lock()")));
    if mentioned != 1 || again || region.contains('`') || !body[at + 1..].iter().all(idle) {
        return None;
    }
    let deferred = format!("\tdefer {released}{}", line_break(text));
    Some(vec![
        (Span::new(first.end, first.end), deferred),
        (Span::new(release.start, release.end), String::new()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, from: &str, remedy: fn(Span) -> Remedy) -> Option<String> {
        let start = text.find(from).expect("the place") as u32;
        let span = Span::new(start, start + from.len() as u32);
        let changes = mend("a.go", text, &remedy(span))?;
        toctou_core::mend::apply(text, &changes)
    }

    #[test]
    fn files_are_created_with_excl() {
        let created = |text: &str| of(text, text, |create| Remedy::CreateExclusively { create });
        assert_eq!(
            created("os.Create(in.Name)").as_deref(),
            Some("os.OpenFile(in.Name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)")
        );
        assert_eq!(
            created("os.OpenFile(p, os.O_WRONLY | os.O_CREATE, 0o600)").as_deref(),
            Some("os.OpenFile(p, os.O_WRONLY | os.O_CREATE|os.O_EXCL, 0o600)")
        );
        for refused in [
            "os.WriteFile(p, b, 0o600)",
            "os.OpenFile(p, flags, 0o600)",
            "os.OpenFile(p, os.O_CREATE|os.O_EXCL, 0o600)",
            "os.OpenFile(p, os.O_CREATE|os.O_APPEND, 0o600)",
            "afero.Create(p)",
        ] {
            assert_eq!(created(refused), None, "{refused}");
        }
    }

    const HELD: &str = "func (s *S) add() error {\n\ts.mu.Lock()\n\tif s.full() {\n\t\treturn errFull\n\t}\n\ts.n++\n\ts.mu.Unlock()\n\treturn nil\n}\n";

    #[test]
    fn locks_are_released_by_defer() {
        let held = |text: &str| {
            of(text, "s.mu.Lock()", |acquire| Remedy::ReleaseAlways {
                acquire,
            })
        };
        assert_eq!(
            held(HELD).as_deref(),
            Some(
                "func (s *S) add() error {\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\tif s.full() {\n\t\treturn errFull\n\t}\n\ts.n++\n\treturn nil\n}\n"
            )
        );
        for (from, to) in [
            ("\treturn nil", "\treturn s.send()"),
            (
                "\t\treturn errFull",
                "\t\ts.mu.Unlock()\n\t\treturn errFull",
            ),
            ("\ts.mu.Unlock()\n", ""),
            ("\treturn nil", "\ts.mu.Lock()\n\treturn nil"),
        ] {
            assert_eq!(held(&HELD.replace(from, to)), None, "{to}");
        }
        let inner = HELD.replace("\ts.mu.Lock()", "\t\ts.mu.Lock()");
        assert_eq!(held(&inner), None);
    }
}
