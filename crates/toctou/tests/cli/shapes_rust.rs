//! Shapes that only Rust has, end to end: how long a guard lives, what is shared
//! and what the compiler keeps apart, where clients get in.

use crate::common::Project;

fn rules(source: &str) -> Vec<String> {
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

/// A server with a map behind a lock and a counter, and this tool.
fn tool(body: &str) -> String {
    format!(
        "use std::collections::HashMap;\nuse std::sync::Arc;\n\
         use std::sync::atomic::{{AtomicBool, AtomicU64, Ordering}};\n\
         use rmcp::{{tool, tool_router}};\nuse tokio::sync::{{Mutex, RwLock}};\n\
         pub struct Server {{ map: Arc<Mutex<HashMap<String, u64>>>, state: Arc<RwLock<State>>, n: AtomicU64, busy: AtomicBool, plain: u64 }}\n\
         #[derive(Clone)]\npub struct State {{ total: u64, name: Option<String> }}\n\
         #[tool_router]\nimpl Server {{\n#[tool]\nasync fn act(&self, key: String) -> anyhow::Result<()> {{\n{body}\n}}\n}}\n\
         async fn work(x: u64) -> anyhow::Result<u64> {{ Ok(x) }}\n"
    )
}

#[track_caller]
fn dangerous(rule: &str, body: &str) {
    assert_eq!(rules(&tool(body)), [rule], "{body}");
}

#[track_caller]
fn safe(body: &str) {
    assert_eq!(rules(&tool(body)), Vec::<String>::new(), "{body}");
}

#[test]
fn two_acquisitions_are_two_doors() {
    dangerous(
        "lock-scope-too-narrow",
        "if !self.map.lock().await.contains_key(&key) { let v = work(key.len() as u64).await?; self.map.lock().await.insert(key, v); } Ok(())",
    );
    dangerous(
        "lock-scope-too-narrow",
        "let limit = read_limit(); let old = { let map = self.map.lock().await; map.get(&key).copied() };\n\
         if old.is_none() { self.map.lock().await.insert(key, limit); } Ok(())",
    );
    dangerous(
        "lock-scope-too-narrow",
        "let limit = read_limit(); let map = self.map.lock().await; let known = map.contains_key(&key); drop(map);\n\
         if !known { self.map.lock().await.insert(key, limit); } Ok(())",
    );
}

#[test]
fn one_acquisition_is_enough() {
    safe(
        "let mut map = self.map.lock().await; if !map.contains_key(&key) { let v = work(1).await?; map.insert(key, v); } Ok(())",
    );
    safe(
        "let map = Arc::clone(&self.map); let mut map = map.lock().await; if map.get(&key).is_none() { map.insert(key, 1); } Ok(())",
    );
    safe(
        "let mut state = self.state.write().await; state.total += 1; work(state.total).await?; state.total += 1; Ok(())",
    );
}

#[test]
fn copied_out_and_put_back() {
    dangerous(
        "lock-scope-too-narrow",
        "let mut copy = self.state.read().await.clone(); copy.total += 1; work(1).await?; *self.state.write().await = copy; Ok(())",
    );
}

#[test]
fn a_copy_is_ones_own() {
    safe(
        "let mut copy = self.state.read().await.clone(); copy.total += 1; work(copy.total).await?; Ok(())",
    );
    safe("let mut total = self.plain; total += 1; work(total).await?; Ok(())");
}

#[test]
fn atomics_are_atomic_one_at_a_time() {
    dangerous(
        "session-lost-update",
        "let n = self.n.load(Ordering::SeqCst); self.n.store(n + 1, Ordering::SeqCst); Ok(())",
    );
    safe("self.n.fetch_add(1, Ordering::SeqCst); Ok(())");
}

#[test]
fn no_data_race_is_ever_reported() {
    let source = "use rmcp::{tool, tool_router};\npub struct S { n: u64, list: Vec<u64> }\n\
        #[tool_router]\nimpl S {\n#[tool]\nasync fn add(&mut self, x: u64) { let n = self.n; work().await; self.n = n + x; self.list.push(n); }\n}\nasync fn work() {}\n";
    assert_eq!(rules(source), Vec::<String>::new());
}

#[test]
fn a_handler_by_hand_is_split_by_name() {
    let source = "use rmcp::ServerHandler;\nuse std::path::PathBuf;\npub struct S { file: PathBuf }\n\
        impl ServerHandler for S {\nasync fn call_tool(&self, request: Request) -> anyhow::Result<()> {\n\
        match request.name.as_ref() {\n\"append\" => {\n\
        let old = tokio::fs::read_to_string(&self.file).await?;\n\
        tokio::fs::write(&self.file, format!(\"{old}x\")).await?;\n}\n_ => {}\n}\nOk(())\n}\n}\n";
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    let json = run.json();
    let point = &json["findings"][0]["entry_points"][0];
    assert_eq!(point["kind"], "tool", "{}", run.stdout);
    assert_eq!(point["name"], "append");
}

#[test]
fn an_impl_in_another_file() {
    let project = Project::new(&[
        ("Cargo.toml", "[package]\nname = \"s\"\n"),
        (
            "src/main.rs",
            "mod store;\nuse rmcp::{tool, tool_router};\nuse std::path::PathBuf;\npub struct S { file: PathBuf }\n\
             #[tool_router]\nimpl S {\n#[tool]\nasync fn add(&self, x: String) -> anyhow::Result<()> {\n\
             let all = self.load().await?;\nself.save(format!(\"{all}{x}\")).await\n}\n}\n",
        ),
        (
            "src/store.rs",
            "use super::S;\nimpl S {\npub async fn load(&self) -> anyhow::Result<String> { Ok(tokio::fs::read_to_string(&self.file).await?) }\n\
             pub async fn save(&self, text: String) -> anyhow::Result<()> { tokio::fs::write(&self.file, text).await?; Ok(()) }\n}\n",
        ),
    ]);
    let run = project.run("scan . --no-config --output json");
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
}

/// `pub use store::jobs;` in one crate, and `facade::jobs::take` in another.
#[test]
fn a_module_that_is_passed_on() {
    let package = |name: &str, needs: &str| {
        format!(
            "[package]\nname = \"{name}\"\n[dependencies]\nrusqlite = \"0.31\"\naxum = \"0.7\"\n{needs}"
        )
    };
    let scan = |statement: &str, used: &str, call: &str| {
        let jobs = format!(
            "use rusqlite::Connection;\npub fn take(db: &Connection) -> rusqlite::Result<()> {{\n\
             let id: i64 = db.query_row(\"SELECT id FROM jobs WHERE state = 'open' LIMIT 1\", [], |row| row.get(0))?;\n\
             db.execute(\"{statement}\", [id])?;\nOk(())\n}}\n"
        );
        let routes = format!(
            "{used}use axum::{{Router, routing::post}};\nuse rusqlite::Connection;\n\
             async fn next() {{ let db = Connection::open(\"jobs.db\").unwrap(); {call}(&db).ok(); }}\n\
             pub fn app() -> Router {{ Router::new().route(\"/next\", post(next)) }}\n"
        );
        let project = Project::new(&[
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"store\", \"facade\", \"web\"]\n",
            ),
            ("store/Cargo.toml", &package("store", "")),
            ("store/src/lib.rs", "pub mod jobs;\n"),
            (
                "store/src/jobs/mod.rs",
                "mod take;\npub use self::take::take;\n",
            ),
            ("store/src/jobs/take.rs", &jobs),
            (
                "facade/Cargo.toml",
                &package("facade", "store = { path = \"../store\" }\n"),
            ),
            ("facade/src/lib.rs", "pub use store::jobs;\n"),
            (
                "web/Cargo.toml",
                &package("web", "facade = { path = \"../facade\" }\n"),
            ),
            ("web/src/lib.rs", &routes),
        ]);
        let run = project.run("scan . --no-config --output json");
        let kinds: Vec<String> = run.json()["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|f| f["entry_points"][0]["kind"].to_string())
            .collect();
        (run.rules(), kinds)
    };
    let claims = "UPDATE jobs SET state = 'taken' WHERE id = ?1";
    let asks = "UPDATE jobs SET state = 'taken' WHERE id = ?1 AND state = 'open'";
    for (used, call) in [
        ("", "facade::jobs::take"),
        ("use facade::jobs;\n", "jobs::take"),
        ("use facade::jobs::take;\n", "take"),
        ("use facade::jobs as work;\n", "work::take"),
    ] {
        let (rules, kinds) = scan(claims, used, call);
        assert_eq!(rules, ["db-check-then-write"], "{used}{call}");
        assert_eq!(kinds, ["\"route\""], "{used}{call}");
        assert_eq!(
            scan(asks, used, call).0,
            Vec::<String>::new(),
            "{used}{call}"
        );
    }
}

#[test]
fn a_flag_that_only_one_call_can_set() {
    let with = |set: &str| {
        format!(
            "if {set} {{ anyhow::bail!(\"busy\"); }}\nlet n = self.n.load(Ordering::SeqCst); work(n).await?;\n\
             self.n.store(n + 1, Ordering::SeqCst); self.busy.store(false, Ordering::SeqCst); Ok(())"
        )
    };
    safe(&with(
        "self.busy.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_err()",
    ));
    safe(&with("self.busy.swap(true, Ordering::SeqCst)"));
    dangerous(
        "lock-scope-too-narrow",
        "self.busy.swap(true, Ordering::SeqCst); let n = self.n.load(Ordering::SeqCst); self.busy.store(false, Ordering::SeqCst);\n\
         work(n).await?; self.n.store(n + 1, Ordering::SeqCst); Ok(())",
    );
}

#[test]
fn waiting_for_a_lock_is_no_retry() {
    safe(
        "while let Some(x) = self.map.lock().await.get(&key).copied() { if x == 0 { break; } work(x).await?; } Ok(())",
    );
    safe(
        "loop { { let map = self.map.lock().await; if map.contains_key(&key) { return Ok(()); } } work(1).await?; }",
    );
}

/// The path is set again in the loop, and is still the one that was looked at last.
#[test]
fn a_free_name_that_is_looked_for_in_a_loop() {
    dangerous(
        "file-check-then-act",
        "let folder = std::path::Path::new(\"notes\"); let mut path = folder.join(&key); let mut n = 0;\n\
         while path.exists() { n += 1; path = folder.join(format!(\"{key}-{n}\")); }\n\
         tokio::fs::write(&path, key.to_uppercase()).await?; Ok(())",
    );
}

/// `Ok(())` is not an error, though it holds nothing.
#[test]
fn what_is_there_is_there_whatever_it_holds() {
    for (held, fails) in [("()", "Err(_)"), ("false", "Err(_)"), ("0", "None")] {
        let kind = if fails == "None" { "Some" } else { "Ok" };
        dangerous(
            "file-read-modify-write",
            &format!(
                "let mut text = std::fs::read_to_string(\"notes.txt\").unwrap_or_default(); text.push_str(&key);\n\
                 let done = (|| {{ check(&text); {kind}({held}) }})(); if let {fails} = done {{ return Ok(()); }}\n\
                 std::fs::write(\"notes.txt\", text)?; Ok(())"
            ),
        );
    }
}

/// `_` keeps nothing: the guard is dropped at once.
#[test]
fn a_guard_without_a_name_is_gone() {
    let body = |name: &str| {
        format!(
            "let {name} = self.map.lock().await; let old = self.n.load(Ordering::SeqCst);\n\
             work(old).await?; self.n.store(old + 1, Ordering::SeqCst); Ok(())"
        )
    };
    safe(&body("_guard"));
    dangerous("session-lost-update", &body("_"));
}

/// Rows that are deleted some at a time, until there are none left.
#[test]
fn deleting_in_batches_is_no_retry() {
    let source = "use rmcp::{tool, tool_router};\npub struct Server { pool: sqlx::PgPool }\n#[tool_router]\nimpl Server {\n#[tool]\n\
        async fn clean(&self, days: i64) -> anyhow::Result<()> {\nloop {\n\
        let done = sqlx::query(\"DELETE FROM notes WHERE id IN (SELECT id FROM notes WHERE age > $1 LIMIT 100)\").bind(days).execute(&self.pool).await?;\n\
        if done.rows_affected() == 0 { return Ok(()); }\n}\n}\n}\n";
    assert_eq!(rules(source), Vec::<String>::new());
}
