//! A light lexer before the parser.
//!
//! It knows just enough of SQL (strings, quoted names, comments, dollar
//! quotes) to find parameters and statement ends. Parameters become
//! identifiers, which every dialect accepts wherever a value may stand; which
//! parameter each one was is kept beside the text.

use super::Operand;

/// Nesting that no hand-written statement has, and that keeps the parser quick.
const MAX_DEPTH: usize = 24;
/// A chain of operators becomes a tree as deep as it is long.
const MAX_OPERATORS: usize = 600;
const MAX_TOKENS: usize = 24 * 1024;

pub(super) const HOLE: &str = "toctou_hole_";
pub(super) const PARAM: &str = "toctou_param_";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// Identifier, keyword or number; a parameter as `toctou_param_N`.
    Word(String),
    /// String or quoted name, with its quotes.
    Quoted(String),
    Symbol(char),
}

impl Token {
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub(super) fn is_symbol(&self, symbol: char) -> bool {
        *self == Self::Symbol(symbol)
    }

    pub(super) fn is_hole(&self) -> bool {
        matches!(self, Self::Word(word) if exact(word, HOLE).is_some())
    }
}

/// A token and whether white space stood before it.
#[derive(Clone, Debug)]
pub(super) struct Spaced {
    pub(super) token: Token,
    pub(super) space: bool,
}

pub(super) struct Lexed {
    /// Statements, without their `;`.
    pub(super) statements: Vec<Vec<Spaced>>,
    /// What `toctou_param_N` stands for.
    pub(super) params: Vec<Operand>,
}

/// `toctou_hole_12` → 12
pub(super) fn exact(word: &str, prefix: &str) -> Option<usize> {
    let digits = word.strip_prefix(prefix)?;
    if digits.is_empty() || digits.len() > 6 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Without leading white space and comments.
pub(super) fn skip_space(text: &str) -> &str {
    let mut text = text.trim_start();
    loop {
        let rest = skip_comment(text).trim_start();
        if rest.len() == text.len() {
            return text;
        }
        text = rest;
    }
}

/// Without the comment that it begins with, if it does.
fn skip_comment(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix("--") {
        return rest.find('\n').map_or("", |at| &rest[at..]);
    }
    match text.strip_prefix("/*") {
        Some(rest) => rest.find("*/").map_or("", |at| &rest[at + 2..]),
        None => text,
    }
}

/// The statements of a file, however long it is: parts that end with a `;` which is in no
/// comment and no quotes.
pub(super) fn texts(file: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(found) = file[at..].find([';', '-', '/', '\'', '"']) {
        at += found;
        let rest = &file[at..];
        let c = rest.chars().next().unwrap_or(';');
        at += match c {
            ';' => {
                out.push(&file[start..at]);
                start = at + 1;
                1
            }
            // A quote that nobody closes is no quote.
            '\'' | '"' => match quoted_length(rest, c) {
                all if all == rest.len() && !rest[1..].ends_with(c) => 1,
                length => length,
            },
            _ => (rest.len() - skip_comment(rest).len()).max(1),
        };
    }
    out.push(&file[start..]);
    out
}

pub(super) fn lex(text: &str) -> Option<Lexed> {
    let raw = raw_tokens(text)?;
    // With `$1` in the text, `?` is PostgreSQL's operator on JSON.
    let numbered = raw.windows(2).any(|pair| {
        pair[0].token.is_symbol('$')
            && !pair[1].space
            && matches!(&pair[1].token, Token::Word(w) if w.starts_with(|c: char| c.is_ascii_digit()))
    });
    let raw = if raw.iter().any(|s| s.token.is_symbol('%')) {
        percents(raw)
    } else {
        raw
    };
    let (tokens, params) = parameters(raw, !numbered);
    bounded(&tokens).then(|| Lexed {
        statements: split(tokens),
        params,
    })
}

fn raw_tokens(text: &str) -> Option<Vec<Spaced>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        let next = skip_space(rest);
        let space = next.len() != rest.len();
        rest = next;
        let Some(first) = rest.chars().next() else {
            return Some(tokens);
        };
        let length = match first {
            '\'' | '"' | '`' => quoted_length(rest, first),
            '$' => dollar_quote(rest).unwrap_or(1),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let piece = &rest[..length];
        let token = match first {
            '\'' | '"' | '`' => Token::Quoted(piece.to_owned()),
            '$' if length > 1 => Token::Quoted("'text'".to_owned()),
            c if is_word(c) => Token::Word(piece.to_owned()),
            c => Token::Symbol(c),
        };
        tokens.push(Spaced { token, space });
        if tokens.len() > MAX_TOKENS {
            return None;
        }
        rest = &rest[length..];
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Up to and with the closing quote; a doubled quote is one inside.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return at + 1;
            }
        }
    }
    text.len()
}

/// `$$ … $$`, `$tag$ … $tag$`
fn dollar_quote(text: &str) -> Option<usize> {
    let tag_end = 1 + text[1..].find(|c: char| !is_word(c))?;
    if !text[tag_end..].starts_with('$') || text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let tag = &text[..=tag_end];
    let close = text[tag.len()..].find(tag)?;
    Some(2 * tag.len() + close)
}

fn parameters(raw: Vec<Spaced>, question_marks: bool) -> (Vec<Spaced>, Vec<Operand>) {
    let mut tokens: Vec<Spaced> = Vec::with_capacity(raw.len());
    let mut params = Vec::new();
    let mut positional = 0;
    // Behind a hole that may bring parameters of its own, nobody can count but from the end.
    let mut uncounted: Option<usize> = None;
    let mut raw = raw.into_iter().peekable();
    while let Some(spaced) = raw.next() {
        if spaced.token.is_hole() {
            let previous = tokens.last().map(|spaced| &spaced.token);
            if may_hold_parameters(previous, raw.peek().map(|spaced| &spaced.token)) {
                uncounted = Some(params.len());
            }
        }
        let Token::Symbol(sigil @ ('?' | '$' | ':' | '@')) = spaced.token else {
            tokens.push(spaced);
            continue;
        };
        // `::` is a cast and `@@` a system variable; `a:b` and `a@b` are no parameters either.
        let doubled = !spaced.space
            && matches!(
                tokens.last(),
                Some(Spaced { token: Token::Symbol(c), .. }) if *c == sigil
            );
        let after_word = !spaced.space
            && matches!(
                tokens.last(),
                Some(Spaced {
                    token: Token::Word(_),
                    ..
                })
            );
        let name = match raw.peek() {
            Some(Spaced {
                token: Token::Word(word),
                space: false,
            }) => Some(word.clone()),
            _ => None,
        };
        let number = name
            .as_deref()
            .filter(|n| n.len() < 6)
            .and_then(|n| n.parse::<usize>().ok())
            .filter(|n| *n > 0);
        let operand = match (sigil, name, number) {
            ('?', _, _) if !question_marks => None,
            ('?' | '$', Some(_), Some(number)) => Some((Operand::Param(number - 1), true)),
            ('?', _, _) if uncounted.is_some() => Some((Operand::Other, false)),
            ('?', _, _) => {
                positional += 1;
                Some((Operand::Param(positional - 1), false))
            }
            ('$', Some(name), None) => Some((Operand::Named(name), true)),
            (':' | '@', Some(name), None) if !doubled && !after_word => {
                Some((Operand::Named(name), true))
            }
            (':', Some(_), Some(number)) if !doubled && !after_word => {
                Some((Operand::Param(number - 1), true))
            }
            _ => None,
        };
        let Some((operand, takes_word)) = operand else {
            tokens.push(spaced);
            continue;
        };
        if takes_word {
            raw.next();
        }
        tokens.push(Spaced {
            token: Token::Word(format!("{PARAM}{}", params.len())),
            // `LIMIT?` and `=?` alike: never glue it to the word before.
            space: true,
        });
        params.push(operand);
    }
    let behind = uncounted.unwrap_or(params.len());
    let from_end = params[behind..].iter_mut().rev();
    for (n, operand) in from_end.filter(|o| **o == Operand::Other).enumerate() {
        *operand = Operand::Last(n);
    }
    (tokens, params)
}

/// `%s` is `?` and `%(name)s` is `:name`; right behind a value, `%` is the rest of a division.
fn percents(raw: Vec<Spaced>) -> Vec<Spaced> {
    let mut out: Vec<Spaced> = Vec::with_capacity(raw.len());
    let mut rest = &raw[..];
    while let [first, behind @ ..] = rest {
        let value = |s: &Spaced| {
            matches!(s.token, Token::Word(_) | Token::Quoted(_)) || s.token.is_symbol(')')
        };
        let divides = !first.space && out.last().is_some_and(value);
        let letter = |s: &Spaced| !s.space && s.token.is("s");
        let sigil = |c: char| Spaced {
            token: Token::Symbol(c),
            space: true,
        };
        rest = match behind {
            _ if divides || !first.token.is_symbol('%') => {
                out.push(first.clone());
                behind
            }
            [s, behind @ ..] if letter(s) => {
                out.push(sigil('?'));
                behind
            }
            [open, name, close, s, behind @ ..]
                if open.token.is_symbol('(') && close.token.is_symbol(')') && letter(s) =>
            {
                out.push(sigil(':'));
                out.push(Spaced {
                    space: false,
                    ..name.clone()
                });
                behind
            }
            _ => {
                out.push(first.clone());
                behind
            }
        };
    }
    out
}

/// A hole in the place of a list, a clause or a condition, and not of one name or value.
fn may_hold_parameters(previous: Option<&Token>, next: Option<&Token>) -> bool {
    const NAMED: [&str; 9] = [
        "from", "into", "update", "table", "join", "by", "limit", "offset", "like",
    ];
    let names_or_compares = previous.is_some_and(|token| match token {
        Token::Symbol(symbol) => matches!(symbol, '=' | '<' | '>' | '.' | '+' | '-' | '|'),
        token => NAMED.iter().any(|word| token.is(word)),
    });
    let is_column = next.is_some_and(|token| {
        matches!(
            token,
            Token::Symbol('=' | '<' | '>' | '!' | '.' | '+' | '-')
        )
    });
    !names_or_compares && !is_column
}

/// Bounds what the parser could turn into a deep tree.
fn bounded(tokens: &[Spaced]) -> bool {
    const OPERATORS: [&str; 16] = [
        "and",
        "or",
        "not",
        "union",
        "except",
        "intersect",
        "is",
        "in",
        "between",
        "like",
        "ilike",
        "collate",
        "div",
        "case",
        "join",
        "at",
    ];
    let mut depth = 0usize;
    let mut operators = 0;
    for spaced in tokens {
        match &spaced.token {
            Token::Symbol('(' | '[' | '{') => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return false;
                }
            }
            Token::Symbol(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Symbol(';') => operators = 0,
            Token::Symbol(',' | '.') | Token::Quoted(_) => {}
            Token::Symbol(_) => operators += 1,
            Token::Word(word) => {
                if OPERATORS.iter().any(|op| word.eq_ignore_ascii_case(op)) {
                    operators += 1;
                }
            }
        }
        if operators > MAX_OPERATORS {
            return false;
        }
    }
    true
}

/// At `;`, but not at those in a trigger's or function's body: what stands
/// there is not run now.
fn split(tokens: Vec<Spaced>) -> Vec<Vec<Spaced>> {
    let mut statements = vec![Vec::new()];
    let mut body_depth = 0usize;
    for spaced in tokens {
        let Some(current) = statements.last_mut() else {
            break;
        };
        if spaced.token.is_symbol(';') && body_depth == 0 {
            if !current.is_empty() {
                statements.push(Vec::new());
            }
            continue;
        }
        if defines_body(current) {
            if spaced.token.is("begin") || spaced.token.is("case") {
                body_depth += 1;
            } else if spaced.token.is("end") {
                body_depth = body_depth.saturating_sub(1);
            }
        }
        current.push(spaced);
    }
    statements.retain(|statement| !statement.is_empty());
    statements
}

fn defines_body(statement: &[Spaced]) -> bool {
    statement
        .first()
        .is_some_and(|first| first.token.is("create"))
        && statement.iter().take(6).any(|spaced| {
            ["trigger", "function", "procedure"]
                .iter()
                .any(|word| spaced.token.is(word))
        })
}
