//! What keeps calls of Python servers apart: tables of locks, transactions that a context manager
//! begins, versions that the caller names, and their near twins that keep nobody out.

use crate::common::python::expect;

fn keyed(locks: &str, lock: &str) -> String {
    format!(
        "
from collections import defaultdict
locks = {locks}
state = {{}}

@mcp.tool()
async def put(key: str) -> int:
    async with {lock}:
        n = state.get(key, 0)
        await asyncio.sleep(0.1)
        state[key] = n + 1
    return n
"
    )
}

#[test]
fn a_table_that_makes_the_locks_that_are_asked_for() {
    expect(&[], &keyed("{}", "locks.setdefault(key, asyncio.Lock())"));
    for makes in ["asyncio.Lock", "lambda: asyncio.Lock()"] {
        expect(&[], &keyed(&format!("defaultdict({makes})"), "locks[key]"));
    }
    // A lock of its own for every call, and room for two.
    expect(&["session-lost-update"], &keyed("{}", "asyncio.Lock()"));
    let two = "defaultdict(lambda: asyncio.Semaphore(2))";
    expect(&["session-lost-update"], &keyed(two, "locks[key]"));
}

fn entered(uses: &str) -> String {
    format!(
        "
from contextlib import contextmanager

@contextmanager
def transaction():
    conn = sqlite3.connect(\"a.db\")
    conn.execute(\"BEGIN IMMEDIATE\")
    try:
        yield conn
        conn.commit()
    except Exception:
        conn.rollback()
        raise
    finally:
        conn.close()

@mcp.tool()
def edit(task: int, text: str) -> str:
{uses}
    return \"ok\"
"
    )
}

#[test]
fn a_transaction_that_a_context_manager_begins_lasts_until_it_is_left() {
    let one = "    with transaction() as conn:
        row = conn.execute(\"SELECT body FROM tasks WHERE id = ?\", (task,)).fetchone()
        conn.execute(\"UPDATE tasks SET body = ? WHERE id = ?\", (row[0] + text, task))
";
    let two = one.replace(
        "        conn.execute",
        "    with transaction() as conn:\n        conn.execute",
    );
    expect(&[], &entered(one));
    expect(&["db-lost-update"], &entered(&two));
}

fn versioned(column: &str, condition: &str) -> String {
    format!(
        "
@mcp.tool()
def edit(task: int, text: str, expected: int) -> str:
    conn = db()
    row = conn.execute(\"SELECT body, {column} FROM tasks WHERE id = ?\", (task,)).fetchone()
    if row[\"{column}\"] != expected:
        return \"conflict\"
    body = row[\"body\"] + text
    cur = conn.execute(\"UPDATE tasks SET body = ?, {column} = ? WHERE id = ?{condition}\", (body, expected + 1, task, expected))
    conn.commit()
    return \"ok\" if cur.rowcount == 1 else \"conflict\"
"
    )
}

#[test]
fn a_version_that_the_caller_has_read_is_asked_for_again() {
    expect(&[], &versioned("version", " AND version = ?"));
    expect(&["db-lost-update"], &versioned("version", ""));
    let unless = " AND (version = ? OR ? IS NULL)";
    let unless =
        versioned("version", unless).replace("task, expected)", "task, expected, expected)");
    expect(&["db-lost-update"], &unless);
    // A state can be the same again, or still, when the text is another one.
    expect(&["db-lost-update"], &versioned("state", " AND state = ?"));
}
