//! Transactions and locks: read from the words, not by the parser, because
//! every dialect has its own and they are short.

use sqlparser::ast;

use super::expr::Reader;
use super::{mention, walk};
use crate::sql::lex::{Spaced, Token};
use crate::sql::{Kind, Operand, Statement};

pub(super) fn read(tokens: &[Spaced]) -> Option<Statement> {
    let words: Vec<String> = tokens
        .iter()
        .filter_map(|spaced| match &spaced.token {
            Token::Word(word) => Some(word.to_lowercase()),
            _ => None,
        })
        .take(16)
        .collect();
    let first = words.first()?.as_str();
    let second = words.get(1).map_or("", String::as_str);
    let has = |word: &str| words.iter().any(|w| w == word);
    let begin = |immediate| Kind::Begin {
        immediate,
        serializable: has("serializable"),
    };
    let short = tokens.len() <= 12;
    let kind = match first {
        "begin" if short => match second {
            "" | "transaction" | "work" | "deferred" | "isolation" | "read" | "concurrent"
            | "not" => begin(false),
            "immediate" | "exclusive" => begin(true),
            _ => return None,
        },
        "start" if second == "transaction" => begin(false),
        "set"
            if has("transaction") && (has("isolation") || has("read"))
                || has("transaction_isolation")
                || has("default_transaction_isolation") =>
        {
            begin(false)
        }
        "commit" if short && matches!(second, "" | "transaction" | "work" | "and") => Kind::Commit,
        "end" if short && matches!(second, "" | "transaction" | "work") => Kind::Commit,
        // Back to a savepoint: the transaction goes on.
        "rollback" if has("to") => Kind::Other,
        "rollback" | "abort" if short && matches!(second, "" | "transaction" | "work" | "and") => {
            Kind::Rollback
        }
        "savepoint" | "release" if tokens.len() <= 4 => Kind::Other,
        "pragma" => Kind::Other,
        "lock" if matches!(second, "table" | "tables") => {
            let names: Vec<String> = words
                .iter()
                .skip(2)
                .take_while(|word| !matches!(word.as_str(), "in" | "write" | "read" | "nowait"))
                .filter(|word| *word != "only")
                .cloned()
                .collect();
            return Some(Statement {
                kind: Kind::Lock,
                tables: names.last().cloned().into_iter().collect(),
                ..Statement::default()
            });
        }
        "unlock" if second == "tables" => Kind::Unlock,
        _ => return None,
    };
    Some(Statement {
        kind,
        ..Statement::default()
    })
}

/// `SELECT pg_advisory_xact_lock($1)` is a lock and not a read.
pub(super) fn as_lock(
    mut statement: Statement,
    query: &ast::Query,
    reader: &Reader<'_>,
) -> Statement {
    let ast::SetExpr::Select(select) = &*query.body else {
        return statement;
    };
    for item in &select.projection {
        let (ast::SelectItem::UnnamedExpr(ast::Expr::Function(function))
        | ast::SelectItem::ExprWithAlias {
            expr: ast::Expr::Function(function),
            ..
        }) = item
        else {
            continue;
        };
        let Some(name) = super::object_name(&function.name) else {
            continue;
        };
        let kind = match name.as_str() {
            "get_lock" => Kind::Lock,
            "release_lock" | "release_all_locks" => Kind::Unlock,
            _ if name.starts_with("pg_advisory_unlock") => Kind::Unlock,
            _ if name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_") => {
                Kind::Lock
            }
            _ => continue,
        };
        let key = walk::arguments(function)
            .first()
            .map_or(Operand::Other, |argument| reader.operand(argument));
        statement.kind = kind;
        statement.conditions = vec![mention(name, key)];
        statement.columns.clear();
        return statement;
    }
    statement
}
