//! Rows of Python servers: SQL that is put together from lists, transactions that statements
//! begin, inserts into tables whose definition is seen.

use crate::common::python::{HEAD, expect, scan};

/// A table without a unique index on the name, and one with it.
fn inserted(columns: &str) -> String {
    format!(
        "
def init():
    db().executescript(\"CREATE TABLE tasks (id INTEGER PRIMARY KEY, {columns})\")
init()

@mcp.tool()
def add(title: str) -> str:
    conn = db()
    row = conn.execute(\"SELECT id FROM tasks WHERE title = ?\", (title,)).fetchone()
    if row is None:
        conn.execute(\"INSERT INTO tasks (title) VALUES (?)\", (title,))
        conn.commit()
    return \"ok\"
"
    )
}

#[test]
fn a_second_row_is_inserted_where_the_table_takes_one() {
    expect(&["db-check-then-write"], &inserted("title TEXT"));
    expect(&[], &inserted("title TEXT UNIQUE"));
    let unseen = inserted("title TEXT").replace("tasks (id", "others (id");
    expect(&[], &unseen);
}

const NOTE: &str = "
@mcp.tool()
def note(task: str, text: str, title: str | None = None) -> str:
    conn = db()
    cur = conn.cursor()
    cur.execute(\"SELECT notes FROM tasks WHERE id = ?\", (task,))
    notes = json.loads(cur.fetchone()[\"notes\"])
    notes.append(text)
";

#[test]
fn sql_that_is_joined_from_a_list_is_read() {
    let lists = [
        "    fields = [\"notes = ?\"]
    params = [json.dumps(notes), task]
",
        "    fields = [\"status = ?\"]
    params = [\"done\"]
    fields.append(\"notes = ?\")
    params.append(json.dumps(notes))
    if title:
        fields.append(\"title = ?\")
        params.append(title)
    params.append(task)
",
        "    allowed = [\"notes = ?\", \"title = ?\"]
    fields = []
    for field in [\"notes = ?\"]:
        if field in allowed:
            fields.append(field)
    params = [json.dumps(notes)] + [task]
",
    ];
    for list in lists {
        expect(
            &["db-lost-update"],
            &format!(
                "{NOTE}{list}    cur.execute(f\"UPDATE tasks SET {{', '.join(fields)}} WHERE id = ?\", params)
    conn.commit()
    return \"ok\"
"
            ),
        );
    }
    // The columns are set to what the caller said, in the row that was found.
    expect(
        &[],
        "
@mcp.tool()
def rename(name: str, title: str) -> str:
    conn = db()
    cur = conn.cursor()
    cur.execute(\"SELECT id FROM tasks WHERE name = ?\", (name,))
    row = cur.fetchone()
    fields = [\"title = ?\"]
    params = [title, row[\"id\"]]
    cur.execute(f\"UPDATE tasks SET {', '.join(fields)} WHERE id = ?\", params)
    conn.commit()
    return \"ok\"
",
    );
}

#[test]
fn a_constant_that_is_set_by_keys_that_were_read_loses_nothing() {
    expect(
        &[],
        "
@mcp.tool()
def inbox(agent: str) -> str:
    conn = db()
    cur = conn.cursor()
    cur.execute(\"SELECT id, read FROM messages WHERE to_id = ?\", (agent,))
    rows = cur.fetchall()
    ids = [r[\"id\"] for r in rows if not r[\"read\"]]
    if ids:
        marks = \",\".join(\"?\" * len(ids))
        cur.execute(f\"UPDATE messages SET read = ? WHERE id IN ({marks})\", [True] + ids)
        conn.commit()
    return str(len(rows))
",
    );
}

/// A row is looked for, deleted, and counted.
fn dropped(counts: &str) -> String {
    format!(
        "{HEAD}
@mcp.tool()
def drop(key: str) -> str:
    conn = db()
    cur = conn.cursor()
    cur.execute(\"SELECT value FROM ctx WHERE k = ?\", (key,))
    n = 0
    if cur.fetchone():
        cur.execute(\"DELETE FROM ctx WHERE k = ?\", (key,))
        n += {counts}
    conn.commit()
    return str(n)
"
    )
}

#[test]
fn who_counts_what_was_deleted_knows_who_was_first() {
    let seen = |source: &str| scan(&[("server.py", source)], "pedantic");
    assert_eq!(seen(&dropped("cur.rowcount")), Vec::<String>::new());
    assert_eq!(seen(&dropped("1")), ["db-check-then-write"]);
}

/// Something is written, then a row is read and written back, in one connection.
fn second(first: &str, between: &str) -> String {
    format!(
        "
@mcp.tool()
def assign(agent: str, ids: list[str], title: str | None = None) -> str:
    conn = db()
    cur = conn.cursor()
{first}{between}    cur.execute(\"SELECT notes FROM agents WHERE id = ?\", (agent,))
    notes = json.loads(cur.fetchone()[\"notes\"])
    notes.append(agent)
    cur.execute(\"UPDATE agents SET notes = ? WHERE id = ?\", (json.dumps(notes), agent))
    conn.commit()
    return \"ok\"
"
    )
}

#[test]
fn a_transaction_that_a_loop_has_begun_is_held_behind_it() {
    let update = "cur.execute(\"UPDATE tasks SET who = ? WHERE id = ?\", (agent, i))\n";
    let looped = format!("    for i in ids:\n        {update}");
    expect(&[], &second(&looped, ""));
    // Committed before the read, here or in every round.
    expect(&["db-lost-update"], &second(&looped, "    conn.commit()\n"));
    let ended = format!("{looped}        conn.commit()\n");
    expect(&["db-lost-update"], &second(&ended, ""));
    // Only some rounds write.
    let some = format!("    for i in ids:\n        if i == title:\n            {update}");
    expect(&["db-lost-update"], &second(&some, ""));
}

#[test]
fn a_transaction_that_a_list_of_columns_has_begun_is_held() {
    let update =
        "cur.execute(f\"UPDATE tasks SET {', '.join(fields)} WHERE id = ?\", (*params, agent))\n";
    let lists = "    fields = [\"status = ?\"]
    params = [\"done\"]
    if title:
        fields.append(\"title = ?\")
        params.append(title)
";
    let listed = format!("{lists}    if fields:\n        {update}");
    expect(&[], &second(&listed, ""));
    let asked = format!("{lists}    if title:\n        {update}");
    expect(&["db-lost-update"], &second(&asked, ""));
}

/// Rows of one kind are counted, and one is inserted.
fn rooted(parent: &str) -> String {
    format!(
        "
@mcp.tool()
async def root(key: str, parent: str | None = None) -> str:
    conn = db()
    cur = conn.cursor()
    if parent is None:
        cur.execute(\"SELECT COUNT(*) AS n FROM tasks WHERE parent IS NULL\")
        if cur.fetchone()[\"n\"] > 0:
            return \"there is a root\"
    await asyncio.sleep(0)
    cur.execute(\"INSERT INTO tasks (id, parent) VALUES (?, {parent})\", (key, parent))
    conn.commit()
    return \"ok\"
"
    )
}

#[test]
fn a_row_that_may_be_among_those_that_were_counted_is_one_of_them() {
    expect(&["db-check-then-write"], &rooted("?"));
    expect(&[], &rooted("'other'"));
}

const MAPPED: &str = "
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

class Base(DeclarativeBase):
    pass

class Event(Base):
    __tablename__ = \"events\"
    id: Mapped[int] = mapped_column(primary_key=True)
    remaining: Mapped[int]

Session = async_sessionmaker(create_async_engine(\"postgresql+asyncpg://db\"))
";

#[test]
fn a_session_that_gets_a_row_for_update_has_it_alone() {
    let book = |get: &str| {
        format!(
            "{MAPPED}
@mcp.tool()
async def book(event_id: int, n: int) -> str:
    async with Session() as session:
        event = await session.{get}
        if event.remaining < n:
            return \"sold out\"
        event.remaining -= n
        await session.commit()
    return \"booked\"
"
        )
    };
    expect(&["db-lost-update"], &book("get(Event, event_id)"));
    expect(&["db-lost-update"], &book("get_one(Event, event_id)"));
    expect(
        &["db-lost-update"],
        &book("get(Event, event_id, with_for_update=False)"),
    );
    expect(&[], &book("get(Event, event_id, with_for_update=True)"));
    expect(
        &[],
        &book("get_one(Event, event_id, with_for_update={\"nowait\": True})"),
    );
}

#[test]
fn every_condition_of_a_statement_counts() {
    let book = |conditions: &str| {
        format!(
            "{MAPPED}
@mcp.tool()
async def book(event_id: int, n: int) -> str:
    async with Session() as session:
        event = (await session.execute(select(Event).where(Event.id == event_id))).scalar_one()
        if event.remaining < n:
            return \"sold out\"
        done = await session.execute(
            update(Event).where({conditions}).values(remaining=Event.remaining - n)
        )
        await session.commit()
        return \"booked\" if done.rowcount else \"sold out\"
"
        )
    };
    expect(&["db-check-then-write"], &book("Event.id == event_id"));
    expect(&[], &book("Event.id == event_id, Event.remaining >= n"));
}
