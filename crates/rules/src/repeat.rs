//! Putting the test into the statement: `AND status = 'open'`.
//!
//! The column is known to the analysis; its value is taken from the text of
//! the statement that read, or from the one test between the two. Both are
//! taken only where they are plain, and the condition goes only where the
//! statement has nothing but conditions joined by AND.

use toctou_analysis::Spot;
use toctou_core::Span;
use toctou_core::ir::{FuncId, Program};

use crate::case::Case;

/// The change, and the function that it is in.
pub(crate) fn changes(case: &Case<'_>) -> Option<(FuncId, Vec<(Span, String)>)> {
    let w = case.w;
    let ([read], [write]) = (w.read.as_slice(), w.write.as_slice()) else {
        return None;
    };
    let same = program_file(case.program, *read) == program_file(case.program, *write);
    if !same || case.inserts() || case.deletes() || write.span.start < read.span.end {
        return None;
    }
    let (read_row, write_row) = (w.read_row.as_ref()?, w.write_row.as_ref()?);
    let file = case.program.file_of(write.func);
    let text: &str = &file.text;
    let select = literal(text, read.span, "select")?;
    let update = literal(text, write.span, "update")?;
    let between = text.get(read.span.end as usize..write.span.start as usize)?;

    let asked = |column: &str| write_row.conditions.iter().any(|c| same_name(c, column));
    let mut wanted: Vec<&str> = w.checked.iter().map(String::as_str).collect();
    wanted.extend(
        read_row
            .conditions
            .iter()
            .filter(|c| write_row.columns.contains(c))
            .map(String::as_str),
    );
    wanted.retain(|column| !asked(column) && !is_wrapping(column));
    wanted.sort_unstable();
    wanted.dedup();
    let mut added = String::new();
    for column in wanted {
        let value = constant(select.text, column).or_else(|| guarded(between, column))?;
        added += &format!(" AND {column} = {value}");
    }
    if added.is_empty() || added.contains(update.quote) {
        return None;
    }
    let at = update.start + end_of_where(update.text)? as u32;
    Some((write.func, vec![(Span::new(at, at), added)]))
}

fn program_file(program: &Program, spot: Spot) -> &str {
    &program.file_of(spot.func).path
}

fn same_name(a: &str, b: &str) -> bool {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_ascii_lowercase()
    };
    plain(a) == plain(b)
}

/// What stands round a row, and is no column of it.
fn is_wrapping(name: &str) -> bool {
    matches!(name, "rows" | "0" | "rowCount" | "data" | "results")
}

struct Literal<'t> {
    text: &'t str,
    start: u32,
    quote: char,
}

/// The first string in a call, if it is a statement of this kind and plain.
fn literal<'t>(text: &'t str, span: Span, keyword: &str) -> Option<Literal<'t>> {
    let call = text.get(span.start as usize..span.end as usize)?;
    let open = call.find(['"', '\'', '`'])?;
    let quote = call[open..].chars().next()?;
    let inner = &call[open + 1..];
    let inner = &inner[..inner.find(quote)?];
    let head = inner.trim_start().get(..keyword.len())?;
    let plain = !inner.contains(['\\', '{', ';']) && !inner.contains("--");
    (plain && head.eq_ignore_ascii_case(keyword)).then_some(Literal {
        text: inner,
        start: span.start + open as u32 + 1,
        quote,
    })
}

/// Where the conditions of a statement begin and end, if they are joined by AND only.
fn conditions(sql: &str) -> Option<(usize, usize)> {
    let lower = sql.to_ascii_lowercase();
    let words = |word: &str| -> Vec<usize> {
        lower
            .match_indices(word)
            .map(|(at, _)| at)
            .filter(|&at| {
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
                edge(lower[..at].chars().next_back())
                    && edge(lower[at + word.len()..].chars().next())
            })
            .collect()
    };
    let &[start] = words("where").as_slice() else {
        return None;
    };
    let start = start + "where".len();
    let end = ["order", "limit", "returning", "group", "for"]
        .iter()
        .flat_map(|word| words(word))
        .filter(|&at| at > start)
        .min()
        .unwrap_or(sql.len());
    let joined = words("or").is_empty() && !sql[start..].contains('(');
    joined.then_some((start, end))
}

fn end_of_where(sql: &str) -> Option<usize> {
    let (start, end) = conditions(sql)?;
    let used = sql[start..end].trim_end().len();
    (used > 0).then_some(start + used)
}

/// `state = 'waiting'`: the value that rows were chosen by.
fn constant(sql: &str, column: &str) -> Option<String> {
    let (start, end) = conditions(sql)?;
    let part = &sql[start..end];
    let lower = part.to_ascii_lowercase();
    let mut from = 0;
    let mut parts = Vec::new();
    for (at, _) in lower.match_indices(" and ") {
        parts.push(&part[from..at]);
        from = at + 5;
    }
    parts.push(&part[from..]);
    parts.into_iter().find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim().rsplit('.').next()?;
        (same_name(name, column) && !name.ends_with(['<', '>', '!'])).then_some(())?;
        plain_value(value.trim())
    })
}

/// A string or a number, as SQL writes it.
fn plain_value(text: &str) -> Option<String> {
    let number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let string = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
    (number || string.is_some_and(is_plain)).then(|| text.to_owned())
}

fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || "_- .".contains(c))
}

/// `if (row.status !== "open") { return …; }`, the only place between read and
/// write that names the column: behind it, the value is known.
fn guarded(between: &str, column: &str) -> Option<String> {
    let [(at, _)] = between.match_indices(column).collect::<Vec<_>>()[..] else {
        return None;
    };
    let before = between[..at].chars().next_back();
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let opens = between[..at].rfind("if")?;
    if between[opens..at].contains([';', '{', '\n', '&', '|', '!']) {
        return None;
    }
    let rest = between[at + column.len()..].trim_start();
    let rest = rest
        .strip_prefix("!==")
        .or_else(|| rest.strip_prefix("!="))?
        .trim_start();
    let quote = rest.chars().next().filter(|c| "\"'".contains(*c))?;
    let (value, rest) = rest[1..].split_once(quote)?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(')').unwrap_or(rest).trim_start();
    let exits = |code: &str| {
        let code = code.trim_start_matches([' ', '\t', '\n', '\r']);
        ["return", "throw", "raise", "bail!", "anyhow::bail!"]
            .iter()
            .any(|word| code.starts_with(word))
    };
    // The block ends before the write, and with leaving the function.
    let leaves = match rest.strip_prefix('{') {
        Some(block) => {
            let mut depth = 1_i32;
            let end = block.char_indices().find_map(|(at, c)| {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                (depth == 0).then_some(at)
            })?;
            let last = block[..end].trim_end();
            let statement = last.rfind(['\n', '{', '}']).map_or(0, |at| at + 1);
            exits(&last[statement..]) || exits(&block[..end])
        }
        None => exits(rest),
    };
    (leaves && is_plain(value)).then(|| format!("'{value}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_rows_were_chosen_by() {
        let sql = "SELECT id FROM jobs WHERE j.state = 'waiting' AND n = 3 ORDER BY id LIMIT 1";
        assert_eq!(constant(sql, "state").as_deref(), Some("'waiting'"));
        assert_eq!(constant(sql, "n").as_deref(), Some("3"));
        for (sql, column) in [
            (sql, "other"),
            ("SELECT * FROM a WHERE state = $1", "state"),
            ("SELECT * FROM a WHERE state = 'x' OR n = 1", "state"),
            ("SELECT * FROM a WHERE state >= 3", "state"),
            ("SELECT * FROM a WHERE state IN (SELECT 1)", "state"),
            ("SELECT * FROM a", "state"),
            ("SELECT * FROM a WHERE state = 'it''s'", "state"),
        ] {
            assert_eq!(constant(sql, column), None, "{sql}");
        }
    }

    #[test]
    fn conditions_go_to_the_end_of_where() {
        let insert = |sql: &str| {
            let at = end_of_where(sql)?;
            Some(format!("{} AND x = 1{}", &sql[..at], &sql[at..]))
        };
        assert_eq!(
            insert("UPDATE a SET b = 1 WHERE id = ?").as_deref(),
            Some("UPDATE a SET b = 1 WHERE id = ? AND x = 1")
        );
        assert_eq!(
            insert("UPDATE a SET b = 1 WHERE id = ? RETURNING id").as_deref(),
            Some("UPDATE a SET b = 1 WHERE id = ? AND x = 1 RETURNING id")
        );
        for sql in [
            "UPDATE a SET b = 1",
            "UPDATE a SET b = 1 WHERE id = ? OR c = 1",
            "UPDATE a SET b = (SELECT 1 WHERE 1) WHERE id = 1",
        ] {
            assert_eq!(insert(sql), None, "{sql}");
        }
    }

    #[test]
    fn values_that_are_tested() {
        let value = |between: &str| guarded(between, "status");
        for between in [
            "\n if (rows[0]?.status !== \"open\") {\n  return { isError: true };\n }\n await ",
            " if (row.status != 'open') throw new Error(\"no\");\n",
            " if status != \"open\" {\n return nil, errors.New(\"no\")\n}\n",
        ] {
            assert_eq!(value(between).as_deref(), Some("'open'"), "{between}");
        }
        for between in [
            "if (row.status !== \"open\") { log(1); }",
            "if (row.status === \"open\") { return; }",
            "if (row.status !== \"open\" && force) return;",
            "if (a || row.status !== \"open\") return;",
            "if (!(row.status !== \"open\")) return;",
            "if (row.status !== other) return;",
            "if (row.status !== \"it's\") return;",
            "if (row.status !== \"open\") return; f(row.status);",
            "if (row.mystatus !== \"open\") return;",
            "if (row.status !== \"open\") {",
            "",
        ] {
            assert_eq!(value(between), None, "{between}");
        }
    }
}
