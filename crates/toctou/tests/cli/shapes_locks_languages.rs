//! Locks as Go, Python and Rust have them: channels, tables of locks, compare and swap, and
//! claims that are made under a lock and ended under it later.

use crate::common::Project;

#[track_caller]
fn expect(rules: &[&str], file: &str, source: &str) {
    let project = Project::new(&[(file, source)]);
    let run = project.run(&format!("scan {file} --no-config --output json"));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    assert_eq!(run.rules(), rules, "{source}");
}

/// A tool in Go: what stands in the file, and the handler's body.
#[track_caller]
fn go(rules: &[&str], rest: &str, body: &str) {
    let source = format!(
        "package main\n\
         import (\n\"context\"\n\"errors\"\n\"os\"\n\"sync\"\n\"sync/atomic\"\n\
         \"github.com/modelcontextprotocol/go-sdk/mcp\"\n)\n\
         type In struct {{ Key, Text string; N int64 }}\n{rest}\n\
         func act(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{\n{body}\n}}\n\
         func main() {{\n\
         server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)\n\
         mcp.AddTool(server, &mcp.Tool{{Name: \"act\"}}, act)\n\
         server.Run(context.Background(), &mcp.StdioTransport{{}})\n}}\n"
    );
    expect(rules, "main.go", &source);
}

const TURN: &str = "var turn = make(chan struct{}, 1)\nvar total int64";

#[test]
fn safe_channel_with_room_for_one() {
    go(
        &[],
        TURN,
        "turn <- struct{}{}\ntotal = total + in.N\n<-turn\nreturn nil, nil, nil",
    );
    go(
        &[],
        TURN,
        "turn <- struct{}{}\ndefer func() { <-turn }()\ntotal = total + in.N\nreturn nil, nil, nil",
    );
    go(
        &[],
        TURN,
        "select {\ncase turn <- struct{}{}:\ncase <-ctx.Done():\nreturn nil, nil, ctx.Err()\n}\ndefer func() { <-turn }()\ntotal = total + in.N\nreturn nil, nil, nil",
    );
    go(
        &[],
        &format!("{TURN}\nfunc enter() {{ turn <- struct{{}}{{}} }}\nfunc leave() {{ <-turn }}"),
        "enter()\ndefer leave()\ntotal = total + in.N\nreturn nil, nil, nil",
    );
}

#[test]
fn dangerous_channel_that_is_no_lock() {
    // Room for two, one of the call's own, and one that others empty.
    go(
        &["data-race"],
        "var turn = make(chan struct{}, 2)\nvar total int64",
        "turn <- struct{}{}\ntotal = total + in.N\n<-turn\nreturn nil, nil, nil",
    );
    go(
        &["data-race"],
        "var total int64",
        "turn := make(chan struct{}, 1)\nturn <- struct{}{}\ntotal = total + in.N\n<-turn\nreturn nil, nil, nil",
    );
    go(
        &["data-race"],
        TURN,
        "turn <- struct{}{}\ntotal = total + in.N\nreturn nil, nil, nil",
    );
    // What another thread puts into one that is this call's own.
    go(
        &["data-race"],
        "var total int64",
        "turn := make(chan error, 1)\ngo func() { turn <- os.Remove(in.Key) }()\ntotal = total + in.N\nreturn nil, nil, <-turn",
    );
}

#[test]
fn safe_channel_that_brings_an_answer() {
    go(
        &[],
        "",
        "answer := make(chan error, 1)\ngo func() { answer <- os.Remove(in.Key) }()\nselect {\ncase err := <-answer:\nreturn nil, nil, err\ncase <-ctx.Done():\nreturn nil, nil, ctx.Err()\n}",
    );
}

const TABLE: &str = "type Locks struct { mu sync.Mutex; m map[string]*sync.Mutex }\n\
    func (l *Locks) of(key string) *sync.Mutex {\nl.mu.Lock()\ndefer l.mu.Unlock()\n\
    one, ok := l.m[key]\nif !ok {\none = &sync.Mutex{}\nl.m[key] = one\n}\nreturn one\n}\n\
    var locks = &Locks{m: map[string]*sync.Mutex{}}\n\
    type Doc struct { Body string }\nvar docs = map[string]*Doc{\"a\": {}}";

#[test]
fn safe_lock_of_the_key() {
    go(
        &[],
        TABLE,
        "one := locks.of(in.Key)\none.Lock()\ndefer one.Unlock()\ndocs[in.Key].Body += in.Text\nreturn nil, nil, nil",
    );
    go(
        &[],
        "var locks sync.Map\ntype Doc struct { Body string }\nvar docs = map[string]*Doc{\"a\": {}}",
        "v, _ := locks.LoadOrStore(in.Key, &sync.Mutex{})\none := v.(*sync.Mutex)\none.Lock()\ndefer one.Unlock()\ndocs[in.Key].Body += in.Text\nreturn nil, nil, nil",
    );
}

#[test]
fn dangerous_lock_of_another_key() {
    go(
        &["data-race"],
        TABLE,
        "one := locks.of(in.Text)\none.Lock()\ndefer one.Unlock()\ndocs[in.Key].Body += in.Text\nreturn nil, nil, nil",
    );
}

#[test]
fn safe_limit_that_is_swapped_in() {
    go(
        &[],
        "var used atomic.Int64",
        "for {\nold := used.Load()\nif old + in.N > 100 { return nil, nil, errors.New(\"quota\") }\nif used.CompareAndSwap(old, old + in.N) { return nil, nil, nil }\n}",
    );
}

#[test]
fn dangerous_swap_that_nobody_asks_about() {
    go(
        &["non-atomic-rate-limit"],
        "var used atomic.Int64",
        "old := used.Load()\nif old + in.N > 100 { return nil, nil, errors.New(\"quota\") }\nused.CompareAndSwap(old, old + in.N)\nreturn nil, nil, nil",
    );
    go(
        &["non-atomic-rate-limit"],
        "var used atomic.Int64",
        "old := used.Load()\nif old + in.N > 100 { return nil, nil, errors.New(\"quota\") }\nused.Add(in.N)\nreturn nil, nil, nil",
    );
}

/// What is under way, by key; `start` stands in the helper that looks.
fn under_way(start: &str) -> String {
    format!(
        "var mu sync.Mutex\nvar running = map[string]bool{{}}\n\
         func start(key string) bool {{\nmu.Lock()\ndefer mu.Unlock()\nif running[key] {{ return false }}\n{start}\nreturn true\n}}\n\
         func done(key string) {{\nmu.Lock()\ndefer mu.Unlock()\ndelete(running, key)\n}}"
    )
}

const WORK: &str = "if !start(in.Key) { return nil, \"busy\", nil }\ndefer done(in.Key)\nreturn nil, nil, os.Remove(in.Key)";

#[test]
fn safe_claim_that_is_ended_later() {
    go(&[], &under_way("running[key] = true"), WORK);
    python(&[], "        running.add(key)\n        return True\n");
    rust(
        &[],
        "running: std::sync::Mutex<HashSet<String>>",
        "fn start(&self, k: &str) -> bool { let mut r = self.running.lock().unwrap(); if r.contains(k) { return false; } r.insert(k.to_string()); true }\n\
         fn done(&self, k: &str) { self.running.lock().unwrap().remove(k); }",
        "if !self.start(&key) { anyhow::bail!(\"busy\"); } let r = tokio::fs::remove_file(\"x\").await; self.done(&key); r?; Ok(())",
    );
}

/// Who looks and who ends it are functions of their own, each under the lock: not for everybody.
#[test]
fn a_look_without_a_claim() {
    go(&[], &under_way(""), WORK);
    python(&[], "        return True\n");
}

/// A helper that looks under a lock, and `then` what it does.
#[track_caller]
fn python(rules: &[&str], then: &str) {
    let source = format!(
        "import asyncio
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
lock = asyncio.Lock()
running = set()

async def start(key):
    async with lock:
        if key in running:
            return False
{then}
async def done(key):
    async with lock:
        running.discard(key)

@mcp.tool()
async def build(key: str) -> str:
    if not await start(key):
        return \"busy\"
    try:
        await asyncio.sleep(1)
    finally:
        await done(key)
    return \"ok\"
"
    );
    expect(rules, "server.py", &source);
}

/// A lock that is waited for no longer than a while.
fn patient(section: &str) -> String {
    format!(
        "import asyncio
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(\"x\")
lock = asyncio.Lock()
counts = {{}}

@mcp.tool()
async def add(key: str) -> str:
    await asyncio.wait_for(lock.acquire(), timeout=5)
{section}    return \"ok\"
"
    )
}

#[test]
fn safe_lock_that_is_waited_for_a_while() {
    expect(
        &[],
        "server.py",
        &patient(
            "    try:
        old = counts.get(key, 0)
        await asyncio.sleep(1)
        counts[key] = old + 1
    finally:
        lock.release()
",
        ),
    );
}

#[test]
fn dangerous_lock_that_a_failure_keeps() {
    expect(
        &["lock-not-released-on-error"],
        "server.py",
        &patient(
            "    old = counts.get(key, 0)
    await asyncio.sleep(1)
    counts[key] = old + 1
    lock.release()
",
        ),
    );
}

#[track_caller]
fn rust(rules: &[&str], fields: &str, helpers: &str, body: &str) {
    let source = format!(
        "use std::collections::{{HashMap, HashSet}};\nuse std::sync::Arc;\n\
         use dashmap::DashMap;\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::Mutex;\n\
         pub struct Server {{ {fields} }}\n\
         impl Server {{ {helpers} }}\n\
         #[tool_router]\nimpl Server {{\n#[tool]\n\
         async fn act(&self, key: String, url: String) -> anyhow::Result<()> {{\n{body}\n}}\n}}\n"
    );
    expect(rules, "main.rs", &source);
}

const RAISE: &str = "let old = self.totals.get(&key).map(|v| *v).unwrap_or(0);\n\
    let n = reqwest::get(&url).await?.text().await?.len() as u64;\n\
    self.totals.insert(key, old + n);\nOk(())";

#[test]
fn safe_lock_out_of_a_table() {
    let fields = "locks: DashMap<String, Arc<Mutex<()>>>, totals: DashMap<String, u64>";
    for get in [
        "or_default()",
        "or_insert_with(|| Arc::new(Mutex::new(())))",
    ] {
        let body = format!(
            "let lock = self.locks.entry(key.clone()).{get}.clone();\nlet _guard = lock.lock().await;\n{RAISE}"
        );
        rust(&[], fields, "", &body);
    }
    rust(
        &[],
        "locks: Mutex<HashMap<String, Arc<Mutex<()>>>>, totals: DashMap<String, u64>",
        "",
        &format!(
            "let lock = {{ let mut locks = self.locks.lock().await; locks.entry(key.clone()).or_default().clone() }};\nlet _guard = lock.lock().await;\n{RAISE}"
        ),
    );
}

#[test]
fn dangerous_lock_that_is_dropped_at_once() {
    rust(
        &["session-lost-update"],
        "locks: DashMap<String, Arc<Mutex<()>>>, totals: DashMap<String, u64>",
        "",
        &format!(
            "let lock = self.locks.entry(key.clone()).or_default().clone();\ndrop(lock.lock().await);\n{RAISE}"
        ),
    );
}
