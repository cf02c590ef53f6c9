//! Shapes of Python servers: loops over standard input, sessions of an ORM,
//! transactions of SQLite, office files, embedded stores, locks by platform.

use crate::common::Project;

#[track_caller]
fn expect(rules: &[&str], source: &str) {
    let files = [("server.py", source), ("requirements.txt", "mcp>=1.9,<2\n")];
    let project = Project::new(&files);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let mut found = run.rules();
    found.sort();
    assert_eq!(found, rules, "{source}");
}

const LOOP: &str = "import sys, json
NOTES = \"notes.json\"

def add(text=None):
    with open(NOTES) as f:
        notes = json.load(f)
    notes.append(text)
    with open(NOTES, \"w\") as f:
        json.dump(notes, f)

def count():
    return 1

TOOLS = {\"add\": {\"run\": add}, \"count\": {\"run\": count}}
";

#[test]
fn a_loop_over_standard_input_is_a_server_of_one_process_among_many() {
    let body = "
def answer(message):
    if message.get(\"method\") == \"tools/call\":
        params = message.get(\"params\") or {}
        return TOOLS[params[\"name\"]][\"run\"](**params[\"arguments\"])

def main():
    for line in sys.stdin:
        print(answer(json.loads(line)))

main()
";
    let source = format!("{LOOP}{body}");
    let project = Project::new(&[("server.py", source.as_str())]);
    let run = project.run("scan . --no-config --output json");
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
    let finding = &run.json()["findings"][0];
    assert_eq!(finding["scopes"], serde_json::json!(["cross-process"]));
    assert_eq!(finding["entry_points"][0]["kind"], "tool");
}

#[test]
fn a_program_that_reads_lines_for_something_else_serves_nobody() {
    let body = "
def answer(words):
    if words[0] == \"add\":
        add(words[1])

def main():
    for line in sys.stdin:
        answer(line.split())

main()
";
    let source = format!("{LOOP}{body}");
    let project = Project::new(&[("tool.py", source.as_str())]);
    let run = project.run("scan . --no-config --output json --persona pedantic");
    for finding in run.json()["findings"].as_array().into_iter().flatten() {
        for entry in finding["entry_points"].as_array().into_iter().flatten() {
            assert_ne!(entry["kind"], "tool", "{}", run.stdout);
        }
    }
}

const ORM: &str = "from sqlmodel import SQLModel, select
from sqlalchemy.exc import IntegrityError
from mcp.server.fastmcp import FastMCP
from storage import open_session
mcp = FastMCP(\"x\")

class Tag(SQLModel, table=True):
    id: int
    name: str
    uses: int

async def find(name):
    async with open_session() as session:
        rows = await session.execute(select(Tag).where(Tag.name == name))
        return rows.scalars().first()
";

#[test]
fn a_row_that_is_not_found_is_added_twice() {
    expect(
        &["db-check-then-write"],
        &format!(
            "{ORM}
@mcp.tool()
async def ensure(name: str):
    tag = await find(name)
    if tag is None:
        async with open_session() as session:
            session.add(Tag(name=name, uses=0))
            await session.commit()
"
        ),
    );
}

#[test]
fn a_class_that_names_its_table_is_one() {
    let source = |table: &str, find: &str| {
        format!(
            "from sqlalchemy import Column, Integer, String, create_engine, select
from sqlalchemy.orm import declarative_base, sessionmaker
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
Base = declarative_base()
make = sessionmaker(bind=create_engine(\"postgresql://\"))

class Item(Base):
    {table}
    name = Column(String, primary_key=True)
    stock = Column(Integer)

@mcp.tool()
def take(name: str, count: int):
    with make() as session:
        item = {find}
        item.stock = item.stock - count
        session.commit()
"
        )
    };
    let table = "__tablename__ = \"items\"";
    let by_query = "session.query(Item).filter(Item.name == name).first()";
    expect(&["db-lost-update"], &source(table, by_query));
    let by_select = "session.execute(select(Item).where(Item.name == name)).scalar_one()";
    expect(&["db-lost-update"], &source(table, by_select));
    // Another one who wants to change it waits.
    let locked = by_select.replace("== name)", "== name).with_for_update()");
    expect(&[], &source(table, &locked));
    expect(&[], &source("title = \"items\"", by_select));
    // What the class does not speak of is hung on the object, and not written back.
    let shown =
        source(table, by_select).replace("item.stock = item.stock", "item.left = item.stock");
    expect(&[], &shown);
}

#[test]
fn a_second_row_is_refused_by_what_the_class_says() {
    let source = |column: &str, beside: &str| {
        format!(
            "from sqlalchemy import Column, Integer, String, UniqueConstraint, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import declarative_base
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
Base = declarative_base()
make = async_sessionmaker(create_async_engine(\"postgresql://\"))

class Item(Base):
    __tablename__ = \"items\"
    id = Column(Integer, primary_key=True)
    name = {column}
    {beside}

@mcp.tool()
async def ensure(name: str):
    async with make() as session:
        found = await session.execute(select(Item).where(Item.name == name))
        if found.scalar_one_or_none() is None:
            session.add(Item(name=name))
            await session.commit()
"
        )
    };
    let plain = "Column(String, nullable=True)";
    expect(&["db-check-then-write"], &source(plain, "pass"));
    expect(&[], &source("Column(String, unique=True)", "pass"));
    let over = |columns: &str| format!("__table_args__ = (UniqueConstraint({columns}),)");
    expect(&[], &source(plain, &over("\"name\"")));
    let with_other = over("\"name\", \"id\"");
    expect(&["db-check-then-write"], &source(plain, &with_other));
}

#[test]
fn who_catches_the_conflict_has_seen_to_it() {
    expect(
        &[],
        &format!(
            "{ORM}
@mcp.tool()
async def ensure(name: str):
    tag = await find(name)
    if tag is None:
        async with open_session() as session:
            session.add(Tag(name=name, uses=0))
            try:
                await session.commit()
            except IntegrityError:
                return await find(name)
"
        ),
    );
}

#[test]
fn a_column_of_a_loaded_row_is_counted_up() {
    expect(
        &["db-lost-update"],
        &format!(
            "{ORM}
@mcp.tool()
async def use(id: int):
    async with open_session() as session:
        tag = await session.get(Tag, id)
        tag.uses = tag.uses + 1
        await session.commit()
"
        ),
    );
}

const SQLITE: &str = "import sqlite3
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
db = sqlite3.connect(\"x.db\")
";

#[test]
fn a_write_opens_a_transaction_that_keeps_others_out() {
    let read_and_write =
        "    row = db.execute(\"SELECT tags FROM notes WHERE id = ?\", (id,)).fetchone()
    db.execute(\"UPDATE notes SET tags = ? WHERE id = ?\", (row[0] + tag, id))
    db.commit()
";
    expect(
        &["db-lost-update"],
        &format!("{SQLITE}\n@mcp.tool()\ndef tag(id: int, tag: str):\n{read_and_write}"),
    );
    expect(
        &[],
        &format!(
            "{SQLITE}\n@mcp.tool()\ndef tag(id: int, tag: str):\n    db.execute(\"INSERT INTO log (note) VALUES (?)\", (id,))\n{read_and_write}"
        ),
    );
}

#[test]
fn a_column_that_nobody_changes_is_as_it_was() {
    let source = |more: &str| {
        format!(
            "{SQLITE}
@mcp.tool()
def remove(id: int, me: str):
    row = db.execute(\"SELECT kind FROM notes WHERE id = ?\", (id,)).fetchone()
    if row[\"kind\"] != me:
        raise ValueError(\"not of this kind\")
    db.execute(\"DELETE FROM notes WHERE id = ?\", (id,))
    db.commit()
{more}"
        )
    };
    expect(&[], &source(""));
    expect(
        &["db-check-then-write"],
        &source(
            "
@mcp.tool()
def give(id: int, to: str):
    db.execute(\"UPDATE notes SET kind = ? WHERE id = ?\", (to, id))
    db.commit()
",
        ),
    );
}

#[test]
fn office_files_are_loaded_and_saved_whole() {
    expect(
        &["file-read-modify-write"],
        "from openpyxl import load_workbook
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")

@mcp.tool()
def put(path: str, cell: str, value: str):
    book = load_workbook(path)
    book.active[cell] = value
    book.save(path)
",
    );
}

#[test]
fn an_embedded_store_has_one_process() {
    let source = |make: &str, lock: &str| {
        format!(
            "import chromadb, fcntl
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
notes = {make}.get_or_create_collection(\"notes\")

@mcp.tool()
def put(id: str, text: str):
{lock}notes.upsert(ids=[id], documents=[text])
"
        )
    };
    let local = "chromadb.PersistentClient(path=\"db\")";
    expect(&["file-read-modify-write"], &source(local, "    "));
    expect(&[], &source("chromadb.HttpClient(host=\"db\")", "    "));
    let locked = "    f = open(\"lock\", \"w\")
    fcntl.flock(f, fcntl.LOCK_EX)
    ";
    expect(&[], &source(local, locked));
}

#[test]
fn each_platform_has_its_lock() {
    expect(
        &[],
        "import contextlib, json, os
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")

@contextlib.contextmanager
def alone(path):
    handle = open(path + \".lock\", \"w\")
    try:
        if os.name == \"nt\":
            import msvcrt
            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        handle.close()

@mcp.tool()
def add(text: str):
    with alone(\"notes.json\"):
        with open(\"notes.json\") as f:
            notes = json.load(f)
        notes.append(text)
        with open(\"notes.json\", \"w\") as f:
            json.dump(notes, f)
",
    );
}

#[test]
fn another_name_is_chosen_where_the_file_is_there() {
    crate::common::python::pedantic(
        "file-check-then-act",
        "from datetime import datetime

@mcp.tool()
async def keep(name: str, content: bytes):
    path = Path(\"out\") / name
    if path.exists():
        path = Path(\"out\") / f\"{name}-{datetime.now()}\"
    with path.open(\"wb\") as f:
        f.write(content)
",
    );
}

#[test]
fn a_code_is_deleted_and_only_then_judged() {
    expect(
        &["single-use-check-then-consume"],
        "import redis, json
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
r = redis.Redis()

@mcp.tool()
def redeem(code: str):
    found = r.get(f\"code:{code}\")
    r.delete(f\"code:{code}\")
    if found is None:
        raise ValueError(\"no such code\")
    return json.loads(found)
",
    );
}

#[test]
fn documents_of_mongo_are_changed_by_what_is_there_or_by_what_was_read() {
    let source = |body: &str| {
        format!(
            "
from motor.motor_asyncio import AsyncIOMotorClient
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
db = AsyncIOMotorClient(\"mongodb://localhost\")[\"shop\"]

@mcp.tool()
async def buy(item: str, amount: int) -> str:
{body}
    return \"ok\"
"
        )
    };
    let lost = "
    found = await db.items.find_one({\"name\": item})
    await db.items.update_one({\"name\": item}, {\"$set\": {\"stock\": found[\"stock\"] - amount}})
";
    expect(&["db-lost-update"], &source(lost));
    let counted = "
    await db.items.update_one({\"name\": item}, {\"$inc\": {\"stock\": -amount}})
";
    expect(&[], &source(counted));
    let compared = "
    found = await db.items.find_one({\"name\": item})
    await db.items.update_one(
        {\"name\": item, \"stock\": found[\"stock\"]}, {\"$set\": {\"stock\": found[\"stock\"] - amount}}
    )
";
    expect(&[], &source(compared));
    let twice = "
    if await db[\"orders\"].find_one({\"item\": item}) is None:
        await db[\"orders\"].insert_one({\"item\": item, \"amount\": amount})
";
    expect(&["db-check-then-write"], &source(twice));
    let once = "
    await db[\"orders\"].update_one({\"item\": item}, {\"$setOnInsert\": {\"amount\": amount}}, upsert=True)
";
    expect(&[], &source(once));
}

#[test]
fn rows_of_cloud_stores_are_written_back() {
    let source = |body: &str| {
        format!(
            "
from supabase import create_client
from google.cloud import firestore
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
client = create_client(\"url\", \"key\")
db = firestore.Client()

@mcp.tool()
async def pay(account: str, amount: int) -> str:
{body}
    return \"ok\"
"
        )
    };
    let supabase = "
    row = client.table(\"accounts\").select(\"balance\").eq(\"id\", account).execute()
    client.table(\"accounts\").update({\"balance\": row.data[0][\"balance\"] - amount}).eq(\"id\", account).execute()
";
    expect(&["db-lost-update"], &source(supabase));
    let firestore = "
    old = db.collection(\"accounts\").document(account).get()
    db.collection(\"accounts\").document(account).update({\"balance\": old.to_dict()[\"balance\"] - amount})
";
    expect(&["db-lost-update"], &source(firestore));
}

#[test]
fn a_record_of_a_vector_table_is_deleted_and_put_back() {
    let source = |body: &str| {
        format!(
            "
import lancedb
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
db = lancedb.connect(\"data\")
table = db.open_table(\"notes\")

@mcp.tool()
async def touch(note: str) -> str:
{body}
    return \"ok\"
"
        )
    };
    let lost = "
    found = table.search().where(f\"id = '{note}'\").limit(1).to_list()
    record = found[0]
    record[\"seen\"] = record[\"seen\"] + 1
    table.delete(f\"id = '{note}'\")
    table.add([record])
";
    expect(&["db-lost-update"], &source(lost));
    let in_the_store = "
    table.update(where=f\"id = '{note}'\", values_sql={\"seen\": \"seen + 1\"})
";
    expect(&[], &source(in_the_store));
}
