//! Tokens → parser → [`Statement`].

use sqlparser::ast::{self, Expr, SetExpr};
use sqlparser::dialect::{Dialect, GenericDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;

use super::lex::{Lexed, Spaced, Token};
use super::{Assignment, Condition, Conflict, Kind, Operand, Statement, Value};

mod control;
mod expr;
mod holes;
mod walk;

use expr::Reader;

/// Far above what people write, and well within a thread's stack.
const RECURSION_LIMIT: usize = 64;

/// The statements of a text; `None` for one that cannot be read.
pub(super) fn statements(lexed: &Lexed) -> Vec<Option<Statement>> {
    let mut out = Vec::new();
    for tokens in &lexed.statements {
        if let Some(statement) = control::read(tokens) {
            out.push(Some(statement));
            continue;
        }
        if !starts_statement(tokens) {
            out.push(None);
            continue;
        }
        match parse(tokens) {
            Some(parsed) => {
                let reader = Reader::new(&lexed.params);
                for statement in &parsed {
                    let before = out.len();
                    statement_into(&reader, statement, &mut out);
                    if out.len() == before {
                        out.push(Some(Statement::default()));
                    }
                }
            }
            None => out.push(None),
        }
    }
    out
}

fn starts_statement(tokens: &[Spaced]) -> bool {
    const FIRST: [&str; 16] = [
        "select", "insert", "replace", "update", "delete", "merge", "with", "create", "alter",
        "drop", "truncate", "pragma", "set", "explain", "values", "vacuum",
    ];
    tokens
        .iter()
        .find(|spaced| !spaced.token.is_symbol('('))
        .is_some_and(|spaced| FIRST.iter().any(|word| spaced.token.is(word)))
}

fn parse(tokens: &[Spaced]) -> Option<Vec<ast::Statement>> {
    let mended = holes::mend(tokens);
    if let Some(parsed) = parse_text(&text_of(&mended)) {
        return Some(parsed);
    }
    let without = holes::drop_dangling(&mended)?;
    parse_text(&text_of(&without))
}

fn parse_text(text: &str) -> Option<Vec<ast::Statement>> {
    let dialects: [&dyn Dialect; 4] = [
        &GenericDialect {},
        &SQLiteDialect {},
        &PostgreSqlDialect {},
        &MySqlDialect {},
    ];
    dialects.iter().find_map(|dialect| {
        Parser::new(*dialect)
            .with_recursion_limit(RECURSION_LIMIT)
            .try_with_sql(text)
            .ok()?
            .parse_statements()
            .ok()
            .filter(|statements| !statements.is_empty())
    })
}

fn text_of(tokens: &[Spaced]) -> String {
    let mut text = String::new();
    for spaced in tokens {
        if spaced.space {
            text.push(' ');
        }
        match &spaced.token {
            Token::Word(word) | Token::Quoted(word) => text.push_str(word),
            Token::Symbol(symbol) => text.push(*symbol),
        }
    }
    text
}

fn statement_into(
    reader: &Reader<'_>,
    statement: &ast::Statement,
    out: &mut Vec<Option<Statement>>,
) {
    match statement {
        ast::Statement::Query(query) => query_into(reader, query, out),
        ast::Statement::Insert(insert) => out.push(Some(read_insert(reader, insert))),
        ast::Statement::Update(update) => out.push(Some(read_update(reader, update))),
        ast::Statement::Delete(delete) => out.push(Some(read_delete(reader, delete))),
        ast::Statement::Merge(merge) => out.push(Some(read_merge(reader, merge))),
        ast::Statement::CreateTable(table) => out.push(Some(read_create_table(table))),
        ast::Statement::CreateIndex(index) => out.push(Some(Statement {
            kind: Kind::CreateIndex,
            tables: object_name(&index.table_name).into_iter().collect(),
            // A partial index holds for some rows only: not a key one may rely on. That the column
            // has a value, though, is so for whoever looks for one.
            unique: if index.unique && index.predicate.as_ref().is_none_or(|p| is_filled(p, index))
            {
                vec![index_columns(&index.columns)]
            } else {
                Vec::new()
            },
            ..Statement::default()
        })),
        ast::Statement::AlterTable(alter) => out.push(Some(Statement {
            tables: object_name(&alter.name).into_iter().collect(),
            unique: alter
                .operations
                .iter()
                .filter_map(|operation| match operation {
                    ast::AlterTableOperation::AddConstraint { constraint, .. } => {
                        unique_columns(constraint)
                    }
                    _ => None,
                })
                .collect(),
            ..Statement::default()
        })),
        ast::Statement::Truncate(truncate) => out.push(Some(Statement {
            kind: Kind::Delete,
            tables: truncate
                .table_names
                .iter()
                .filter_map(|target| object_name(&target.name))
                .collect(),
            ..Statement::default()
        })),
        _ => out.push(Some(Statement::default())),
    }
}

/// A query, or a write with a `WITH` before it. Writes in the `WITH` come out first.
fn query_into(reader: &Reader<'_>, query: &ast::Query, out: &mut Vec<Option<Statement>>) {
    let mut names = Vec::new();
    let mut locking = !query.locks.is_empty();
    let mut extra_tables = Vec::new();
    let writes_before = out.len();
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        names.push(cte.alias.name.value.to_lowercase());
        match &*cte.query.body {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                query_into(reader, &cte.query, out);
            }
            _ => {
                let mut scan = Statement::default();
                reader.query(&cte.query, &mut scan);
                locking |= scan.locking;
                extra_tables.extend(scan.tables);
            }
        }
    }
    let writes_before_body = out.len();
    match &*query.body {
        SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement) => statement_into(reader, statement, out),
        _ => {
            let mut statement = Statement {
                kind: Kind::Select,
                ..Statement::default()
            };
            reader.query(query, &mut statement);
            let limited = query.limit_clause.is_some() && query.order_by.is_none();
            statement.sample = limited && statement.conditions.is_empty();
            out.push(Some(control::as_lock(statement, query, reader)));
        }
    }
    for statement in out[writes_before_body..].iter_mut().flatten() {
        statement.locking |= locking;
        if statement.kind != Kind::Select && !names.is_empty() {
            // The write draws on a query of its own.
            statement.has_subquery_guard = true;
        }
        let before = statement.tables.len();
        statement.tables.retain(|table| !names.contains(table));
        if before == 0 || statement.tables.len() < before || statement.kind != Kind::Select {
            for table in &extra_tables {
                if !statement.tables.contains(table) && !names.contains(table) {
                    statement.tables.push(table.clone());
                }
            }
        }
    }
    // `WITH u AS (UPDATE … RETURNING *) SELECT * FROM u` reads nothing but the write's rows.
    if writes_before_body > writes_before
        && let Some(Some(last)) = out.last()
        && last.kind == Kind::Select
        && last.tables.is_empty()
    {
        out.pop();
    }
}

fn read_insert(reader: &Reader<'_>, insert: &ast::Insert) -> Statement {
    let mut statement = Statement {
        kind: Kind::Insert,
        returning: insert.returning.is_some(),
        ..Statement::default()
    };
    if let ast::TableObject::TableName(name) = &insert.table {
        statement.tables.extend(object_name(name));
    }
    statement.columns = insert.columns.iter().filter_map(object_name).collect();
    statement.conflict = match (&insert.or, insert.replace_into, insert.ignore) {
        (Some(ast::SqliteOnConflict::Replace), _, _) | (_, true, _) => Conflict::Replace,
        (Some(ast::SqliteOnConflict::Ignore), _, _) | (_, _, true) => Conflict::Ignore,
        _ => Conflict::None,
    };
    if let Some(source) = &insert.source {
        match &*source.body {
            SetExpr::Values(values) => {
                if let Some(row) = values.rows.first() {
                    for (index, value) in row.content.iter().enumerate() {
                        let column = statement.columns.get(index).cloned().unwrap_or_default();
                        if walk::has_subquery(value) {
                            statement.has_subquery_guard = true;
                        }
                        let value = reader.value(value, "");
                        statement.assignments.push(Assignment { column, value });
                    }
                }
            }
            _ => {
                let mut select = Statement::default();
                reader.query(source, &mut select);
                statement.has_subquery_guard =
                    !select.conditions.is_empty() || select.has_subquery_guard;
                statement.locking |= select.locking;
                statement.conditions = select.conditions;
                for table in select.tables {
                    push_new(&mut statement.tables, table);
                }
                if let SetExpr::Select(select) = &*source.body {
                    for (index, item) in select.projection.iter().enumerate() {
                        if let ast::SelectItem::UnnamedExpr(value)
                        | ast::SelectItem::ExprWithAlias { expr: value, .. } = item
                        {
                            let column = statement.columns.get(index).cloned().unwrap_or_default();
                            let value = reader.value(value, "");
                            statement.assignments.push(Assignment { column, value });
                        }
                    }
                }
            }
        }
    }
    for assignment in &insert.assignments {
        read_assignment(reader, assignment, &mut statement.assignments);
    }
    match &insert.on {
        Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => {
            statement.conflict = Conflict::Update;
            for assignment in assignments {
                read_assignment(reader, assignment, &mut statement.on_conflict);
            }
        }
        Some(ast::OnInsert::OnConflict(on)) => match &on.action {
            ast::OnConflictAction::DoNothing => statement.conflict = Conflict::Ignore,
            ast::OnConflictAction::DoUpdate(update) => {
                statement.conflict = Conflict::Update;
                for assignment in &update.assignments {
                    read_assignment(reader, assignment, &mut statement.on_conflict);
                }
                if let Some(selection) = &update.selection {
                    reader.conditions(selection, true, &mut statement);
                    // What is there is replaced only by what is newer, or higher: the statement
                    // itself compares the two.
                    statement.has_subquery_guard |= statement
                        .conditions
                        .iter()
                        .any(|c| c.operand == Operand::Column(format!("excluded.{}", c.column)));
                }
            }
        },
        _ => {}
    }
    let inserted = statement.assignments.clone();
    for assignment in &mut statement.on_conflict {
        if assignment.value
            == Value::Operand(Operand::Column(format!("excluded.{}", assignment.column)))
        {
            assignment.value = inserted
                .iter()
                .find(|a| a.column == assignment.column)
                .map_or(Value::Operand(Operand::Other), |a| a.value.clone());
        }
    }
    statement
}

fn read_update(reader: &Reader<'_>, update: &ast::Update) -> Statement {
    let mut statement = Statement {
        kind: Kind::Update,
        returning: update.returning.is_some(),
        conflict: match update.or {
            Some(ast::SqliteOnConflict::Ignore) => Conflict::Ignore,
            Some(ast::SqliteOnConflict::Replace) => Conflict::Replace,
            _ => Conflict::None,
        },
        ..Statement::default()
    };
    reader.table_with_joins(&update.table, &mut statement);
    for assignment in &update.assignments {
        read_assignment(reader, assignment, &mut statement.assignments);
    }
    if let Some(
        ast::UpdateTableFromKind::BeforeSet(tables) | ast::UpdateTableFromKind::AfterSet(tables),
    ) = &update.from
    {
        for table in tables {
            reader.table_with_joins(table, &mut statement);
        }
    }
    if let Some(selection) = &update.selection {
        reader.conditions(selection, true, &mut statement);
    }
    statement
}

fn read_delete(reader: &Reader<'_>, delete: &ast::Delete) -> Statement {
    let mut statement = Statement {
        kind: Kind::Delete,
        returning: delete.returning.is_some(),
        tables: delete.tables.iter().filter_map(object_name).collect(),
        ..Statement::default()
    };
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
        &delete.from;
    for table in from.iter().chain(delete.using.iter().flatten()) {
        reader.table_with_joins(table, &mut statement);
    }
    if let Some(selection) = &delete.selection {
        reader.conditions(selection, true, &mut statement);
    }
    statement
}

/// `MERGE` inserts or updates in one statement: an upsert.
fn read_merge(reader: &Reader<'_>, merge: &ast::Merge) -> Statement {
    let mut statement = Statement {
        kind: Kind::Insert,
        conflict: Conflict::Update,
        ..Statement::default()
    };
    reader.table_factor(&merge.table, &mut statement);
    reader.table_factor(&merge.source, &mut statement);
    reader.conditions(&merge.on, true, &mut statement);
    for clause in &merge.clauses {
        if let ast::MergeAction::Update(update) = &clause.action
            && let ast::MergeUpdateKind::Set(assignments) = &update.kind
        {
            for assignment in assignments {
                read_assignment(reader, assignment, &mut statement.on_conflict);
            }
        }
    }
    statement
}

/// `WHERE email IS NOT NULL`, on `email`.
fn is_filled(predicate: &ast::Expr, index: &ast::CreateIndex) -> bool {
    let ast::Expr::IsNotNull(column) = predicate else {
        return false;
    };
    let name = column.to_string().trim_matches(['"', '`']).to_lowercase();
    index_columns(&index.columns).contains(&name)
}

fn read_create_table(table: &ast::CreateTable) -> Statement {
    let mut statement = Statement {
        kind: Kind::CreateTable,
        tables: object_name(&table.name).into_iter().collect(),
        ..Statement::default()
    };
    for column in &table.columns {
        let name = column.name.value.to_lowercase();
        let unique = column.options.iter().any(|option| {
            matches!(
                option.option,
                ast::ColumnOption::PrimaryKey(_) | ast::ColumnOption::Unique(_)
            )
        });
        if unique {
            statement.unique.push(vec![name.clone()]);
        }
        statement.columns.push(name);
    }
    statement
        .unique
        .extend(table.constraints.iter().filter_map(unique_columns));
    statement
}

fn unique_columns(constraint: &ast::TableConstraint) -> Option<Vec<String>> {
    match constraint {
        ast::TableConstraint::Unique(unique) => Some(index_columns(&unique.columns)),
        ast::TableConstraint::PrimaryKey(key) => Some(index_columns(&key.columns)),
        _ => None,
    }
}

fn index_columns(columns: &[ast::IndexColumn]) -> Vec<String> {
    columns
        .iter()
        .map(|column| {
            walk::columns_of(&column.column.expr)
                .into_iter()
                .next()
                .unwrap_or_default()
        })
        .collect()
}

fn read_assignment(reader: &Reader<'_>, assignment: &ast::Assignment, out: &mut Vec<Assignment>) {
    match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => {
            if let Some(column) = object_name(name) {
                let value = reader.value(&assignment.value, &column);
                out.push(Assignment { column, value });
            }
        }
        ast::AssignmentTarget::Tuple(names) => {
            for (index, column) in names.iter().filter_map(object_name).enumerate() {
                let value = match &assignment.value {
                    Expr::Tuple(values) => values
                        .get(index)
                        .map_or(Value::Operand(Operand::Other), |v| reader.value(v, &column)),
                    other => reader.value(other, &column),
                };
                out.push(Assignment { column, value });
            }
        }
    }
}

/// The last part of the name, in lower case.
fn object_name(name: &ast::ObjectName) -> Option<String> {
    name.0
        .last()
        .and_then(ast::ObjectNamePart::as_ident)
        .map(|ident| ident.value.to_lowercase())
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// For [`Condition`]s that stand for nothing but a mention.
fn mention(column: String, operand: Operand) -> Condition {
    Condition {
        column,
        operand,
        equality: false,
    }
}
