//! What a call finds in memory and takes for itself: money that is spent, a task that is claimed,
//! a name that is free. Beside each stands the same without a wait, or with another meaning.

use crate::common::Project;

fn rules(source: &str) -> Vec<String> {
    let files = [("server.py", source), ("requirements.txt", "mcp>=1.9,<2\n")];
    let run = Project::new(&files).run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

const SERVER: &str = "
import lib
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
";

#[track_caller]
fn expect(rule: &str, source: &str) {
    assert_eq!(rules(&format!("{SERVER}{source}")), [rule], "{source}");
    // Nobody comes between.
    let at_once: String = source
        .lines()
        .filter(|line| !line.contains("await lib."))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(rules(&format!("{SERVER}{at_once}")), [""; 0], "{at_once}");
}

#[test]
fn what_was_enough_is_spent_after_a_wait() {
    let spend = |step: &str| {
        format!(
            "
accounts = {{}}

@mcp.tool()
async def withdraw(name: str, amount: int):
    if accounts[name] < amount:
        raise ValueError(\"not enough\")
    await lib.transfer(name, amount)
    {step}
"
        )
    };
    expect("memory-check-then-act", &spend("accounts[name] -= amount"));
    // It is given back what somebody had, whatever it was compared with.
    assert_eq!(
        rules(&format!("{SERVER}{}", spend("accounts[name] -= 1"))),
        [""; 0]
    );
}

#[test]
fn an_object_that_is_found_is_spent_from() {
    expect(
        "memory-check-then-act",
        "
class Account:
    def __init__(self):
        self.balance = 0

accounts = {}

@mcp.tool()
async def open_account(name: str):
    accounts[name] = Account()

@mcp.tool()
async def withdraw(name: str, amount: int):
    account = accounts[name]
    if account.balance < amount:
        raise ValueError(\"not enough\")
    await lib.transfer(name, amount)
    account.balance -= amount
",
    );
}

#[test]
fn a_task_is_claimed_by_two() {
    let claim = |state: &str, set: &str| {
        format!(
            "
tasks = {{}}

@mcp.tool()
async def claim(name: str):
    task = tasks[name]
    if task[\"status\"] != {state}:
        return
    await lib.notify(name)
    task[\"status\"] = {set}
"
        )
    };
    expect("memory-check-then-act", &claim("\"open\"", "\"claimed\""));
    // That it is done is said by everybody who finds that it is not.
    let done = claim("\"done\"", "\"done\"").replace("!=", "==");
    assert_eq!(rules(&format!("{SERVER}{done}")), [""; 0]);
}

#[test]
fn a_list_is_searched_and_added_to() {
    let list = |search: &str| {
        format!(
            "
tasks = []

@mcp.tool()
async def add(name: str):
{search}
    await lib.enrich(name)
    tasks.append({{\"name\": name}})
"
        )
    };
    let by_loop = "    for task in tasks:
        if task[\"name\"] == name:
            raise ValueError(\"taken\")";
    expect("memory-check-then-act", &list(by_loop));
    let by_any = "    if any(task[\"name\"] == name for task in tasks):
        raise ValueError(\"taken\")";
    expect("memory-check-then-act", &list(by_any));
    // Nothing is asked about the list: to add to it loses nothing.
    let unasked = "    for task in tasks:
        print(task)";
    assert_eq!(rules(&format!("{SERVER}{}", list(unasked))), [""; 0]);
}

#[test]
fn who_comes_second_is_told_so() {
    let start = |answer: &str| {
        format!(
            "
sessions = {{}}

@mcp.tool()
async def start(name: str):
    if name in sessions:
        return {answer}
    sessions[name] = await lib.describe(name)
    return \"ok\"
"
        )
    };
    let rule = "memory-check-then-act";
    assert_eq!(rules(&format!("{SERVER}{}", start("\"exists\""))), [rule]);
    // A cache gives what it has.
    let cached = start("sessions[name]");
    assert_eq!(rules(&format!("{SERVER}{cached}")), [""; 0]);
}

#[test]
fn what_the_lifespan_hands_out_is_everybodys() {
    let source = |found: &str| {
        format!(
            "
from contextlib import asynccontextmanager
from dataclasses import dataclass
from mcp.server.fastmcp import Context

class Rooms:
    def __init__(self):
        self.taken = {{}}

    async def take(self, room):
        if room in self.taken:
            raise ValueError(\"taken\")
        guest = await lib.register(room)
        self.taken[room] = guest

@asynccontextmanager
async def house(server):
    yield {{\"rooms\": Rooms()}}

mcp = FastMCP(\"x\", lifespan=house)

@mcp.tool()
async def take(room: str, ctx: Context):
    rooms = {found}
    await rooms.take(room)
"
        )
    };
    let shared = "ctx.request_context.lifespan_context[\"rooms\"]";
    let found = rules(&format!("{SERVER}{}", source(shared)));
    assert_eq!(found, ["memory-check-then-act"]);
    // What a call makes for itself is its own.
    assert_eq!(rules(&format!("{SERVER}{}", source("Rooms()"))), [""; 0]);
}

#[test]
fn who_is_told_that_there_is_none_is_not_refused_for_another() {
    let source = "
rooms = {}

@mcp.tool()
async def rename(name: str, title: str):
    if name not in rooms:
        return \"no such room\"
    await lib.describe(name)
    rooms[name] = title
    return \"ok\"
";
    assert_eq!(rules(&format!("{SERVER}{source}")), [""; 0]);
}
