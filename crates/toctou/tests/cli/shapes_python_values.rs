//! Where values of Python servers come from and go: through decorators, library objects, helpers
//! that look for a free name, open files, getters; and locks and limits that are asked first.

use crate::common::python::{expect, files, pedantic};

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
    pedantic(
        "file-check-then-act",
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

#[test]
fn formats_are_read_from_and_written_to_open_files() {
    let formats = [
        ("import tomlkit", "tomlkit.load(f)", "tomlkit.dump(data, f)"),
        (
            "import nbformat",
            "nbformat.read(f, as_version=4)",
            "nbformat.write(data, f)",
        ),
        (
            "import csv",
            "list(csv.reader(f))",
            "csv.writer(f).writerows(data)",
        ),
        (
            "from ruamel.yaml import YAML",
            "YAML().load(f)",
            "YAML().dump(data, f)",
        ),
    ];
    for (import, load, dump) in formats {
        let source = format!(
            "
{import}
@mcp.tool()
def edit(path: str, text: str) -> str:
    with open(path) as f:
        data = {load}
    data.append(text)
    with open(path, \"w\") as f:
        {dump}
    return \"ok\"
"
        );
        expect(&["file-read-modify-write"], &source);
        // A copy, elsewhere.
        let copy = source.replace("open(path, \"w\")", "open(path + \".copy\", \"w\")");
        expect(&[], &copy);
    }
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
        pedantic("file-check-then-act", &format!("{helper}{SAVE}"));
    }
}

#[test]
fn a_free_name_in_one_of_two_folders_is_a_check() {
    pedantic(
        "file-check-then-act",
        "
def free(folder, title):
    name = title
    n = 1
    while (folder / name).exists():
        stem = title.rsplit(\".\", 1)[0]
        name = f\"{stem}_{n}.md\"
        n += 1
    return name

@mcp.tool()
def add(title: str, body: str, parent: str | None = None) -> str:
    if parent:
        folder = ROOT / parent
        path = folder / free(folder, title)
    else:
        path = ROOT / free(ROOT, title)
    path.write_text(body)
    return \"ok\"
",
    );
}

/// A path that a helper makes with a part that differs by the way taken is another one at each
/// call of the helper: a part has no name by the helper's arguments, only the whole would.
#[test]
fn fn_helper_whose_path_has_a_part_that_differs_by_the_way_taken() {
    expect(
        &[],
        "
import os
def place(folder):
    name = os.path.basename(folder)
    if not name:
        name = \"root\"
    return ROOT / f\"{name}.json\"

@mcp.tool()
def hit(folder: str, key: str) -> str:
    stats = json.loads(place(folder).read_text())
    stats[key] = 1
    place(folder).write_text(json.dumps(stats))
    return \"ok\"
",
    );
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

// --- locks ---

/// A lock is taken, and something fails before it is given back for sure.
fn taken(acquire: &str, test: &str) -> String {
    format!(
        "
import threading
lock = threading.Lock()
state = {{}}

@mcp.tool()
def put(k: str) -> str:
    got = {acquire}
    if not {test}:
        raise RuntimeError(\"busy\")
    try:
        state[k] = 1
    finally:
        lock.release()
    return \"ok\"
"
    )
}

/// A context manager that says whether the lock was to be had.
fn tried(test: &str) -> String {
    format!(
        "
from contextlib import contextmanager
@contextmanager
def locked(path):
    f = open(path, \"w\")
    try:
        try:
            fcntl.flock(f.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        f.close()

@mcp.tool()
def put(k: str) -> str:
    with locked(\"x.lock\") as got:
{test}        with open(\"x.json\") as f:
            data = json.load(f)
        data[k] = 1
        with open(\"x.json\", \"w\") as f:
            json.dump(data, f)
    return \"ok\"
"
    )
}

#[test]
fn a_context_manager_that_tries_protects_who_looks_at_its_answer() {
    expect(
        &[],
        &tried("        if not got:\n            return \"busy\"\n"),
    );
}

/// It is taken for held whatever the answer: yields that let pass who has no lock are those of
/// locks that can be taken twice.
#[test]
fn fn_context_manager_whose_answer_nobody_looks_at() {
    expect(&[], &tried(""));
}

#[test]
fn who_was_told_that_the_lock_is_taken_holds_none() {
    expect(&[], &taken("lock.acquire(timeout=3)", "got"));
    expect(&[], &taken("lock.acquire(blocking=False)", "got"));
    let failed = taken("lock.acquire()", "k");
    expect(&["lock-not-released-on-error"], &failed);
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

/// A limiter that waits where there were too many calls.
fn limiter(body: &str) -> String {
    format!(
        "
import time
class RateLimiter:
    def __init__(self):
        self.calls = []
        self.last = 0.0
        self.lock = asyncio.Lock()
    async def acquire(self):
        now = time.time()
{body}
limiter = RateLimiter()

@mcp.tool()
async def search(q: str) -> str:
    await limiter.acquire()
    return q
"
    )
}

#[test]
fn a_limiter_that_waits_and_goes_on_lets_all_go_on() {
    let counted = "        if len(self.calls) >= 30:
            await asyncio.sleep(60)
        self.calls.append(now)
";
    expect(&["non-atomic-rate-limit"], &limiter(counted));
    let spaced = "        wait = self.last + 1.0 - now
        if wait > 0:
            await asyncio.sleep(wait)
        self.last = time.time()
";
    expect(&["non-atomic-rate-limit"], &limiter(spaced));
    // It looks again after the wait.
    expect(&[], &limiter(&counted.replace("if len", "while len")));
    // One after the other.
    let locked = counted.replace("        ", "            ");
    let locked = format!("        async with self.lock:\n{locked}");
    expect(&[], &limiter(&locked));
    // Nobody counts after the wait.
    let early = "        self.calls.append(now)
        if len(self.calls) >= 30:
            await asyncio.sleep(60)
";
    expect(&[], &limiter(early));
}

/// `state["total"]` is a place like `state[key]` and `state.total`.
#[test]
fn an_entry_whose_key_is_written_out() {
    let tool = |write: &str| {
        format!(
            "state = {{\"total\": 0}}\n@mcp.tool()\nasync def add(n: int) -> int:\n    before = state[\"total\"]\n    await work()\n    {write}\n    return before\n"
        )
    };
    expect(
        &["session-lost-update"],
        &tool("state[\"total\"] = before + n"),
    );
    expect(&[], &tool("state[\"last\"] = n"));
}

// --- fields with a default ---

/// A note that is saved by what its object says, in a class that is made in this way.
fn saved_by_field(head: &str, made: &str) -> String {
    format!(
        "import os
{head}
    text: str
    folder: str = \"common\"

def save(note):
    with open(os.path.join(note.folder, \"note.txt\"), \"w\") as f:
        f.write(note.text)

@mcp.tool()
def add(folder: str, text: str) -> str:
    with open(os.path.join(folder, \"note.txt\")) as f:
        old = f.read()
    save({made})
    return \"ok\"
"
    )
}

/// A default is what the field holds only where nothing was given.
#[test]
fn a_field_holds_what_it_was_given() {
    for head in [
        "from dataclasses import dataclass\n@dataclass\nclass Note:",
        "from pydantic import BaseModel\nclass Note(BaseModel):",
    ] {
        for made in [
            "Note(text=old + text, folder=folder)",
            "Note(old + text, folder)",
        ] {
            expect(&["file-read-modify-write"], &saved_by_field(head, made));
        }
        // Another file.
        expect(&[], &saved_by_field(head, "Note(text=old + text)"));
    }
}
