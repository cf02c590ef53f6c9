//! JSON as configuration files have it: with comments and trailing commas.

use serde_json::Value;

pub(super) fn parse(text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}');
    // Most manifests are plain JSON.
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&plain(text)))
        .ok()
}

/// Comments become white space, commas before a closing bracket go.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Where the last comma in `out` is, while only white space follows it.
    let mut comma = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                comma = None;
                let start = at;
                let mut end = text.len();
                let mut escaped = false;
                for (at, c) in chars.by_ref() {
                    if escaped {
                        escaped = false;
                    } else if c == '\\' {
                        escaped = true;
                    } else if c == '"' {
                        end = at + 1;
                        break;
                    }
                }
                out.push_str(text.get(start..end).unwrap_or_default());
            }
            '/' if matches!(chars.peek(), Some((_, '/'))) => {
                while chars.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            '/' if matches!(chars.peek(), Some((_, '*'))) => {
                chars.next();
                let mut star = false;
                for (_, c) in chars.by_ref() {
                    if star && c == '/' {
                        break;
                    }
                    star = c == '*';
                }
                out.push(' ');
            }
            ',' => {
                comma = Some(out.len());
                out.push(c);
            }
            '}' | ']' => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
                out.push(c);
            }
            c => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn comments_and_trailing_commas() {
        let value = parse(
            "\u{feff}{ // line\n \"a\": [1, 2,], /* block * / */ \"b\": \"// no, /* comment */ \\\" ,}\", }",
        );
        assert_eq!(
            value.map(|v| v.to_string()),
            Some(r#"{"a":[1,2],"b":"// no, /* comment */ \" ,}"}"#.to_owned())
        );
    }

    #[test]
    fn hostile_text_is_none() {
        for text in ["", "{", "\"", "/*", "//", "{\"a\":", "[1,", "\\", "{\"\\"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
