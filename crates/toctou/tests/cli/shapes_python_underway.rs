//! Shapes of Python servers, end to end: dicts that are gone through while another call changes them.

use crate::common::python::files;

/// A server whose `send` goes through the notes as `source` says, and which `change` changes.
fn server(sdk: &str, change: &str, send: &str) -> String {
    format!(
        "import asyncio\nfrom {sdk} import FastMCP\nfrom mail import post\n\nmcp = FastMCP('notes')\n\
         notes: dict[str, str] = {{}}\nlock = asyncio.Lock()\n\n\n\
         @mcp.tool()\nasync def change(title: str, text: str) -> str:\n    {change}\n    return 'done'\n\n\n\
         @mcp.tool()\n{send}"
    )
}

fn expect(rules: &[&str], source: &str) {
    files(rules, &[("server.py", source)]);
}

const ADDS: &str = "notes[title] = text";
const SDK: &str = "mcp.server.fastmcp";

#[test]
fn a_loop_that_waits() {
    let send = |of: &str, work: &str| {
        format!(
            "async def send() -> str:\n    for note in {of}:\n        {work}\n    return 'sent'\n"
        )
    };
    for of in ["notes", "notes.values()", "notes.items()", "notes.keys()"] {
        for change in [ADDS, "notes.pop(title)", "del notes[title]"] {
            let source = server(SDK, change, &send(of, "await post(note)"));
            expect(&["data-race"], &source);
        }
    }
    // A copy, made in one step; a loop that does not wait; waiting for what does not wait.
    for of in ["list(notes.values())", "notes.copy()", "sorted(notes)"] {
        expect(&[], &server(SDK, ADDS, &send(of, "await post(note)")));
    }
    expect(&[], &server(SDK, ADDS, &send("notes", "print(note)")));
    // Nobody adds: what is there gets another value.
    let sets = "if title in notes:\n        notes[title] = text";
    expect(&[], &server(SDK, sets, &send("notes", "await post(note)")));
    // Left after the first wait.
    let once = "await post(note)\n        break";
    expect(&[], &server(SDK, ADDS, &send("notes", once)));
}

#[test]
fn a_lock_over_both() {
    let send = "async def send() -> str:\n    async with lock:\n        for note in notes:\n            await post(note)\n    return 'sent'\n";
    let change = "async with lock:\n        notes[title] = text";
    expect(&[], &server(SDK, change, send));
}

#[test]
fn a_loop_in_a_thread() {
    let send = "def send() -> str:\n    out = ''\n    for note in notes.values():\n        out += note\n    return out\n";
    // Plain functions have a thread each, from this version on.
    let source = server("fastmcp", ADDS, send);
    let project = crate::common::Project::new(&[
        ("server.py", &source),
        ("requirements.txt", "fastmcp==3.1.0\n"),
    ]);
    let run = project.run("scan . --no-config --persona pedantic --output json");
    assert_eq!(run.rules(), ["data-race"], "{}", run.stdout);
    let run = project.run("scan . --no-config --output json");
    assert_eq!(run.rules(), Vec::<String>::new(), "{}", run.stdout);
    // In turn with the others, on one thread.
    expect(&[], &server(SDK, ADDS, send));
}
