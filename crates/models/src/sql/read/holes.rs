//! Holes that stand for more than a value.
//!
//! `SET ${sets}`, `VALUES ${row}`, `IN ${list}` are not SQL with an identifier
//! in the hole's place. The token pattern says what was meant.

use crate::sql::lex::{Spaced, Token};

/// Puts the missing syntax round a hole that is a whole clause.
pub(super) fn mend(tokens: &[Spaced]) -> Vec<Spaced> {
    let mut out: Vec<Spaced> = Vec::with_capacity(tokens.len());
    let is_insert = tokens
        .first()
        .is_some_and(|first| first.token.is("insert") || first.token.is("replace"));
    let mut in_set = false;
    let mut depth = 0usize;
    for (index, spaced) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).map(|spaced| &spaced.token);
        let previous = out.last().map(|spaced| &spaced.token);
        match &spaced.token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth = depth.saturating_sub(1),
            token if token.is("set") => in_set = true,
            token if token.is("where") || token.is("returning") || token.is("from") => {
                in_set = false;
            }
            _ => {}
        }
        if previous.is_some_and(|p| p.is("for"))
            && (spaced.token.is("no") || spaced.token.is("key"))
        {
            // `FOR NO KEY UPDATE`, which the parser does not know, locks rows all the same.
            continue;
        }
        if !spaced.token.is_hole() {
            out.push(spaced.clone());
            continue;
        }
        let item_start = previous.is_some_and(|p| p.is("set") || p.is_symbol(','));
        let alone = next
            .is_none_or(|n| n.is_symbol(',') || n.is("where") || n.is("returning") || n.is("from"));
        if in_set && depth == 0 && item_start && alone {
            out.push(spaced.clone());
            out.push(symbol('='));
            out.push(spaced.clone());
        } else if previous.is_some_and(|p| p.is("in") || p.is("values"))
            // `INSERT INTO t ${columns} VALUES …`
            || is_insert
                && depth == 0
                && next.is_some_and(|n| n.is("values") || n.is("select"))
                && !previous.is_some_and(|p| p.is("into"))
        {
            parenthesised(spaced, &mut out);
        } else if is_insert
            && depth == 0
            && previous.is_some_and(|p| {
                !p.is("into") && !p.is("or") && matches!(p, Token::Word(_) | Token::Quoted(_))
            })
            && !out
                .iter()
                .any(|s| s.token.is("values") || s.token.is("select") || s.token.is_symbol('('))
        {
            // `INSERT INTO t ${row}`: the hole brings columns and values.
            parenthesised(spaced, &mut out);
            out.push(word("VALUES"));
            parenthesised(spaced, &mut out);
        } else {
            out.push(spaced.clone());
        }
    }
    out
}

/// Leaves out holes that follow a complete operand, where only a clause could
/// stand. `None` if there are none.
pub(super) fn drop_dangling(tokens: &[Spaced]) -> Option<Vec<Spaced>> {
    let mut out: Vec<Spaced> = Vec::with_capacity(tokens.len());
    let mut dropped = false;
    for (index, spaced) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).map(|spaced| &spaced.token);
        let after_operand = out.last().is_some_and(|previous| match &previous.token {
            Token::Word(word) => !is_open_keyword(word),
            Token::Quoted(_) => true,
            Token::Symbol(symbol) => *symbol == ')' || *symbol == '*',
        });
        let before_end = next.is_none_or(|next| match next {
            Token::Word(_) => true,
            Token::Symbol(symbol) => matches!(symbol, ')' | ','),
            Token::Quoted(_) => false,
        });
        if spaced.token.is_hole() && spaced.space && after_operand && before_end {
            dropped = true;
        } else {
            out.push(spaced.clone());
        }
    }
    dropped.then_some(out)
}

/// A keyword after which an operand is still to come.
fn is_open_keyword(word: &str) -> bool {
    const OPEN: [&str; 26] = [
        "select",
        "from",
        "where",
        "and",
        "or",
        "not",
        "in",
        "like",
        "ilike",
        "between",
        "by",
        "set",
        "values",
        "into",
        "update",
        "join",
        "on",
        "limit",
        "offset",
        "having",
        "when",
        "then",
        "else",
        "as",
        "table",
        "returning",
    ];
    OPEN.iter().any(|open| word.eq_ignore_ascii_case(open))
}

fn parenthesised(hole: &Spaced, out: &mut Vec<Spaced>) {
    out.push(symbol('('));
    out.push(hole.clone());
    out.push(symbol(')'));
}

fn symbol(symbol: char) -> Spaced {
    Spaced {
        token: Token::Symbol(symbol),
        space: true,
    }
}

fn word(word: &str) -> Spaced {
    Spaced {
        token: Token::Word(word.to_owned()),
        space: true,
    }
}
