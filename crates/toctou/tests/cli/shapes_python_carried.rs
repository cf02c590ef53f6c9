//! What is found by a way that the program does not spell out: contexts that a framework carries
//! to the handlers, methods by a part of their name, functions that are handed to a thread.

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

/// A store whose `put` loses what another call puts, and one that does not.
const SHELF: &str = "
import asyncio, functools, json, os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from filelock import FileLock

class Shelf:
    def __init__(self, path):
        self.path = path

    async def put(self, book):
        books = json.loads(open(self.path).read())
        await asyncio.sleep(0)
        books.append(book)
        open(self.path, \"w\").write(json.dumps(books))

    async def put_in_turn(self, book):
        with FileLock(\"shelf.lock\"):
            books = json.loads(open(self.path).read())
            books.append(book)
            open(self.path, \"w\").write(json.dumps(books))
";

#[track_caller]
fn expect_shelf(source: &str) {
    expect(&["file-read-modify-write"], &format!("{SHELF}{source}"));
    let repaired = source.replace(".put(", ".put_in_turn(");
    expect(&[], &format!("{SHELF}{repaired}"));
}

#[test]
fn handlers_find_what_the_lifespan_hands_out() {
    expect_shelf(
        "
from mcp.server.fastmcp import Context, FastMCP

@dataclass
class Rooms:
    shelf: Shelf

@asynccontextmanager
async def open_rooms(server):
    yield Rooms(shelf=Shelf(\"shelf.json\"))

mcp = FastMCP(\"x\", lifespan=open_rooms)

@mcp.tool()
async def put(book: str, ctx: Context) -> str:
    await ctx.request_context.lifespan_context.shelf.put(book)
    return \"ok\"
",
    );
    expect_shelf(
        "
from mcp.server import Server

@asynccontextmanager
async def open_rooms(server):
    yield {\"shelf\": Shelf(\"shelf.json\")}

server = Server(\"x\", lifespan=open_rooms)

@server.call_tool()
async def call(name: str, arguments: dict):
    shelf = server.request_context.lifespan_context[\"shelf\"]
    await shelf.put(arguments[\"book\"])
",
    );
}

#[test]
fn the_state_of_an_application_is_the_same_wherever_it_is_reached() {
    expect_shelf(
        "
from fastapi import FastAPI, Request

app = FastAPI()
app.state.shelf = Shelf(\"shelf.json\")

@app.post(\"/books\")
async def put(request: Request):
    await request.app.state.shelf.put(await request.json())
",
    );
}

#[test]
fn methods_are_found_by_the_beginning_of_their_name() {
    expect_shelf(
        "
from mcp.server import Server
server = Server(\"x\")

class Tools:
    def __init__(self):
        self.shelf = Shelf(\"shelf.json\")

    async def _tool_put(self, arguments):
        await self.shelf.put(arguments[\"book\"])

    async def _tool_count(self, arguments):
        return 1

tools = Tools()

@server.call_tool()
async def call(name: str, arguments: dict):
    run = getattr(tools, f\"_tool_{name}\", None)
    if run is None:
        raise ValueError(name)
    return await run(arguments)
",
    );
}

#[test]
fn functions_of_a_library_do_in_a_thread_what_they_do() {
    let source = |body: &str| {
        format!(
            "{SHELF}
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
BOOKS = Path(\"books.json\")
lock = asyncio.Lock()

@mcp.tool()
async def put(book: str) -> str:
    loop = asyncio.get_running_loop()
{body}
    return \"ok\"
"
        )
    };
    let lost = "
    books = json.loads(await asyncio.to_thread(BOOKS.read_text))
    books.append(book)
    await asyncio.to_thread(BOOKS.write_text, json.dumps(books))
";
    expect(&["file-read-modify-write"], &source(lost));
    let in_turn = "
    async with lock:
        books = json.loads(await asyncio.to_thread(BOOKS.read_text))
        books.append(book)
        await asyncio.to_thread(BOOKS.write_text, json.dumps(books))
";
    expect(&["process-lock-on-shared-resource"], &source(in_turn));
    let looked = "
    if not await loop.run_in_executor(None, os.path.exists, book):
        await loop.run_in_executor(None, functools.partial(Path(book).write_text, book))
";
    expect(&["file-check-then-act"], &source(looked));
    let exclusive = "
    await asyncio.to_thread(Path(book).touch, exist_ok=False)
";
    expect(&[], &source(exclusive));
}

#[test]
fn an_object_that_a_class_makes_of_a_text_is_one_of_the_class() {
    let source = |lock: &str| {
        format!(
            "
from contextlib import nullcontext
from pathlib import Path
from filelock import FileLock
from pydantic import BaseModel
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")

class Books(BaseModel):
    titles: list[str] = []

    @classmethod
    def load(cls):
        return cls.model_validate_json(Path(\"books.json\").read_text())

    def save(self):
        Path(\"books.json\").write_text(self.model_dump_json())

@mcp.tool()
async def put(book: str) -> str:
    with {lock}:
        books = Books.load()
        books.titles.append(book)
        books.save()
    return \"ok\"
"
        )
    };
    expect(&["file-read-modify-write"], &source("nullcontext()"));
    expect(&[], &source("FileLock(\"books.lock\")"));
}
