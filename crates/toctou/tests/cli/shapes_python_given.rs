//! What a framework makes for every call of a handler, and what threads make on first use.

use crate::common::Project;

/// Rules and personas of what is found, in the order of the report.
fn scan(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let project = Project::new(files);
    let run = project.run("scan . --no-config --persona pedantic --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    let json = run.json();
    let text = |f: &serde_json::Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    json["findings"]
        .as_array()
        .map(|list| {
            list.iter()
                .map(|f| (text(f, "rule"), text(f, "persona")))
                .collect()
        })
        .unwrap_or_default()
}

fn is(found: &[(String, String)], expected: &[(&str, &str)]) -> bool {
    found.len() == expected.len()
        && (found.iter().zip(expected)).all(|(f, e)| f.0 == e.0 && f.1 == e.1)
}

const MAKERS: &str = "
import asyncio, json
from typing import Annotated
from fastapi import Depends

lock = asyncio.Lock()

class Board:
    def __init__(self, path):
        self.path = path

    async def put(self, card):
        cards = await self.read()
        cards.append(card)
        await self.write(cards)

    async def put_in_turn(self, card):
        async with lock:
            await self.put(card)

    async def read(self):
        await asyncio.sleep(0)
        return json.loads(open(self.path).read())

    async def write(self, cards):
        await asyncio.sleep(0)
        open(self.path, \"w\").write(json.dumps(cards))

class Desk:
    def __init__(self, board: Board):
        self.board = board

def get_board():
    return Board(\"board.json\")

BoardDep = Annotated[Board, Depends(get_board)]

async def get_desk(board: BoardDep):
    yield Desk(board)

DeskDep = Annotated[Desk, Depends(get_desk)]
";

fn routes(body: &str) -> Vec<(String, String)> {
    let source = format!(
        "
from typing import Annotated
from fastapi import APIRouter, Depends
from handed_on import DeskDep
from makers import Board, get_board, get_desk
router = APIRouter()
{body}"
    );
    scan(&[
        ("makers.py", MAKERS),
        ("handed_on.py", "from makers import BoardDep, DeskDep\n"),
        ("routes.py", &source),
    ])
}

#[test]
fn what_is_given_to_a_handler_is_what_its_maker_gives_back() {
    for parameter in [
        "board = Depends(get_board)",
        "board: Annotated[Board, Depends(get_board)]",
        "desk: DeskDep",
        "desk = Depends(dependency=get_desk)",
    ] {
        let (name, _) = parameter.split_once([':', ' ']).unwrap_or((parameter, ""));
        let board = if name == "desk" { "desk.board" } else { name };
        let route = |method: &str| {
            format!(
                "@router.post(\"/cards\")
async def put(card: str, {parameter}):
    await {board}.{method}(card)
"
            )
        };
        let found = routes(&route("put"));
        assert!(
            is(&found, &[("file-read-modify-write", "regular")]),
            "{parameter}: {found:?}"
        );
        let found = routes(&route("put_in_turn"));
        assert!(
            is(&found, &[("process-lock-on-shared-resource", "regular")]),
            "{parameter}: {found:?}"
        );
    }
}

#[test]
fn a_maker_is_called_by_the_tools_that_need_it() {
    let source = |take: &str, give: &str| {
        format!(
            "
import asyncio, websockets
from fastmcp import FastMCP
from fastmcp.dependencies import Depends
mcp = FastMCP(\"x\")
turn = asyncio.Lock()
link = None

async def get_link():
    global link
    {take}
        if link is None:
            made = await websockets.connect(\"ws://localhost\")
            await made.send(\"hello\")
            link = made
        return link
    {give}

@mcp.tool()
async def ask(question: str, link = Depends(get_link)) -> str:
    await link.send(question)
    return await link.recv()
"
        )
    };
    let racy = source("if True:", "");
    let found = scan(&[("server.py", &racy), ("requirements.txt", "fastmcp>=3\n")]);
    assert!(
        found.iter().any(|f| f.0 == "memory-check-then-act"),
        "{found:?}"
    );
    let repaired = source("async with turn:", "");
    let found = scan(&[
        ("server.py", &repaired),
        ("requirements.txt", "fastmcp>=3\n"),
    ]);
    assert!(
        !found.iter().any(|f| f.0 == "memory-check-then-act"),
        "{found:?}"
    );
}

fn lazily(body: &str, asked: &str) -> Vec<(String, String)> {
    let source = format!(
        "
import threading
from fastmcp import FastMCP
from engines import Engine
mcp = FastMCP(\"x\")
lock = threading.Lock()
own = threading.local()
engine = None

def get():
    global engine
{body}

@mcp.tool()
def embed(text: str) -> str:
    return get().embed(text)
"
    );
    scan(&[("server.py", &source), ("requirements.txt", asked)])
}

const LAZY: &str = "
    if engine is None:
        engine = Engine(\"large\")
    return engine
";

#[test]
fn what_threads_make_on_first_use_is_made_twice() {
    let found = lazily(LAZY, "fastmcp>=3.0\n");
    assert!(
        is(&found, &[("memory-check-then-act", "pedantic")]),
        "{found:?}"
    );
    // No threads, no second one.
    assert!(lazily(LAZY, "fastmcp==2.14\n").is_empty());
    let looks_again = "
    if engine is None:
        with lock:
            if engine is None:
                engine = Engine(\"large\")
    return engine
";
    assert!(lazily(looks_again, "fastmcp>=3.0\n").is_empty());
    let one_for_each = "
    if getattr(own, \"engine\", None) is None:
        own.engine = Engine(\"large\")
    return own.engine
";
    assert!(lazily(one_for_each, "fastmcp>=3.0\n").is_empty());
    let tested = "
    if not own.engine:
        own.engine = Engine(\"large\")
    return own.engine
";
    assert!(lazily(tested, "fastmcp>=3.0\n").is_empty());
}
