//! Reading code as it is written, for those who change it.
//!
//! A change must leave alone everything it is not about: names, quotes, line
//! breaks. So it is made in the text, at places that the analysis knows to be
//! calls. Where the text is not plain enough to be sure, there is no change;
//! what comes out is parsed again before anybody sees it.

use crate::Span;

/// `callee(arguments)`, where it is plain what belongs to what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call<'t> {
    pub callee: &'t str,
    /// Where the callee begins in the text.
    pub start: u32,
    pub arguments: Vec<Argument<'t>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument<'t> {
    pub span: Span,
    pub text: &'t str,
}

/// The call that is all of `span`. `comment` begins comments of the language.
pub fn call<'t>(text: &'t str, span: Span, comment: &str) -> Option<Call<'t>> {
    let code = text.get(span.start as usize..span.end as usize)?;
    let marks = scan(code, comment)?;
    // The last pair of brackets that is in no other is the list of arguments.
    let open = marks.iter().rev().find(|m| m.depth == 0 && m.c == '(')?;
    let close = marks.last().filter(|m| m.depth == 0 && m.c == ')')?;
    if close.at + 1 != code.len() {
        return None;
    }
    let mut arguments = Vec::new();
    let commas = marks
        .iter()
        .filter(|m| m.at > open.at && m.depth == 1 && m.c == ',');
    let mut start = open.at + 1;
    for end in commas.map(|m| m.at).chain([close.at]) {
        let raw = &code[start..end];
        let argument = raw.trim();
        if !argument.is_empty() {
            let from = start + (raw.len() - raw.trim_start().len());
            let at = span.start + from as u32;
            arguments.push(Argument {
                span: Span::new(at, at + argument.len() as u32),
                text: argument,
            });
        }
        start = end + 1;
    }
    Some(Call {
        callee: code[..open.at].trim_end(),
        start: span.start,
        arguments,
    })
}

impl Call<'_> {
    /// The last part of the callee's name.
    pub fn name(&self) -> &str {
        self.callee
            .rsplit(['.', ':', ' '])
            .next()
            .unwrap_or(self.callee)
    }
}

impl<'t> Argument<'t> {
    /// What stands between the quotes, if it is a string and nothing else.
    pub fn string(&self) -> Option<&'t str> {
        let quote = self.text.chars().next().filter(|c| "\"'`".contains(*c))?;
        let inner = self.text.get(1..)?.strip_suffix(quote)?;
        (!inner.contains([quote, '\\', '\n', '$'])).then_some(inner)
    }
}

/// A bracket or a comma outside of strings.
struct Mark {
    at: usize,
    c: char,
    /// Brackets round it.
    depth: usize,
}

/// `None` where there are comments, or brackets and quotes do not match.
fn scan(code: &str, comment: &str) -> Option<Vec<Mark>> {
    let mut marks = Vec::new();
    let mut depth = 0_usize;
    let mut quote = None;
    let mut chars = code.char_indices();
    while let Some((at, c)) = chars.next() {
        if let Some(open) = quote {
            match c {
                '\\' => {
                    chars.next();
                }
                c if c == open => quote = None,
                _ => {}
            }
            continue;
        }
        if code[at..].starts_with(comment) || code[at..].starts_with("/*") {
            return None;
        }
        match c {
            '"' | '\'' | '`' => quote = Some(c),
            '(' | '[' | '{' => {
                marks.push(Mark { at, c, depth });
                depth += 1;
            }
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                marks.push(Mark { at, c, depth });
            }
            ',' => marks.push(Mark { at, c, depth }),
            _ => {}
        }
    }
    (quote.is_none() && depth == 0).then_some(marks)
}

/// A line of a text, with its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'t> {
    pub start: u32,
    /// Behind its line break.
    pub end: u32,
    pub indent: &'t str,
    /// Without indent and trailing blanks.
    pub code: &'t str,
}

impl Line<'_> {
    pub fn is_blank(&self) -> bool {
        self.code.is_empty()
    }

    /// Is it further in than `other`, or as far?
    pub fn is_within(&self, other: &Line<'_>) -> bool {
        self.is_blank() || self.indent.starts_with(other.indent)
    }
}

/// The line of a place and all that follow.
pub fn lines_from(text: &str, offset: u32) -> impl Iterator<Item = Line<'_>> {
    let offset = (offset as usize).min(text.len());
    let before = text.get(..offset).unwrap_or_default();
    let mut start = before.rfind('\n').map_or(0, |at| at + 1);
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let whole = &rest[..length];
        let code = whole.trim();
        let indent = &whole[..whole.len() - whole.trim_start_matches([' ', '\t']).len()];
        let line = Line {
            start: start as u32,
            end: (start + length) as u32,
            indent,
            code,
        };
        start += length;
        Some(line)
    })
}

/// The line break of a text.
pub fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Makes changes. `None` where they overlap or are not in the text.
pub fn apply(text: &str, changes: &[(Span, String)]) -> Option<String> {
    let mut changes: Vec<&(Span, String)> = changes.iter().collect();
    changes.sort_by_key(|(span, _)| (span.start, span.end));
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (span, new) in changes {
        out += text.get(at..span.start as usize)?;
        text.get(span.start as usize..span.end as usize)?;
        out += new;
        at = span.end as usize;
    }
    out += text.get(at..)?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Vec<String>)> {
        let call = call(text, Span::new(0, text.len() as u32), "//")?;
        let arguments = call.arguments.iter().map(|a| a.text.to_owned()).collect();
        Some((call.callee.to_owned(), arguments))
    }

    #[test]
    fn reads_calls_that_are_plain() {
        let (callee, arguments) =
            read("fs.writeFile(a(1, 2), `x, ${y}`, { a: [1, 2] },)").expect("plain");
        assert_eq!(callee, "fs.writeFile");
        assert_eq!(arguments, ["a(1, 2)", "`x, ${y}`", "{ a: [1, 2] }"]);
        assert_eq!(
            read("f(g)(\"(\", 'it\\'s')").expect("plain").1,
            ["\"(\"", "'it\\'s'"]
        );
        assert_eq!(read("f()").expect("plain").1, [""; 0]);
    }

    #[test]
    fn refuses_what_is_not() {
        for text in [
            "f(a",
            "f(a) + 1",
            "f(a /* b, c */)",
            "f(a, // b\n c)",
            "f(\")",
            "f(a))",
            "f",
            "",
            "f(])",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(call("é(a)", Span::new(1, 5), "//"), None);
        assert_eq!(call("f(a)", Span::new(9, 2), "//"), None);
    }

    #[test]
    fn strings_are_plain_or_none() {
        let string = |text: &'static str| {
            Argument {
                span: Span::new(0, 0),
                text,
            }
            .string()
        };
        assert_eq!(string("\"w\""), Some("w"));
        assert_eq!(string("'utf8'"), Some("utf8"));
        for text in ["w", "`a${b}`", "\"a\\n\"", "\"a\" + \"b\"", "\"", ""] {
            assert_eq!(string(text), None, "{text}");
        }
    }

    #[test]
    fn changes_do_not_overlap() {
        let change = |start, end, new: &str| (Span::new(start, end), new.to_owned());
        assert_eq!(
            apply("abc", &[change(2, 3, "C"), change(0, 0, "x")]),
            Some("xabC".to_owned())
        );
        assert_eq!(apply("abc", &[change(0, 2, ""), change(1, 3, "")]), None);
        assert_eq!(apply("é", &[change(1, 1, "x")]), None);
        assert_eq!(apply("a", &[change(5, 9, "x")]), None);
    }

    #[test]
    fn lines_know_where_they_are() {
        let text = "a\r\n  b \n\nc";
        let lines: Vec<_> = lines_from(text, 4).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            (lines[0].start, lines[0].end, lines[0].indent, lines[0].code),
            (3, 8, "  ", "b")
        );
        assert!(lines[1].is_blank());
        assert!(!lines[2].is_within(&lines[0]));
    }
}
