//! SQL text → what it reads, writes, tests and locks.
//!
//! Programs hold SQL as strings with holes (`${…}`), in whichever dialect, so
//! this reads for meaning and forgives: parameters and holes become plain
//! identifiers before parsing, several dialects are tried, and a statement
//! that none of them can read is [`Kind::Other`] and not an error. Input is
//! bounded in size and depth before the parser sees it.

mod lex;
mod read;

/// Longer texts are data or whole schema dumps, not statements in a handler.
const MAX_TEXT: usize = 64 * 1024;

/// One statement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statement {
    pub kind: Kind,
    /// The main table first; lower case, unquoted, without its schema. A table
    /// that is a hole is called `toctou_hole_N`.
    pub tables: Vec<String>,
    /// Selected or inserted columns; `*` for all.
    pub columns: Vec<String>,
    /// What the statement itself tests.
    pub conditions: Vec<Condition>,
    /// `SET` of an update; for an insert, its columns and the first row's values.
    pub assignments: Vec<Assignment>,
    /// What `ON CONFLICT DO UPDATE` sets.
    pub on_conflict: Vec<Assignment>,
    /// `FOR UPDATE`, `FOR SHARE`, anywhere in the statement.
    pub locking: bool,
    pub conflict: Conflict,
    pub returning: bool,
    /// `COUNT`, `MAX`, `SUM`, `EXISTS` … is selected.
    pub aggregate: bool,
    /// Any row will do: `LIMIT` without a condition or an order.
    pub sample: bool,
    /// The statement decides by a query of its own: `INSERT … SELECT … WHERE NOT EXISTS`.
    pub has_subquery_guard: bool,
    /// Sets of columns that cannot be there twice, from `CREATE TABLE`,
    /// `CREATE UNIQUE INDEX` and `ALTER TABLE … ADD UNIQUE`.
    pub unique: Vec<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Kind {
    Select,
    Insert,
    Update,
    Delete,
    /// `immediate`: takes SQLite's write lock at once. Also `SET TRANSACTION`
    /// and other words that set the level of the transaction.
    Begin {
        immediate: bool,
        serializable: bool,
    },
    Commit,
    Rollback,
    CreateTable,
    CreateIndex,
    /// `LOCK TABLE`, `pg_advisory_lock(k)`, `GET_LOCK(k)`: `tables`, or one
    /// condition with the function's name as column and `k` as operand.
    Lock,
    /// `pg_advisory_unlock(k)`, `RELEASE_LOCK(k)`, as for [`Kind::Lock`].
    Unlock,
    #[default]
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Conflict {
    /// A duplicate is an error.
    #[default]
    None,
    /// A duplicate is skipped.
    Ignore,
    /// A duplicate updates what is there.
    Update,
    /// A duplicate takes its place.
    Replace,
}

/// A test of a column. A clause that is all hole has the hole's name as its column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    pub column: String,
    /// What it is compared with.
    pub operand: Operand,
    /// The column must equal the operand for the statement to touch the row.
    pub equality: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    pub column: String,
    pub value: Value,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Computed from the column itself: `x = x + 1`.
    Relative,
    Operand(Operand),
    /// Computed from these.
    Expression(Vec<Operand>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// `?` in the order of the text, `$1` and `?1` as 0. A `?` behind a hole
    /// that may hold parameters itself (`SET ${sets} WHERE id = ?`) is [`Operand::Last`].
    Param(usize),
    /// `?` counted from the end of the text: the last is 0.
    Last(usize),
    /// `:name`, `@name`, `$name`
    Named(String),
    /// `toctou_hole_N`, alone or within a quoted string.
    Hole(usize),
    Literal(String),
    Column(String),
    /// The database's clock.
    Now,
    Other,
}

/// Reads a text that is known to be SQL. `None` if it is not, or is too large
/// or too deep. Of several statements those that cannot be read are
/// [`Kind::Other`], as long as one can.
///
/// Template holes come as the identifier `toctou_hole_N`.
pub fn parse(text: &str) -> Option<Vec<Statement>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let lexed = lex::lex(text)?;
    let statements = read::statements(&lexed);
    let any = statements.iter().any(Option::is_some);
    any.then(|| {
        statements
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect()
    })
}

/// Column sets that a schema file lets nobody have twice, with their tables.
pub fn unique_columns(schema: &str) -> Vec<(String, Vec<String>)> {
    let mut out = Vec::new();
    for text in lex::texts(schema) {
        let lower = text.to_ascii_lowercase();
        if !lower.contains("unique") && !lower.contains("primary key") {
            continue;
        }
        for statement in parse(text).into_iter().flatten() {
            if let Some(table) = statement.tables.first() {
                out.extend(statement.unique.iter().map(|u| (table.clone(), u.clone())));
            }
        }
    }
    out
}

/// Tables that a schema defines.
pub fn defined_tables(schema: &str) -> Vec<String> {
    let defines = |text: &&str| text.to_ascii_lowercase().contains("create table");
    let statements = lex::texts(schema)
        .into_iter()
        .filter(defines)
        .filter_map(parse)
        .flatten();
    let tables = statements.filter(|s| s.kind == Kind::CreateTable);
    tables.filter_map(|s| s.tables.into_iter().next()).collect()
}

/// Whether a string that may be anything is worth parsing: a statement's first
/// keyword and the one that must follow it. Cheap, and careful with English:
/// `Update your settings`, `delete from the list` and a lone `commit` are not SQL.
pub fn looks_like_sql(text: &str) -> bool {
    if text.len() > MAX_TEXT {
        return false;
    }
    let text = lex::skip_space(text);
    let text = text.trim_start_matches(['(', ' ', '\n']);
    let first = word(text);
    let rest = &text[first.len()..];
    // `Delete from cart` is a sentence: keywords are written in one case.
    let upper = first.bytes().all(|b| b.is_ascii_uppercase());
    if !upper && !first.bytes().all(|b| b.is_ascii_lowercase()) {
        return false;
    }
    let has = |keyword: &str| has_word(rest, keyword, upper);
    let follows = |keywords: &[&str]| {
        let second = word(lex::skip_space(rest));
        keywords.iter().any(|k| {
            second.eq_ignore_ascii_case(k)
                && second.bytes().all(|b| b.is_ascii_uppercase() == upper)
        })
    };
    let ends = || {
        let rest = lex::skip_space(rest);
        rest.is_empty() && upper || rest.starts_with(';')
    };
    match first.to_ascii_lowercase().as_str() {
        "select" => {
            has("from") && (upper || !english(rest, "from"))
                || upper && rest.contains('(')
                || ["advisory_", "get_lock(", "release_lock("]
                    .iter()
                    .any(|name| rest.to_ascii_lowercase().contains(name))
                || has("exists")
        }
        "insert" => has("into") && (upper || !english(rest, "into")),
        "replace" | "merge" => follows(&["into"]) && (upper || !english(rest, "into")),
        "update" => has("set") && rest.contains(['=', '_']) && (upper || !starts_english(rest)),
        "delete" => follows(&["from"]) && (upper || !english(rest, "from")),
        "with" => has("as") && rest.contains('(') && has("select"),
        "create" => {
            (has("table") || has("index") || has("trigger") || has("view"))
                && rest.contains(['(', '_'])
        }
        "alter" | "drop" | "truncate" => follows(&["table", "index"]),
        "lock" => follows(&["table", "tables"]) && upper,
        "begin" => {
            ends()
                || follows(&[
                    "transaction",
                    "work",
                    "immediate",
                    "exclusive",
                    "deferred",
                    "isolation",
                    "concurrent",
                ])
        }
        "start" => follows(&["transaction"]),
        "commit" | "rollback" | "end" => {
            ends() || upper && follows(&["transaction", "work", "to", "prepared"])
        }
        "set" => follows(&["transaction"]) || follows(&["session", "local"]) && has("transaction"),
        "pragma" | "savepoint" | "release" => upper,
        _ => false,
    }
}

/// The leading word.
fn word(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic() && c != '_')
        .unwrap_or(text.len());
    &text[..end]
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}

fn has_word(text: &str, keyword: &str, upper: bool) -> bool {
    words(text).any(|w| {
        w.eq_ignore_ascii_case(keyword) && w.bytes().all(|b| b.is_ascii_uppercase() == upper)
    })
}

/// What follows the keyword is an article and not a table.
fn english(text: &str, keyword: &str) -> bool {
    let mut rest = words(text).skip_while(|w| !w.eq_ignore_ascii_case(keyword));
    rest.next();
    rest.next().is_some_and(is_article)
}

fn starts_english(text: &str) -> bool {
    words(text).next().is_some_and(is_article)
}

fn is_article(word: &str) -> bool {
    const ARTICLES: [&str; 14] = [
        "the", "a", "an", "your", "this", "that", "our", "my", "its", "their", "these", "those",
        "any", "each",
    ];
    ARTICLES.iter().any(|a| word.eq_ignore_ascii_case(a))
}

#[cfg(test)]
mod tests;
