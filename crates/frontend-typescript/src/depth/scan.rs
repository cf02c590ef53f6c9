//! A tokenizer that only counts. See [`super`] for what the counts are for.
//!
//! It may count too much, never too little: whatever it is unsure of makes
//! the file [`Scan::ambiguous`]. A level stays open until something comes
//! that no grammar allows inside it: a closing bracket, a `;`, a comma
//! between elements, a word that can only begin a statement.

mod literals;

/// What was found. The line is that of the deepest place.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Scan {
    pub(super) nesting: u32,
    pub(super) links: u32,
    pub(super) angles: u32,
    pub(super) line: u32,
    /// JSX text, or a `/` that may begin a regular expression or divide:
    /// brackets may hide in what was taken for a string.
    pub(super) ambiguous: bool,
    /// A class elsewhere than at top level.
    pub(super) inner_classes: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Bracket {
    Round,
    Square,
    /// Statements, class bodies: a comma ends nothing.
    Block,
    /// Object literals and types, patterns.
    Object,
    /// `${` in a template.
    Template,
}

/// Counters of one bracket level, since the last thing that ended them.
#[derive(Clone, Copy)]
struct Level {
    bracket: Bracket,
    /// `if (…)`: what follows is nested in the statement, not a new one.
    head: bool,
    nesting: u32,
    links: u32,
    angles: u32,
    /// The counters before the last reset: an `else` takes them up again.
    before: (u32, u32),
}

/// What the last token allows to follow.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// An operator, an opening bracket, a keyword: an operand must come.
    Operator,
    /// A name or literal.
    Operand,
    /// `)` or `]`.
    Close,
    /// `}`.
    Brace,
    /// The `)` of `if (…)`.
    Head,
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    levels: Vec<Level>,
    top: Level,
    /// Sums over the levels below the top, their brackets included.
    below: (u32, u32),
    last: Last,
    /// The byte, or first byte of the word, that `last` was.
    last_byte: u8,
    newline: bool,
    head_next: bool,
    object_next: bool,
    jsx: bool,
    jsx_depth: u32,
    jsx_deepest: u32,
    found: Scan,
    deepest_at: usize,
}

pub(super) fn scan(text: &[u8], jsx: bool) -> Scan {
    let mut scanner = Scanner {
        text,
        at: 0,
        levels: Vec::new(),
        top: level(Bracket::Block, false),
        below: (0, 0),
        last: Last::Operator,
        last_byte: b';',
        newline: false,
        head_next: false,
        object_next: false,
        jsx,
        jsx_depth: 0,
        jsx_deepest: 0,
        found: Scan::default(),
        deepest_at: 0,
    };
    scanner.run();
    let mut found = scanner.found;
    if scanner.jsx_deepest > 0 && found.ambiguous {
        found.nesting += scanner.jsx_deepest;
    }
    let before = text.get(..scanner.deepest_at).unwrap_or_default();
    // Only an error message needs the line.
    if found.nesting > super::NESTING_HERE || found.links > super::LINKS_HERE {
        found.line = before.iter().filter(|&&b| b == b'\n').count() as u32;
    }
    found.line += 1;
    found
}

fn level(bracket: Bracket, head: bool) -> Level {
    Level {
        bracket,
        head,
        nesting: 0,
        links: 0,
        angles: 0,
        before: (0, 0),
    }
}

const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
        byte += 1;
    }
    table
};

fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\n' => {
                    self.newline = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => {
                    self.at += 1;
                    // Most are indentation.
                    while self.peek(0) == b' ' {
                        self.at += 1;
                    }
                }
                b'/' => self.slash(),
                b'"' | b'\'' => {
                    self.begins_operand(b"");
                    self.string(byte);
                    self.operand(byte);
                }
                b'`' => {
                    if self.last != Last::Operator && self.last != Last::Head {
                        self.link();
                    }
                    self.at += 1;
                    self.template();
                }
                b'(' | b'[' | b'{' => self.open(byte),
                b')' | b']' | b'}' => self.close(byte),
                _ if is_word(byte) => self.word(),
                _ => self.operator(byte),
            }
        }
    }

    fn nest(&mut self) {
        self.top.nesting += 1;
        self.measure();
    }

    fn link(&mut self) {
        self.top.links += 1;
        let links = self.below.1 + self.top.links;
        if links > self.found.links {
            self.found.links = links;
        }
    }

    fn measure(&mut self) {
        let nesting = self.below.0 + self.top.nesting + self.top.angles;
        if nesting > self.found.nesting {
            self.found.nesting = nesting;
            self.deepest_at = self.at;
        }
    }

    fn reset(&mut self) {
        self.top.before = (self.top.nesting, self.top.links);
        self.top.nesting = 0;
        self.top.links = 0;
        self.top.angles = 0;
    }

    fn operand(&mut self, byte: u8) {
        self.last = Last::Operand;
        self.last_byte = byte;
        self.after_token();
    }

    fn after_operator(&mut self, byte: u8) {
        self.last = Last::Operator;
        self.last_byte = byte;
        self.after_token();
    }

    fn after_token(&mut self) {
        self.newline = false;
        self.head_next = false;
        self.object_next = false;
    }

    /// Two operands in a row, on two lines or behind a `}`: a statement ended
    /// between them, unless the word is one that goes on.
    fn begins_operand(&mut self, word: &[u8]) {
        let ended = match self.last {
            Last::Operator | Last::Head => false,
            Last::Brace => true,
            Last::Operand | Last::Close => self.newline,
        };
        let goes_on = matches!(
            word,
            b"in"
                | b"instanceof"
                | b"as"
                | b"satisfies"
                | b"extends"
                | b"implements"
                | b"of"
                | b"is"
                | b"catch"
                | b"finally"
                | b"from"
        );
        if ended && !goes_on {
            self.reset();
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.iter().position(|&b| !is_word(b));
        let word = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        self.at += word.len();
        let first = word.first().copied().unwrap_or(0);
        let member = self.last_byte == b'.' && self.last == Last::Operator;
        if self.last != Last::Operator {
            self.begins_operand(word);
        }
        if member || !(2..=10).contains(&word.len()) || !first.is_ascii_lowercase() {
            self.operand(first);
            return;
        }
        match word {
            b"if" | b"for" | b"with" => {
                self.nest();
                self.after_operator(first);
                self.head_next = true;
            }
            b"while" => {
                self.take_up();
                self.nest();
                self.after_operator(first);
                self.head_next = true;
            }
            b"else" => {
                self.take_up();
                self.after_operator(first);
            }
            b"await" => {
                // `for await (`
                let head = self.head_next;
                self.nest();
                self.after_operator(first);
                self.head_next = head;
                self.object_next = true;
            }
            b"typeof" | b"void" | b"delete" | b"yield" | b"new" | b"throw" | b"keyof" => {
                self.nest();
                self.after_operator(first);
                self.object_next = true;
            }
            b"do" | b"unique" | b"infer" | b"extends" | b"asserts" | b"readonly" | b"abstract"
            | b"is" | b"async" => {
                self.nest();
                self.after_operator(first);
            }
            b"return" | b"case" | b"default" => {
                self.after_operator(first);
                self.object_next = true;
            }
            b"in" | b"of" | b"instanceof" => {
                self.link();
                self.after_operator(first);
                self.object_next = true;
            }
            b"as" | b"satisfies" => {
                self.link();
                self.after_operator(first);
            }
            b"class" => {
                // Behind `;`, `abstract` or `default` it is a declaration.
                self.found.inner_classes |= !self.levels.is_empty()
                    || (self.last == Last::Operator
                        && !matches!(self.last_byte, b';' | b'a' | b'd'));
                self.operand(first);
            }
            _ => self.operand(first),
        }
    }

    /// `if (a) b; else`: the statement that seemed over goes on.
    fn take_up(&mut self) {
        let (nesting, links) = self.top.before;
        self.top.nesting = self.top.nesting.max(nesting);
        self.top.links = self.top.links.max(links);
    }

    fn open(&mut self, byte: u8) {
        let bracket = match byte {
            b'(' => Bracket::Round,
            b'[' => Bracket::Square,
            _ if self.is_object() => Bracket::Object,
            _ => Bracket::Block,
        };
        if byte != b'{' {
            match self.last {
                Last::Operand | Last::Close | Last::Brace => self.link(),
                Last::Operator | Last::Head => {}
            }
        }
        let head = self.head_next;
        self.push(bracket, head);
        self.at += 1;
        self.after_operator(byte);
    }

    fn is_object(&self) -> bool {
        self.object_next
            || (self.last == Last::Operator
                && match self.last_byte {
                    b'(' | b'[' | b',' | b'=' | b'?' => true,
                    b':' => self.top.bracket != Bracket::Block,
                    _ => false,
                })
    }

    fn push(&mut self, bracket: Bracket, head: bool) {
        self.top.nesting += 1;
        self.measure();
        self.below.0 += self.top.nesting + self.top.angles;
        self.below.1 += self.top.links;
        self.levels.push(self.top);
        self.top = level(bracket, head);
    }

    /// Back to the level outside. Its counter keeps what nested there before.
    fn pop(&mut self) -> Option<Level> {
        let outer = self.levels.pop()?;
        let inner = std::mem::replace(&mut self.top, outer);
        self.below.0 -= outer.nesting + outer.angles;
        self.below.1 -= outer.links;
        // The bracket itself is closed again.
        self.top.nesting = self.top.nesting.saturating_sub(1);
        Some(inner)
    }

    fn close(&mut self, byte: u8) {
        self.at += 1;
        let wanted = |bracket: Bracket| match byte {
            b')' => bracket == Bracket::Round,
            b']' => bracket == Bracket::Square,
            _ => matches!(
                bracket,
                Bracket::Block | Bracket::Object | Bracket::Template
            ),
        };
        // A `}` ends whatever was left open inside it; other strays end nothing.
        if byte == b'}' {
            while !wanted(self.top.bracket) && self.pop().is_some() {}
        }
        let mut head = false;
        if wanted(self.top.bracket) {
            match self.pop() {
                Some(inner) if inner.bracket == Bracket::Template => {
                    self.template();
                    return;
                }
                Some(inner) => head = inner.head,
                None => self.reset(),
            }
        }
        self.last = match byte {
            b'}' => Last::Brace,
            b')' if head => Last::Head,
            _ => Last::Close,
        };
        self.last_byte = byte;
        self.after_token();
    }

    fn operator(&mut self, byte: u8) {
        let next = self.peek(1);
        let operand_before = self.last != Last::Operator && self.last != Last::Head;
        let mut length = 1;
        let mut keeps_operand = false;
        match byte {
            b';' => self.reset(),
            b',' => match self.top.bracket {
                Bracket::Block => {}
                _ => {
                    self.top.nesting = 0;
                    self.top.links = 0;
                }
            },
            b'.' => self.link(),
            b'?' if next == b'?' => {
                self.link();
                length = 2;
            }
            b'?' if next == b'.' => {
                self.link();
                length = 2;
            }
            b'?' => self.nest(),
            b'=' if next == b'>' => {
                self.nest();
                length = 2;
            }
            b'=' if next == b'=' => {
                self.link();
                length = 2;
            }
            b'=' => self.nest(),
            b'!' if next == b'=' => {
                self.link();
                length = 2;
            }
            b'!' if operand_before => {
                self.link();
                keeps_operand = true;
            }
            b'&' | b'|' if next == byte => {
                self.link();
                length = 2;
            }
            b'+' | b'-' if next == byte => {
                self.link();
                length = 2;
                keeps_operand = operand_before;
            }
            b'+' | b'-' | b'%' | b'&' | b'|' | b'^' if operand_before => self.link(),
            b'*' if next == b'*' => {
                self.nest();
                length = 2;
            }
            b'*' => self.link(),
            b'<' => {
                self.angle(next);
            }
            b'>' => {
                if self.top.angles > 0 {
                    self.top.angles -= 1;
                }
                self.link();
            }
            b':' if self.top.bracket == Bracket::Block && operand_before => self.nest(),
            b'!' | b'~' | b'+' | b'-' | b'&' | b'|' => self.nest(),
            _ => {}
        }
        self.at += length;
        if keeps_operand {
            self.after_token();
        } else {
            self.after_operator(if byte == b'?' && length == 2 {
                b'.'
            } else {
                byte
            });
        }
    }

    fn angle(&mut self, next: u8) {
        if self.jsx {
            if next == b'/' {
                self.found.ambiguous = true;
                // The `>` that follows is no operator, the text behind it no code.
                self.jsx_depth = self.jsx_depth.saturating_sub(1);
            } else if next == b'>' || is_word(next) {
                self.jsx_depth += 1;
                self.jsx_deepest = self.jsx_deepest.max(self.jsx_depth);
            }
        }
        if next == b'=' || next == b'<' {
            self.link();
            return;
        }
        self.link();
        self.top.angles += 1;
        self.found.angles = self.found.angles.max(self.top.angles);
        self.measure();
    }
}
