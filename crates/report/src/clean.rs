//! Taking the sting out of text that strangers wrote.
//!
//! A file name can hold an escape sequence that rewrites the terminal, a
//! string literal a workflow command, a comment a right-to-left override that
//! makes code read as something else. What cannot be seen is spelled out.

use std::fmt::Write as _;

/// Characters that act instead of showing: control characters, line breaks,
/// direction overrides, zero-width and tag characters.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// One line of visible text. Line breaks and tabs become spaces.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c);
    }
    out
}

pub(crate) fn push(out: &mut String, c: char) {
    match c {
        '\n' | '\t' => out.push(' '),
        '\r' => {}
        c if is_hidden(c) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Cuts to `max` characters, in the middle of nothing in particular.
pub fn short(text: &str, max: usize) -> String {
    let text = line(text);
    if text.chars().count() <= max {
        return text;
    }
    let out: String = text.chars().take(max.saturating_sub(3)).collect();
    out + "..."
}

/// For JSON that is already written: `serde_json` escapes the C0 characters,
/// this does the rest. Such characters occur in strings only, so the document
/// stays the same document.
pub fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// For Markdown outside code: nothing in it is markup, a link or a mention.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    // Without its colon an address is not turned into a link.
    out.replace("://", "&#58;//")
}

/// The same for a sentence of ours, in which backticks stand around code.
pub fn markdown_prose(text: &str) -> String {
    let text = line(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return markdown(&text);
    }
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| match (index % 2, part.is_empty()) {
            (_, true) => String::new(),
            (0, false) => markdown(part),
            _ => markdown_cell_code(part),
        })
        .collect()
}

/// A code span that `text` cannot leave.
pub fn markdown_code(text: &str) -> String {
    let text = line(text);
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// The same in a table, where a pipe ends the cell even inside code.
pub fn markdown_cell_code(text: &str) -> String {
    if !text.contains('|') {
        return markdown_code(text);
    }
    let mut out = String::from("<code>");
    for c in line(text).chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '.' | '/' | '-') {
            out.push(c);
        } else {
            let _ = write!(out, "&#{};", u32::from(c));
        }
    }
    out + "</code>"
}

/// A fenced block that `text` cannot leave.
pub fn markdown_block(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    format!(
        "{fence}{language}\n{}\n{fence}\n",
        text.trim_end_matches('\n')
    )
}

fn longest_run(text: &str, wanted: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Data of a workflow command. GitHub reads `%0A` as a line break, so a line
/// break in the data would begin a new command.
pub fn workflow_data(text: &str) -> String {
    text.split('\n')
        .map(|part| line(part).replace('%', "%25"))
        .collect::<Vec<_>>()
        .join("%0A")
}

/// A property of a workflow command: `,` and `:` end it too.
pub fn workflow_property(text: &str) -> String {
    workflow_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_out_what_cannot_be_seen() {
        assert_eq!(line("a\u{1b}[31mb\r\nc\td"), "a\\u{1b}[31mb c d");
        assert_eq!(line("x\u{9b}2Jy\u{202e}z"), "x\\u{9b}2Jy\\u{202e}z");
        assert_eq!(line("naïve 名前 🦀"), "naïve 名前 🦀");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"k": "\u{1b}[2J \u{9b} \u{202e} \u{e0041}"});
        let safe = json(&serde_json::to_string_pretty(&value).expect("json"));
        assert!(safe.chars().all(|c| c == '\n' || !is_hidden(c)));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).expect("still json"),
            value
        );
    }

    #[test]
    fn markdown_has_no_way_out() {
        assert_eq!(
            markdown("a|b `c` <img> @me http://x"),
            "a\\|b \\`c\\` &lt;img&gt; &#64;me http&#58;//x"
        );
        assert_eq!(markdown_code("a``b"), "```a``b```");
        assert_eq!(markdown_cell_code("a|b"), "<code>a&#124;b</code>");
        assert_eq!(markdown_prose("`a_b` reads x_y"), "`a_b` reads x\\_y");
        assert!(markdown_block("x\n```\ny", "text").starts_with("````text\n"));
    }

    #[test]
    fn workflow_commands_stay_one_command() {
        assert_eq!(workflow_data("100%\r\n::error::x"), "100%25%0A::error::x");
        assert_eq!(workflow_property("a,b:c"), "a%2Cb%3Ac");
    }
}
