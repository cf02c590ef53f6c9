//! Enough of Markdown for our own pages: headings, paragraphs, lists, tables
//! as they are, code blocks, and code and emphasis in a line.

use anstyle::AnsiColor;
use toctou_core::rule::RuleMeta;
use toctou_report::{Paint, Terminal, width, wrap};

/// Lines longer than this are hard to read, however wide the screen.
const WIDEST: usize = 96;

pub(super) fn render(rule: &RuleMeta, terminal: Terminal) -> String {
    let paint = Paint {
        color: terminal.color,
    };
    let mut page = Page {
        paint,
        columns: terminal.width.min(WIDEST),
        unicode: terminal.unicode,
        out: String::new(),
        paragraph: String::new(),
        indent: 0,
    };
    let severity = paint.severity(rule.severity, rule.severity.as_str());
    page.out = format!(
        "{} {severity}, {} persona, CWE-{}\n",
        paint.bold(rule.id),
        rule.persona,
        rule.cwe
    );
    page.out += &format!("{}\n", rule.summary);
    page.body(rule.page);
    page.out
}

struct Page {
    paint: Paint,
    columns: usize,
    unicode: bool,
    out: String,
    /// Text that is not wrapped yet, and how far its further lines are indented.
    paragraph: String,
    indent: usize,
}

impl Page {
    fn body(&mut self, text: &str) {
        let mut fence: Option<String> = None;
        for (number, line) in text.lines().enumerate() {
            let bare = line.trim_start();
            if let Some(end) = &fence {
                if bare.starts_with(end.as_str()) {
                    fence = None;
                } else {
                    let code = self.paint.paint(AnsiColor::Cyan.on_default(), line);
                    self.out += format!("    {code}").trim_end();
                    self.out.push('\n');
                }
            } else if bare.starts_with("```") {
                self.flush();
                let ticks = bare.len() - bare.trim_start_matches('`').len();
                self.code_title(bare[ticks..].trim());
                fence = Some("`".repeat(ticks));
            } else if bare.starts_with('#') {
                self.flush();
                // The first heading is the rule's id, which is there already.
                if number > 0 {
                    self.heading(bare);
                }
            } else if bare.is_empty() {
                self.flush();
                if !self.out.ends_with("\n\n") {
                    self.out.push('\n');
                }
            } else if bare.starts_with('|') {
                self.flush();
                self.out += bare;
                self.out.push('\n');
            } else {
                self.text(line);
            }
        }
        self.flush();
    }

    /// `ts bad` → "bad:"
    fn code_title(&mut self, info: &str) {
        if let Some((_, words)) = info.split_once(' ') {
            let title = format!("{}:", words.trim());
            self.out += &format!("    {}\n", self.paint.dim(&title));
        }
    }

    fn heading(&mut self, line: &str) {
        let title = line.trim_start_matches('#').trim().replace('`', "");
        self.out += &format!("{}\n", self.paint.bold(&title));
        if line.starts_with("## ") {
            let rule = if self.unicode { "─" } else { "-" };
            self.out += &format!("{}\n", self.paint.dim(&rule.repeat(width(&title))));
        }
    }

    fn text(&mut self, line: &str) {
        let bare = line.trim_start();
        let bullet = bare.starts_with("- ") || bare.starts_with("* ");
        let number = bare
            .split_once(". ")
            .is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if bullet || number {
            self.flush();
            let mark = bare.find(' ').map_or(0, |at| at + 1);
            self.indent = line.len() - bare.len() + mark;
        } else if self.paragraph.is_empty() {
            self.indent = 0;
        }
        if !self.paragraph.is_empty() {
            self.paragraph.push(' ');
        }
        self.paragraph.push_str(bare);
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.paragraph);
        if text.is_empty() {
            return;
        }
        let indent = " ".repeat(self.indent);
        for (index, line) in wrap(&text, self.columns.saturating_sub(self.indent))
            .iter()
            .enumerate()
        {
            if index > 0 {
                self.out += &indent;
            }
            self.out += &self.inline(line);
            self.out.push('\n');
        }
    }

    /// With colour, code is coloured instead of quoted; without, it keeps its backticks.
    fn inline(&self, line: &str) -> String {
        let parts: Vec<&str> = line.split('`').collect();
        // An odd backtick belongs to code that goes on in the next line.
        if !self.paint.color || parts.len().is_multiple_of(2) {
            return line.replace("**", "");
        }
        parts
            .iter()
            .enumerate()
            .map(|(index, part)| match index % 2 {
                0 => part.replace("**", ""),
                _ => self.paint.paint(AnsiColor::Cyan.on_default(), part),
            })
            .collect()
    }
}
