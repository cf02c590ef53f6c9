//! Strings that a schema restricts: by format, by pattern, by length.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;

/// A string of a format, if it is one that is known. `word` and `number` tell things apart.
pub fn of_format(format: &str, word: &str, number: usize) -> Option<String> {
    Some(match format {
        "date-time" => "2031-02-03T04:05:06Z".to_owned(),
        "date" => "2031-02-03".to_owned(),
        "time" => "04:05:06".to_owned(),
        "duration" => "P1D".to_owned(),
        "email" | "idn-email" => format!("{word}@example.org"),
        "hostname" | "idn-hostname" => format!("{word}.example.org"),
        "uri" | "url" | "iri" | "uri-reference" => format!("https://example.org/{word}"),
        "ipv4" => format!("192.0.2.{}", number % 250 + 1),
        "ipv6" => format!("2001:db8::{:x}", number % 250 + 1),
        "uuid" => format!("00000000-0000-4000-8000-{:012x}", number),
        "json-pointer" => format!("/{word}"),
        _ => return None,
    })
}

/// Longer or shorter, if it has to be.
pub fn of_length(mut text: String, schema: &Value) -> String {
    const MOST: usize = 10_000;
    let bound = |name: &str| {
        let bound = schema.get(name).and_then(Value::as_u64)?;
        usize::try_from(bound).ok()
    };
    if let Some(least) = bound("minLength") {
        let missing = least.min(MOST).saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n('x', missing));
    }
    if let Some(most) = bound("maxLength") {
        text = text.chars().take(most).collect();
    }
    text
}

/// Of a piece that may come any number of times, no more than this.
const MOST_TIMES: u32 = 64;
const LONGEST: usize = 4096;

/// A string that matches, with as much of `word` in it as fits. Nothing if the pattern
/// cannot be read: the dialects differ.
pub fn of_pattern(pattern: &str, word: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut out = String::new();
    write(&hir, word, &mut out)?;
    Some(out)
}

fn write(hir: &Hir, word: &str, out: &mut String) -> Option<()> {
    if out.len() > LONGEST {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(letter(class, word, 0)?),
        HirKind::Capture(group) => write(&group.sub, word, out)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, word, out)?;
            }
        }
        HirKind::Alternation(parts) => write(parts.first()?, word, out)?,
        HirKind::Repetition(repetition) => {
            // As often as the word is long, as far as that is allowed.
            let wanted = u32::try_from(word.len()).unwrap_or(MOST_TIMES);
            let most = repetition.max.unwrap_or(MOST_TIMES).min(MOST_TIMES);
            let times = wanted.clamp(repetition.min.min(most), most);
            let times = times.max(repetition.min.min(LONGEST as u32));
            match repetition.sub.kind() {
                HirKind::Class(class) => {
                    for at in 0..times {
                        out.push(letter(class, word, at as usize)?);
                    }
                }
                // What is longer than a letter comes no more often than it must.
                _ => {
                    for _ in 0..repetition.min.min(MOST_TIMES) {
                        write(&repetition.sub, word, out)?;
                    }
                }
            }
        }
    }
    Some(())
}

/// The letter of `word` at this place if the class has it, in capitals if need be, else one that it has.
fn letter(class: &Class, word: &str, at: usize) -> Option<char> {
    let has = |c: char| match class {
        Class::Unicode(class) => class
            .iter()
            .any(|range| range.start() <= c && c <= range.end()),
        Class::Bytes(class) => u8::try_from(c).is_ok_and(|c| {
            class
                .iter()
                .any(|range| range.start() <= c && c <= range.end())
        }),
    };
    let own = word
        .chars()
        .nth(at % word.chars().count().max(1))
        .unwrap_or('x');
    // Different words become different numbers.
    let digit = char::from_digit(u32::from(own) % 9 + 1, 10)?;
    [
        own,
        own.to_ascii_uppercase(),
        digit,
        'a',
        'A',
        '1',
        '-',
        '_',
    ]
    .into_iter()
    .find(|c| has(*c))
    .or_else(|| match class {
        Class::Unicode(class) => class.iter().next().map(|range| range.start()),
        Class::Bytes(class) => class.iter().next().map(|range| char::from(range.start())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_matched() {
        for (pattern, word, made) in [
            ("^[a-z0-9-]+$", "alpha", "alpha"),
            ("^[a-z]{2,3}$", "alpha", "alp"),
            ("^task-[0-9]{3}$", "alpha", "task-815"),
            ("^(open|closed)$", "alpha", "open"),
            ("^#[0-9a-fA-F]{6}$", "golf", "#541f54"),
            ("^\\d{4}-\\d{2}(-x)?$", "alpha", "8156-81"),
        ] {
            assert_eq!(
                of_pattern(pattern, word).as_deref(),
                Some(made),
                "{pattern}"
            );
        }
        assert_eq!(
            of_pattern("^[a-z0-9-]+$", "bravo").as_deref(),
            Some("bravo")
        );
        assert_ne!(
            of_pattern("^[0-9]{5}$", "alpha"),
            of_pattern("^[0-9]{5}$", "bravo")
        );
        assert_eq!(of_pattern("(?=x)y", "alpha"), None);
        assert!(
            of_pattern("((a{1000}){1000}){1000}", "alpha").is_none_or(|text| text.len() < 1 << 20)
        );
    }

    #[test]
    fn lengths_are_kept() {
        let schema = serde_json::json!({"minLength": 9, "maxLength": 9});
        assert_eq!(of_length("alpha".to_owned(), &schema), "alphaxxxx");
        assert_eq!(of_length("alphabravo".to_owned(), &schema), "alphabrav");
    }
}
