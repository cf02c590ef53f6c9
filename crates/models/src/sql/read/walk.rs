//! Looking into expressions: what they mention, without judging it.

use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::{object_name, push_new};
use crate::sql::Operand;
use crate::sql::lex::{HOLE, PARAM, exact};

const AGGREGATES: [&str; 12] = [
    "count",
    "sum",
    "total",
    "max",
    "min",
    "avg",
    "exists",
    "group_concat",
    "string_agg",
    "array_agg",
    "json_agg",
    "bool_or",
];

pub(super) const CLOCKS: [&str; 16] = [
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "localtime",
    "statement_timestamp",
    "clock_timestamp",
    "transaction_timestamp",
    "getdate",
    "sysdate",
    "unix_timestamp",
    "utc_timestamp",
    "unixepoch",
    "curdate",
    "curtime",
];

pub(super) fn arguments(function: &ast::Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    list.args
        .iter()
        .filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
            | FunctionArg::Named {
                arg: FunctionArgExpr::Expr(expr),
                ..
            } => Some(expr),
            _ => None,
        })
        .collect()
}

pub(super) fn literal(value: &ast::Value) -> Operand {
    use ast::Value as V;
    let text = match value {
        V::SingleQuotedString(text)
        | V::DoubleQuotedString(text)
        | V::EscapedStringLiteral(text)
        | V::NationalStringLiteral(text) => text.clone(),
        V::Number(number, _) => number.to_string(),
        V::Boolean(value) => value.to_string(),
        V::Null => "null".to_owned(),
        _ => return Operand::Other,
    };
    // `'%${x}%'`: the string's content is the hole's.
    if let Some(at) = text.find(HOLE) {
        let digits: String = text[at + HOLE.len()..]
            .chars()
            .take_while(char::is_ascii_digit)
            .take(6)
            .collect();
        if let Ok(hole) = digits.parse() {
            return Operand::Hole(hole);
        }
    }
    Operand::Literal(text)
}

/// A column or a value, perhaps wrapped in a function, but not computed with:
/// equality with it is equality of the column.
pub(super) fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::Collate { expr: inner, .. } => is_plain(inner),
        Expr::Function(function) => {
            let arguments = arguments(function);
            arguments.len() <= 1 && arguments.into_iter().all(is_plain)
        }
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Value(_)
        | Expr::TypedString(_) => true,
        _ => false,
    }
}

/// Columns mentioned, not counting those of inner queries.
pub(super) fn columns_of(expr: &Expr) -> Vec<String> {
    let mut columns = Vec::new();
    walk(expr, &mut |expr| {
        let name = match expr {
            Expr::Identifier(ident) => &ident.value,
            Expr::CompoundIdentifier(parts)
                if !parts
                    .first()
                    .is_some_and(|part| part.value.eq_ignore_ascii_case("excluded")) =>
            {
                match parts.last() {
                    Some(part) => &part.value,
                    None => return,
                }
            }
            _ => return,
        };
        let lower = name.to_lowercase();
        let is_value = exact(name, HOLE).is_some() || exact(name, PARAM).is_some();
        if !is_value && !CLOCKS.contains(&lower.as_str()) {
            push_new(&mut columns, lower);
        }
    });
    columns
}

/// Whether the value is computed from the column. Where the column is a hole,
/// `SET h = h` is a hole that stands for the whole clause.
pub(super) fn mentions_column(expr: &Expr, column: &str) -> bool {
    if exact(column, HOLE).is_none() {
        return columns_of(expr).iter().any(|c| c == column);
    }
    let mut found = false;
    walk(expr, &mut |inner| {
        found |= !std::ptr::eq(inner, expr)
            && matches!(inner, Expr::Identifier(ident) if ident.value == column);
    });
    found
}

pub(super) fn is_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |expr| match expr {
        Expr::Function(function) => {
            found |= function.over.is_none()
                && object_name(&function.name)
                    .is_some_and(|name| AGGREGATES.contains(&name.as_str()));
        }
        Expr::Exists { .. } => found = true,
        _ => {}
    });
    found
}

pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |expr| found |= subquery_of(expr).is_some());
    found
}

pub(super) fn subquery_of(expr: &Expr) -> Option<&ast::Query> {
    match expr {
        Expr::Subquery(query)
        | Expr::Exists {
            subquery: query, ..
        }
        | Expr::InSubquery {
            subquery: query, ..
        } => Some(query),
        _ => None,
    }
}

/// Visits an expression and those in it, but not into inner queries. The lexer
/// bounds the depth.
pub(super) fn walk<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    match expr {
        Expr::BinaryOp { left, right, .. }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right)
        | Expr::AnyOp { left, right, .. }
        | Expr::AllOp { left, right, .. } => {
            walk(left, visit);
            walk(right, visit);
        }
        Expr::Nested(inner)
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::Cast { expr: inner, .. }
        | Expr::Collate { expr: inner, .. }
        | Expr::AtTimeZone {
            timestamp: inner, ..
        }
        | Expr::Extract { expr: inner, .. }
        | Expr::Ceil { expr: inner, .. }
        | Expr::Floor { expr: inner, .. }
        | Expr::Trim { expr: inner, .. }
        | Expr::CompoundFieldAccess { root: inner, .. }
        | Expr::InSubquery { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner) => walk(inner, visit),
        Expr::Interval(interval) => walk(&interval.value, visit),
        // MySQL's `VALUES(n)` is the value to be inserted, not the column.
        Expr::Function(function) if object_name(&function.name).as_deref() != Some("values") => {
            for argument in arguments(function) {
                walk(argument, visit);
            }
        }
        Expr::Tuple(items) => {
            for item in items {
                walk(item, visit);
            }
        }
        Expr::Array(array) => {
            for item in &array.elem {
                walk(item, visit);
            }
        }
        Expr::InList { expr, list, .. } => {
            walk(expr, visit);
            for item in list {
                walk(item, visit);
            }
        }
        Expr::Between {
            expr, low, high, ..
        } => {
            walk(expr, visit);
            walk(low, visit);
            walk(high, visit);
        }
        Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
            walk(expr, visit);
            walk(pattern, visit);
        }
        Expr::Substring { expr, .. } => walk(expr, visit),
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => {
            for inner in operand.iter().chain(else_result) {
                walk(inner, visit);
            }
            for case in conditions {
                walk(&case.condition, visit);
                walk(&case.result, visit);
            }
        }
        _ => {}
    }
}
