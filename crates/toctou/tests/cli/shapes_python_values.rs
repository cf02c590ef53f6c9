//! Where values of Python servers come from and go: through decorators, library objects, helpers
//! that look for a free name, open files, and SQL that is put together from lists.

use crate::common::Project;

#[track_caller]
fn scan(files: &[(&str, &str)], persona: &str) -> Vec<String> {
    let requirements = ("requirements.txt", "mcp>=1.9,<2\n");
    let project = Project::new(&[files, &[requirements]].concat());
    let run = project.run(&format!(
        "scan . --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let mut found = run.rules();
    found.sort();
    found
}

#[track_caller]
fn files(rules: &[&str], files: &[(&str, &str)]) {
    assert_eq!(scan(files, "regular"), rules, "{files:?}");
}

#[track_caller]
fn expect(rules: &[&str], source: &str) {
    files(rules, &[("server.py", &format!("{HEAD}{source}"))]);
}

const HEAD: &str = "import asyncio, fcntl, functools, json, sqlite3
from pathlib import Path
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
ROOT = Path(\"notes\")
def db():
    c = sqlite3.connect(\"a.db\")
    c.row_factory = sqlite3.Row
    return c
";

// --- decorators of the program ---

const STATS: &str = "
def load():
    with open(\"stats.json\") as f:
        return json.load(f)

def save(path, data, indent=None):
    with open(path, \"w\") as f:
        json.dump(data, f)

@mcp.tool()
def hit(name: str) -> str:
    stats = load()
    stats[name] = 1
    save(\"stats.json\", stats, indent=2)
    return \"ok\"
";

/// The same, with a decorator on both.
fn decorated(decorator: &str) -> String {
    let body = STATS
        .replace("def load", "@safe\ndef load")
        .replace("def save", "@safe\ndef save");
    format!("{decorator}{body}")
}

#[test]
fn what_a_decorated_function_gives_back_keeps_its_origin() {
    let wrappers = [
        "
def safe(func):
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)
    return wrapper
",
        "
def safe(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        try:
            return func(*args, **kwargs)
        except OSError:
            return {}
    return wrapper
",
    ];
    for wrapper in wrappers {
        expect(&["file-read-modify-write"], &decorated(wrapper));
    }
}

#[test]
fn arguments_by_name_pass_a_decorator() {
    let source = decorated(
        "
def safe(func):
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)
    return wrapper
",
    );
    let call = "save(data=stats, path=\"stats.json\")";
    let source = source.replace("save(\"stats.json\", stats, indent=2)", call);
    expect(&["file-read-modify-write"], &source);
    // Another file than the one that was read.
    let source = source.replace("path=\"stats.json\")", "path=\"copy.json\")");
    expect(&[], &source);
}

#[test]
fn a_decorator_that_gives_back_something_else_gives_back_that() {
    let source = decorated(
        "
def safe(func):
    def wrapper(*args, **kwargs):
        func(*args, **kwargs)
        return {}
    return wrapper
",
    );
    expect(&[], &source);
}

// --- attributes on objects of libraries ---

const STORAGE: &str = "import fcntl, json
class Storage:
    def __init__(self, path):
        self.path = path
    def put(self, title):
        with open(self.path) as f:
            index = json.load(f)
        index[title] = 1
        with open(self.path, \"w\") as f:
            json.dump(index, f)
";

const APP: &str = "from mcp.server.fastmcp import FastMCP
app = FastMCP(\"x\")
@app.tool()
def put(title: str) -> str:
    app.storage.put(title)
    return \"ok\"
";

const MAIN: &str = "from storage import Storage
from server import app
def main():
    app.storage = Storage(\"x.json\")
    app.run()
main()
";

#[test]
fn what_the_program_puts_on_a_librarys_object_is_found_there() {
    let with = |storage: &str| {
        let storage = storage.to_owned();
        move |rules: &[&str]| {
            let all = [
                ("storage.py", storage.as_str()),
                ("server.py", APP),
                ("__main__.py", MAIN),
            ];
            files(rules, &all);
        }
    };
    with(STORAGE)(&["file-read-modify-write"]);
    let locked = STORAGE.replace(
        "        with open(self.path) as f:",
        "        lock = open(\"x.lock\", \"w\")
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(self.path) as f:",
    );
    with(&locked)(&[]);
}

// --- open files ---

#[test]
fn what_was_read_from_an_open_file_is_a_check() {
    expect(
        &["file-check-then-act"],
        "
@mcp.tool()
def replace(path: str, body: str, want: str) -> str:
    with open(path) as f:
        seen = f.read()
    if seen != want:
        return \"changed since you read it\"
    with open(path, \"w\") as f:
        f.write(body)
    return \"ok\"
",
    );
}

// --- names that are free ---

const SAVE: &str = "
@mcp.tool()
def add(title: str, body: str) -> str:
    path = free(title)
    path.write_text(body)
    return \"ok\"
";

#[test]
fn a_helper_that_gives_back_a_free_name_is_a_check() {
    let helpers = [
        "
def free(title):
    path = ROOT / title
    n = 1
    while path.exists():
        path = ROOT / f\"{title}_{n}\"
        n += 1
    return path
",
        "
def free(title):
    for n in range(100):
        path = ROOT / f\"{title}_{n}\"
        if not path.exists():
            return path
    raise ValueError(title)
",
        "
def free(title):
    name = title
    n = 1
    while (ROOT / name).exists():
        name = f\"{title}_{n}\"
        n += 1
    return ROOT / name
",
    ];
    for helper in helpers {
        expect(&["file-check-then-act"], &format!("{helper}{SAVE}"));
    }
}

#[test]
fn a_free_name_that_the_write_claims_is_safe() {
    let helper = "
def free(title):
    path = ROOT / title
    n = 1
    while path.exists():
        path = ROOT / f\"{title}_{n}\"
        n += 1
    return path
";
    let save = SAVE.replace(
        "    path.write_text(body)\n",
        "    with open(path, \"x\") as f:\n        f.write(body)\n",
    );
    expect(&[], &format!("{helper}{save}"));
}

// --- rows ---

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

// --- memory ---

#[test]
fn what_a_getter_gives_back_is_put_where_it_was() {
    let class = "
class Client:
    def __init__(self):
        self.users = {}
    async def get(self):
        if not self.users:
            await asyncio.sleep(1)
        return self.users
";
    let tool = "
client = Client()

@mcp.tool()
async def users() -> str:
    return await client.call()
";
    expect(
        &[],
        &format!(
            "{class}    async def call(self):
        self.users = await self.get()
        return str(self.users)
{tool}"
        ),
    );
    expect(
        &["session-lost-update"],
        &format!(
            "{class}    async def call(self):
        users = await self.get()
        await asyncio.sleep(1)
        self.users = users
        return str(self.users)
{tool}"
        ),
    );
}

/// What is made by a method, where there is none.
fn made(how: &str) -> String {
    format!(
        "
import asyncpg, httpx
class Store:
    def __init__(self):
        self.held = None
    async def create(self):
{how}
    async def ensure(self):
        if self.held is None:
            self.held = await self.create()

store = Store()

@mcp.tool()
async def ready() -> str:
    await store.ensure()
    return \"ok\"
"
    )
}

#[test]
fn a_pool_that_a_method_makes_is_made_twice() {
    let pool = "        pool = await asyncpg.create_pool(\"x\")
        return pool";
    expect(&["memory-check-then-act"], &made(pool));
    // What is fetched twice is fetched for nothing.
    let fetched = "        async with httpx.AsyncClient() as client:
            return (await client.get(\"http://x\")).json()";
    expect(&[], &made(fetched));
}
