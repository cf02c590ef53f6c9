//! Queries and expressions: tables, conditions, operands.

use sqlparser::ast::{self, BinaryOperator, Expr, SelectItem, SetExpr, TableFactor, UnaryOperator};

use super::walk::{
    CLOCKS, arguments, columns_of, has_subquery, is_aggregate, is_plain, literal, mentions_column,
    subquery_of, walk,
};
use super::{mention, object_name, push_new};
use crate::sql::lex::{HOLE, PARAM, exact};
use crate::sql::{Condition, Operand, Statement, Value};

/// Functions of SQLite that tell the time only if given `'now'`.
const DATE_FUNCTIONS: [&str; 5] = ["datetime", "date", "time", "julianday", "strftime"];

pub(super) struct Reader<'a> {
    params: &'a [Operand],
}

impl<'a> Reader<'a> {
    pub(super) fn new(params: &'a [Operand]) -> Self {
        Self { params }
    }

    pub(super) fn query(&self, query: &ast::Query, out: &mut Statement) {
        out.locking |= !query.locks.is_empty();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            // Its conditions are not those of the rows that come out.
            let mut scan = Statement::default();
            self.query(&cte.query, &mut scan);
            out.locking |= scan.locking;
        }
        self.set_expr(&query.body, out);
    }

    fn set_expr(&self, body: &SetExpr, out: &mut Statement) {
        match body {
            SetExpr::Select(select) => self.select(select, out),
            SetExpr::Query(query) => self.query(query, out),
            SetExpr::SetOperation { left, right, .. } => {
                self.set_expr(left, out);
                let mut other = Statement::default();
                self.set_expr(right, &mut other);
                out.locking |= other.locking;
                for table in other.tables {
                    push_new(&mut out.tables, table);
                }
            }
            _ => {}
        }
    }

    fn select(&self, select: &ast::Select, out: &mut Statement) {
        // `SELECT EXISTS(SELECT … WHERE id = ?)` asks what the inner one asks.
        if let ([SelectItem::UnnamedExpr(only) | SelectItem::ExprWithAlias { expr: only, .. }], []) =
            (select.projection.as_slice(), select.from.as_slice())
            && let Expr::Exists { subquery, .. } = only
        {
            out.aggregate = true;
            self.query(subquery, out);
            return;
        }
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    out.aggregate |= is_aggregate(expr);
                    for column in columns_of(expr) {
                        push_new(&mut out.columns, column);
                    }
                    self.subqueries(expr, out);
                }
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    push_new(&mut out.columns, "*".to_owned());
                }
                _ => {}
            }
        }
        for table in &select.from {
            self.table_with_joins(table, out);
        }
        for condition in select.selection.iter().chain(&select.having) {
            self.conditions(condition, true, out);
        }
    }

    pub(super) fn table_with_joins(&self, table: &ast::TableWithJoins, out: &mut Statement) {
        self.table_factor(&table.relation, out);
        for join in &table.joins {
            self.table_factor(&join.relation, out);
        }
    }

    pub(super) fn table_factor(&self, factor: &TableFactor, out: &mut Statement) {
        match factor {
            TableFactor::Table { name, .. } => {
                if let Some(name) = object_name(name) {
                    push_new(&mut out.tables, name);
                }
            }
            TableFactor::Derived { subquery, .. } => {
                let mut inner = Statement::default();
                self.query(subquery, &mut inner);
                out.locking |= inner.locking;
                // `SELECT … FROM (SELECT … WHERE id = ?)` selects by those conditions.
                out.conditions.extend(inner.conditions);
                for table in inner.tables {
                    push_new(&mut out.tables, table);
                }
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => self.table_with_joins(table_with_joins, out),
            _ => {}
        }
    }

    /// Tables and locks of the queries within an expression.
    fn subqueries(&self, expr: &Expr, out: &mut Statement) {
        walk(expr, &mut |expr| {
            if let Some(query) = subquery_of(expr) {
                let mut inner = Statement::default();
                self.query(query, &mut inner);
                out.locking |= inner.locking;
                for table in inner.tables {
                    push_new(&mut out.tables, table);
                }
            }
        });
    }

    /// What must hold for a row to be touched. `sure`: it must, on every row.
    pub(super) fn conditions(&self, expr: &Expr, sure: bool, out: &mut Statement) {
        match expr {
            Expr::Nested(inner) => self.conditions(inner, sure, out),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And => {
                    self.conditions(left, sure, out);
                    self.conditions(right, sure, out);
                }
                BinaryOperator::Or | BinaryOperator::Xor => {
                    self.conditions(left, false, out);
                    self.conditions(right, false, out);
                }
                _ => self.comparison(left, op == &BinaryOperator::Eq && sure, right, out),
            },
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr: inner,
            } => match &**inner {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                    self.flag(inner, "false", sure, out);
                }
                _ => self.conditions(inner, false, out),
            },
            Expr::IsNull(inner) => self.flag(inner, "null", sure, out),
            Expr::IsNotNull(inner) => self.flag(inner, "null", false, out),
            Expr::IsTrue(inner) => self.flag(inner, "true", sure, out),
            Expr::IsFalse(inner) => self.flag(inner, "false", sure, out),
            Expr::IsNotTrue(inner) | Expr::IsNotFalse(inner) => {
                self.flag(inner, "true", false, out);
            }
            Expr::IsNotDistinctFrom(left, right) => self.comparison(left, sure, right, out),
            Expr::IsDistinctFrom(left, right) => self.comparison(left, false, right, out),
            Expr::InList {
                expr,
                list,
                negated,
            } => {
                let (operand, equality) = match list.as_slice() {
                    [only] => (self.operand(only), sure && !negated),
                    _ => (Operand::Other, false),
                };
                for column in columns_of(expr) {
                    out.conditions.push(Condition {
                        column,
                        operand: operand.clone(),
                        equality,
                    });
                }
            }
            Expr::InSubquery { expr: inner, .. } => {
                out.has_subquery_guard = true;
                self.mentions(inner, &Operand::Other, out);
                self.subqueries(expr, out);
            }
            Expr::Exists { .. } | Expr::Subquery(_) => {
                out.has_subquery_guard = true;
                self.subqueries(expr, out);
            }
            Expr::Between {
                expr, low, high, ..
            } => {
                let low = self.operand(low);
                self.mentions(expr, &low, out);
                if !matches!(
                    low,
                    Operand::Param(_) | Operand::Last(_) | Operand::Named(_) | Operand::Hole(_)
                ) {
                    let high = self.operand(high);
                    self.mentions(expr, &high, out);
                }
            }
            Expr::Like { expr, pattern, .. }
            | Expr::ILike { expr, pattern, .. }
            | Expr::SimilarTo { expr, pattern, .. } => {
                let pattern = self.operand(pattern);
                self.mentions(expr, &pattern, out);
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => {
                let operand = self.operand(right);
                self.mentions(left, &operand, out);
                if subquery_of(right).is_some() {
                    out.has_subquery_guard = true;
                    self.subqueries(right, out);
                }
            }
            Expr::Identifier(ident) => {
                if let Some(hole) = exact(&ident.value, HOLE) {
                    out.conditions
                        .push(mention(ident.value.clone(), Operand::Hole(hole)));
                } else if exact(&ident.value, PARAM).is_none() {
                    self.flag(expr, "true", sure, out);
                }
            }
            Expr::CompoundIdentifier(_) => self.flag(expr, "true", sure, out),
            _ => {
                if has_subquery(expr) {
                    out.has_subquery_guard = true;
                    self.subqueries(expr, out);
                }
                self.mentions(expr, &Operand::Other, out);
            }
        }
    }

    fn flag(&self, expr: &Expr, literal: &str, equality: bool, out: &mut Statement) {
        let equality = equality && is_plain(expr);
        for column in columns_of(expr) {
            out.conditions.push(Condition {
                column,
                operand: Operand::Literal(literal.to_owned()),
                equality,
            });
        }
    }

    fn mentions(&self, expr: &Expr, operand: &Operand, out: &mut Statement) {
        for column in columns_of(expr) {
            out.conditions.push(mention(column, operand.clone()));
        }
    }

    fn comparison(&self, left: &Expr, equality: bool, right: &Expr, out: &mut Statement) {
        if let (Expr::Tuple(lefts), Expr::Tuple(rights)) = (left, right)
            && lefts.len() == rights.len()
        {
            for (left, right) in lefts.iter().zip(rights) {
                self.comparison(left, equality, right, out);
            }
            return;
        }
        if has_subquery(left) || has_subquery(right) {
            out.has_subquery_guard = true;
            self.subqueries(left, out);
            self.subqueries(right, out);
        }
        // `${column} = ${value}`: the hole on the left is the column.
        if let Expr::Identifier(ident) = left
            && exact(&ident.value, HOLE).is_some()
            && columns_of(right).is_empty()
        {
            out.conditions.push(Condition {
                column: ident.value.clone(),
                operand: self.operand(right),
                equality: equality && is_plain(right),
            });
            return;
        }
        for (side, other) in [(left, right), (right, left)] {
            // `a = b` of two tables says something about each.
            let operand = self.operand(other);
            let equality = equality && is_plain(side) && is_plain(other);
            for column in columns_of(side) {
                out.conditions.push(Condition {
                    column,
                    operand: operand.clone(),
                    equality,
                });
            }
        }
    }

    /// What an expression comes down to, if it is one thing.
    pub(super) fn operand(&self, expr: &Expr) -> Operand {
        match expr {
            Expr::Nested(inner)
            | Expr::Cast { expr: inner, .. }
            | Expr::Collate { expr: inner, .. } => self.operand(inner),
            Expr::UnaryOp { expr: inner, .. } => self.operand(inner),
            Expr::Identifier(ident) => self.identifier(&ident.value),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column] if table.value.eq_ignore_ascii_case("excluded") => {
                    Operand::Column(format!("excluded.{}", column.value.to_lowercase()))
                }
                _ => parts
                    .last()
                    .map_or(Operand::Other, |part| self.identifier(&part.value)),
            },
            Expr::Value(value) => literal(&value.value),
            Expr::TypedString(typed) => literal(&typed.value.value),
            Expr::Function(function) => self.function_operand(function),
            _ => Operand::Other,
        }
    }

    fn function_operand(&self, function: &ast::Function) -> Operand {
        let Some(name) = object_name(&function.name) else {
            return Operand::Other;
        };
        if CLOCKS.contains(&name.as_str()) {
            return Operand::Now;
        }
        let operands: Vec<Operand> = arguments(function)
            .into_iter()
            .map(|argument| self.operand(argument))
            .collect();
        if DATE_FUNCTIONS.contains(&name.as_str()) {
            let now = Operand::Literal("now".to_owned());
            if operands.is_empty() || operands.contains(&now) {
                return Operand::Now;
            }
        }
        if name == "values" {
            // MySQL's word for `excluded`.
            if let [Operand::Column(column)] = operands.as_slice() {
                return Operand::Column(format!("excluded.{column}"));
            }
        }
        let mut given = operands
            .into_iter()
            .filter(|operand| !matches!(operand, Operand::Literal(_)));
        match (given.next(), given.next()) {
            (Some(operand), None) => operand,
            _ => Operand::Other,
        }
    }

    fn identifier(&self, name: &str) -> Operand {
        if let Some(hole) = exact(name, HOLE) {
            return Operand::Hole(hole);
        }
        if let Some(param) = exact(name, PARAM) {
            return self.params.get(param).cloned().unwrap_or(Operand::Other);
        }
        let name = name.to_lowercase();
        if CLOCKS.contains(&name.as_str()) {
            return Operand::Now;
        }
        Operand::Column(name)
    }

    /// What is assigned to `column`.
    pub(super) fn value(&self, expr: &Expr, column: &str) -> Value {
        // `COALESCE(?, name)` keeps or replaces, it does not compute.
        if let Expr::Function(function) = expr
            && object_name(&function.name)
                .is_some_and(|name| matches!(name.as_str(), "coalesce" | "ifnull" | "nvl"))
        {
            let arguments = arguments(function);
            let own = |expr: &&&Expr| self.operand(expr) == Operand::Column(column.to_owned());
            let others: Vec<_> = arguments.iter().filter(|a| !own(a)).collect();
            if let [only] = others.as_slice()
                && arguments.last().is_some_and(|last| own(&last))
                && others.len() < arguments.len()
                && !columns_of(only).iter().any(|c| c == column)
            {
                return Value::Operand(self.operand(only));
            }
        }
        if !column.is_empty() && mentions_column(expr, column) {
            return Value::Relative;
        }
        match self.operand(expr) {
            Operand::Other => {
                let mut operands = Vec::new();
                walk(expr, &mut |expr| {
                    if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                        operands.push(self.operand(expr));
                    }
                });
                if operands.is_empty() {
                    Value::Operand(Operand::Other)
                } else {
                    Value::Expression(operands)
                }
            }
            operand => Value::Operand(operand),
        }
    }
}
