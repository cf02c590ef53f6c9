//! Shapes of Rust servers, end to end: what tasks do that a request starts, records that are put
//! back under their own key, methods that a trait brings along, libraries.

use crate::common::Project;

fn seen(source: &str, persona: &str) -> Vec<String> {
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run(&format!(
        "scan src/main.rs --no-config --output json --persona {persona}"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

fn rules(source: &str) -> Vec<String> {
    seen(source, "regular")
}

const NONE: [&str; 0] = [];

/// A route that starts `work` in a way of its own, and a job that two can take.
fn started(start: &str, statement: &str) -> String {
    format!(
        "use axum::{{Json, Router, routing::post}};\nuse rusqlite::{{Connection, params}};\n\
         fn work(id: &str) -> anyhow::Result<()> {{\nlet db = Connection::open(\"jobs.db\")?;\n\
         let state: String = db.query_row(\"SELECT state FROM jobs WHERE id = ?1\", params![id], |r| r.get(0))?;\n\
         if state != \"new\" {{ return Ok(()); }}\n{statement}\nOk(())\n}}\n\
         fn in_background<F>(body: F) where F: FnOnce() -> anyhow::Result<()> + Send + 'static {{\n\
         tokio::spawn(async move {{ one_by_one(body).await }});\n}}\n\
         async fn one_by_one<F>(body: F) where F: FnOnce() -> anyhow::Result<()> + Send + 'static {{\n\
         let _ = tokio::task::spawn_blocking(body).await;\n}}\n\
         async fn begin(Json(id): Json<String>) {{ {start} }}\n\
         pub fn app() -> Router {{ Router::new().route(\"/begin\", post(begin)) }}\n"
    )
}

#[test]
fn a_task_that_a_request_starts_is_as_many_as_requests() {
    let blind = "db.execute(\"UPDATE jobs SET state = 'taken' WHERE id = ?1\", params![id])?;";
    let asks = "db.execute(\"UPDATE jobs SET state = 'taken' WHERE id = ?1 AND state = 'new'\", params![id])?;";
    for start in [
        "tokio::spawn(async move { work(&id) });",
        "std::thread::spawn(move || work(&id));",
        "in_background(move || work(&id));",
    ] {
        assert_eq!(
            rules(&started(start, blind)),
            ["db-check-then-write"],
            "{start}"
        );
        assert_eq!(rules(&started(start, asks)), NONE, "{start}");
    }
}

/// Nobody else does what the one task does that is started with the server.
#[test]
fn a_task_that_runs_once_has_nobody_beside_it() {
    let source = "use std::sync::Arc;\nuse axum::{Router, routing::get};\nuse tokio::sync::RwLock;\n\
        struct Scaler { size: RwLock<u64> }\nimpl Scaler {\nasync fn look(&self) {\n\
        let size = *self.size.read().await;\nlet wanted = measure(size).await;\n*self.size.write().await = wanted;\n}\n}\n\
        async fn measure(size: u64) -> u64 { size + 1 }\n\
        pub async fn start(scaler: Arc<Scaler>) {\ntokio::spawn(async move { loop { scaler.look().await; } });\n}\n\
        async fn health() -> String { String::new() }\n\
        pub fn app() -> Router { Router::new().route(\"/health\", get(health)) }\n";
    assert_eq!(rules(source), NONE);
}

/// A store with `get` and `put`, and a tool that uses them.
fn store(fields: &str, methods: &str, tool: &str) -> String {
    format!(
        "use std::collections::HashMap;\nuse std::path::PathBuf;\nuse std::sync::{{Arc, Mutex}};\nuse rmcp::{{tool, tool_router}};\n\
         #[derive(Clone)]\npub struct Task {{ id: String, state: String }}\n\
         pub struct Store {{ {fields} }}\nimpl Store {{\n{methods}\n}}\n\
         pub struct Server {{ store: Arc<Store> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         async fn close(&self, id: String) -> anyhow::Result<()> {{\n{tool}\nOk(())\n}}\n}}\n"
    )
}

#[test]
fn a_record_that_is_put_back_under_its_own_key() {
    let fields = "tasks: Mutex<HashMap<String, Task>>";
    let methods = "fn get(&self, id: &str) -> Option<Task> { self.tasks.lock().unwrap().get(id).cloned() }\n\
        fn put(&self, task: Task) { self.tasks.lock().unwrap().insert(task.id.clone(), task); }\n\
        fn close(&self, id: &str) { if let Some(task) = self.tasks.lock().unwrap().get_mut(id) { task.state = \"closed\".to_string(); } }";
    let apart = "let mut task = self.store.get(&id).ok_or(anyhow::anyhow!(\"none\"))?;\n\
        task.state = \"closed\".to_string();\nself.store.put(task);";
    assert_eq!(
        rules(&store(fields, methods, apart)),
        ["lock-scope-too-narrow"]
    );
    assert_eq!(
        rules(&store(fields, methods, "self.store.close(&id);")),
        NONE
    );
    // Another one than the one that was read.
    let made = "let task = self.store.get(&id).ok_or(anyhow::anyhow!(\"none\"))?;\n\
        self.store.put(Task { id: format!(\"{}-copy\", uuid::Uuid::new_v4()), state: task.state });";
    assert_eq!(rules(&store(fields, methods, made)), NONE);
}

/// That the writer reads the rest of the file anew does not make the record any newer.
#[test]
fn a_record_that_is_handed_back_to_a_careful_writer() {
    let fields = "path: PathBuf, door: std::fs::File";
    let methods = "fn load(&self) -> anyhow::Result<Vec<Task>> { Ok(serde_json::from_str(&std::fs::read_to_string(&self.path)?)?) }\n\
        fn get(&self, id: &str) -> anyhow::Result<Option<Task>> { Ok(self.load()?.into_iter().find(|t| t.id == id)) }\n\
        fn put(&self, task: Task) -> anyhow::Result<()> {\nself.door.lock()?;\nlet mut tasks = self.load()?;\n\
        tasks.retain(|t| t.id != task.id);\ntasks.push(task);\nstd::fs::write(&self.path, serde_json::to_string(&tasks)?)?;\n\
        self.door.unlock()?;\nOk(())\n}";
    let back = "let mut task = self.store.get(&id)?.ok_or(anyhow::anyhow!(\"none\"))?;\n\
        task.state = \"closed\".to_string();\nself.store.put(task)?;";
    assert_eq!(
        rules(&store(fields, methods, back)),
        ["lock-scope-too-narrow"]
    );
    let inside = "self.store.close(&id)?;";
    let close = "fn close(&self, id: &str) -> anyhow::Result<()> {\nself.door.lock()?;\nlet mut tasks = self.load()?;\n\
        for task in tasks.iter_mut() { if task.id == id { task.state = \"closed\".to_string(); } }\n\
        std::fs::write(&self.path, serde_json::to_string(&tasks)?)?;\nself.door.unlock()?;\nOk(())\n}";
    let methods = format!("{methods}\n{close}");
    assert_eq!(rules(&store(fields, &methods, inside)), NONE);
}

#[test]
fn what_a_trait_says_for_all_who_have_it() {
    let source = |commit: &str| {
        format!(
            "use std::path::PathBuf;\nuse std::sync::Arc;\nuse rmcp::{{tool, tool_router}};\n\
             pub trait Notes: Send + Sync {{\nfn load(&self) -> anyhow::Result<String>;\nfn save(&self, text: String) -> anyhow::Result<()>;\n\
             fn append(&self, line: &str) -> anyhow::Result<()> {{ {commit} }}\n}}\n\
             pub struct InFile {{ path: PathBuf }}\nimpl Notes for InFile {{\n\
             fn load(&self) -> anyhow::Result<String> {{ Ok(std::fs::read_to_string(&self.path)?) }}\n\
             fn save(&self, text: String) -> anyhow::Result<()> {{ Ok(std::fs::write(&self.path, text)?) }}\n}}\n\
             pub struct Server {{ notes: Arc<dyn Notes> }}\nimpl Server {{ pub fn new(path: PathBuf) -> Self {{ Self {{ notes: Arc::new(InFile {{ path }}) }} }} }}\n\
             #[tool_router]\nimpl Server {{\n#[tool]\nasync fn note(&self, line: String) -> anyhow::Result<()> {{ self.notes.append(&line) }}\n}}\n"
        )
    };
    let changes = "let old = self.load()?; self.save(format!(\"{old}{line}\"))";
    assert_eq!(rules(&source(changes)), ["file-read-modify-write"]);
    assert_eq!(rules(&source("self.save(line.to_string())")), NONE);
}

/// Whether a path is inside of one of several folders is asked for each of them.
#[test]
fn a_path_that_is_held_against_each_of_several_folders() {
    let source = |opened: &str| {
        format!(
            "use std::path::{{Path, PathBuf}};\nuse rmcp::{{tool, tool_router}};\npub struct Server {{ roots: Vec<PathBuf> }}\n\
             fn inside(roots: &[PathBuf], path: &Path) -> anyhow::Result<PathBuf> {{\nlet real = path.canonicalize()?;\n\
             if roots.iter().any(|root| real.starts_with(root)) {{ Ok(real) }} else {{ Err(anyhow::anyhow!(\"outside\")) }}\n}}\n\
             #[tool_router]\nimpl Server {{\n#[tool]\nasync fn show(&self, path: String) -> anyhow::Result<String> {{\n\
             inside(&self.roots, Path::new(&path))?;\nOk(std::fs::read_to_string({opened})?)\n}}\n}}\n"
        )
    };
    assert_eq!(seen(&source("&path"), "pedantic"), ["path-check-then-open"]);
    assert_eq!(seen(&source("\"other.txt\""), "pedantic"), NONE);
}

#[test]
fn a_table_of_vectors_has_no_transactions() {
    let source = |put: &str| {
        format!(
            "use rmcp::{{tool, tool_router}};\npub struct Server {{ conn: lancedb::Connection }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn remember(&self, key: String, batch: RecordBatch) -> anyhow::Result<()> {{\n\
             let table = self.conn.open_table(\"facts\").execute().await?;\n{put}\nOk(())\n}}\n}}\n"
        )
    };
    let counted = "if table.count_rows(Some(format!(\"key = '{key}'\"))).await? > 0 { return Ok(()); }\n\
        table.add(batch).execute().await?;";
    assert_eq!(rules(&source(counted)), ["db-check-then-write"]);
    let merged = "table.merge_insert(&[\"key\"]).execute(batch).await?;";
    assert_eq!(rules(&source(merged)), NONE);
}

#[test]
fn a_value_that_is_replaced_whole() {
    let source = |change: &str| {
        format!(
            "use std::sync::Arc;\nuse arc_swap::ArcSwap;\nuse rmcp::{{tool, tool_router}};\n#[derive(Clone)]\npub struct Config {{ names: Vec<String> }}\n\
             pub struct Server {{ config: ArcSwap<Config> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn allow(&self, name: String) -> anyhow::Result<()> {{\n{change}\nOk(())\n}}\n}}\n"
        )
    };
    let apart = "let mut next = (**self.config.load()).clone();\nnext.names.push(name);\nself.config.store(Arc::new(next));";
    assert_eq!(rules(&source(apart)), ["session-lost-update"]);
    let again = "self.config.rcu(|old| { let mut next = (**old).clone(); next.names.push(name.clone()); next });";
    assert_eq!(rules(&source(again)), NONE);
}

#[test]
fn sqlite_from_asynchronous_code() {
    let source = |begin: &str, end: &str| {
        format!(
            "use libsql::{{Connection, params}};\nuse rmcp::{{tool, tool_router}};\npub struct Server {{ conn: Connection }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn pay(&self, id: String, sum: i64) -> anyhow::Result<()> {{\n{begin}\n\
             let mut rows = tx.query(\"SELECT balance FROM accounts WHERE id = ?1\", params![id.clone()]).await?;\n\
             let balance: i64 = rows.next().await?.unwrap().get(0)?;\n\
             tx.execute(\"UPDATE accounts SET balance = ?1 WHERE id = ?2\", params![balance - sum, id]).await?;\n{end}\nOk(())\n}}\n}}\n"
        )
    };
    assert_eq!(
        rules(&source("let tx = &self.conn;", "")),
        ["db-lost-update"]
    );
    assert_eq!(
        rules(&source(
            "let tx = libsql::Builder::new_local(\"a.db\").build().await?.connect()?.transaction().await?;",
            "tx.commit().await?;"
        )),
        NONE
    );
}

/// One statement is one change, whatever is asked of its result.
#[test]
fn a_statement_that_was_run_is_not_run_again() {
    let source = "use rmcp::{tool, tool_router};\nuse rusqlite::{Connection, params};\npub struct Server;\n#[tool_router]\nimpl Server {\n#[tool]\n\
        async fn count(&self, name: String) -> Result<(), String> {\nlet db = Connection::open(\"a.db\").map_err(|e| e.to_string())?;\n\
        db.execute(\"UPDATE counters SET n = n + 1 WHERE name = ?1\", params![name]).map_err(|e| e.to_string())?;\nOk(())\n}\n}\n";
    assert_eq!(rules(source), NONE);
}

/// Handlers that are methods of a trait.
#[test]
fn handlers_by_trait() {
    let body = "let old = tokio::fs::read_to_string(\"notes.txt\").await?;\n\
        tokio::fs::write(\"notes.txt\", format!(\"{old}{text}\")).await?;";
    let source = |head: &str, method: &str| {
        format!(
            "{head}\npub struct Add;\nasync fn add(text: String) -> anyhow::Result<()> {{\n{body}\nOk(())\n}}\n{method}\n"
        )
    };
    for (head, method) in [
        (
            "use pmcp::{ToolHandler, RequestHandlerExtra};",
            "#[async_trait]\nimpl ToolHandler for Add {\nasync fn handle(&self, args: Value, _: RequestHandlerExtra) -> pmcp::Result<Value> { add(args.to_string()).await?; Ok(args) }\n}",
        ),
        (
            "use tower::Service;",
            "impl Service<Request> for Add {\nfn call(&mut self, request: Request) -> Self::Future { Box::pin(async move { add(request.body).await }) }\n}",
        ),
    ] {
        let project = Project::new(&[("src/main.rs", &source(head, method))]);
        let run = project.run("scan src/main.rs --no-config --output json");
        assert_eq!(run.rules(), ["file-read-modify-write"], "{head}");
        let kind = &run.json()["findings"][0]["entry_points"][0]["kind"];
        assert!(kind == "tool" || kind == "route", "{}", run.stdout);
    }
}

/// What is read into a variable, or through what stands round an open file, is what the file holds.
#[test]
fn files_that_are_open() {
    let source = |read: &str, write: &str, door: &str| {
        format!(
            "use std::fs::File;\nuse std::io::{{BufReader, BufWriter, Read, Write}};\nuse rmcp::{{tool, tool_router}};\n\
             #[derive(Serialize, Deserialize)]\npub struct Notes {{ lines: Vec<String> }}\npub struct Server;\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn add(&self, line: String) -> anyhow::Result<()> {{\n{door}\n{read}\nnotes.lines.push(line);\n{write}\nOk(())\n}}\n}}\n"
        )
    };
    let into = "let mut text = String::new();\nFile::open(\"notes.json\")?.read_to_string(&mut text)?;\n\
        let mut notes: Notes = serde_json::from_str(&text)?;";
    let through = "let mut notes: Notes = serde_json::from_reader(BufReader::new(File::open(\"notes.json\")?))?;";
    let all = "let mut file = File::create(\"notes.json\")?;\nfile.write_all(serde_json::to_string(&notes)?.as_bytes())?;";
    let out =
        "serde_json::to_writer_pretty(BufWriter::new(File::create(\"notes.json\")?), &notes)?;";
    let door = "let door = File::create(\"notes.lock\")?;\ndoor.lock()?;";
    for (read, write) in [(into, all), (through, out), (into, out), (through, all)] {
        assert_eq!(
            rules(&source(read, write, "")),
            ["file-read-modify-write"],
            "{read}\n{write}"
        );
        assert_eq!(rules(&source(read, write, door)), NONE, "{read}\n{write}");
    }
}

/// Calls run in parallel: that nothing is waited for between the look and the mark keeps nobody out.
#[test]
fn a_flag_that_is_looked_at_and_then_set() {
    let source = |take: &str| {
        format!(
            "use std::sync::atomic::{{AtomicBool, Ordering}};\nuse rmcp::{{tool, tool_router}};\n\
             pub struct Server {{ indexing: AtomicBool }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn index(&self) -> anyhow::Result<()> {{\n{take}\n\
             tokio::fs::write(\"index.txt\", \"\").await.ok();\nself.indexing.store(false, Ordering::SeqCst);\nOk(())\n}}\n}}\n"
        )
    };
    let two = "if self.indexing.load(Ordering::SeqCst) { return Ok(()); }\nself.indexing.store(true, Ordering::SeqCst);";
    assert_eq!(rules(&source(two)), ["memory-check-then-act"]);
    let one = "if self.indexing.swap(true, Ordering::SeqCst) { return Ok(()); }";
    assert_eq!(rules(&source(one)), NONE);
}

/// A tool and a command of the same program that both save, each by its own way.
fn tool_and_command(tool: &str) -> String {
    format!(
        "use std::sync::Arc;\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::Mutex;\n\
         pub struct Notes;\nimpl Notes {{\npub async fn add(&self, text: &str) -> anyhow::Result<()> {{\n\
         let old = tokio::fs::read_to_string(\"notes.txt\").await?;\n\
         tokio::fs::write(\"notes.txt\", format!(\"{{old}}{{text}}\")).await?;\nOk(())\n}}\n}}\n\
         pub async fn command(notes: &mut Notes, text: String) -> anyhow::Result<()> {{ notes.add(&text).await }}\n\
         pub struct Server {{ notes: Arc<Mutex<Notes>> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         async fn add(&self, text: String) -> anyhow::Result<()> {{\n{tool}\n}}\n}}\n"
    )
}

/// A command is a process of its own: that it takes no lock of this one says nothing about calls.
#[test]
fn a_command_that_takes_no_lock_is_no_other_call() {
    let locked = "let notes = self.notes.lock().await;\nnotes.add(&text).await";
    assert_eq!(
        rules(&tool_and_command(locked)),
        ["process-lock-on-shared-resource"]
    );
    let open = "Notes.add(&text).await";
    assert_eq!(rules(&tool_and_command(open)), ["file-read-modify-write"]);
}

/// A tool whose work is chosen by name, and a lock that is taken where `holds` says so.
fn locked_by_name(holds: &str) -> String {
    format!(
        "use std::sync::Mutex;\nuse rmcp::{{tool, tool_router}};\n\
         const WRITERS: &[&str] = &[\"add\", \"drop\"];\n\
         pub struct Server {{ door: std::fs::File }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         fn run(&self, name: String, text: String, busy: bool) -> anyhow::Result<()> {{\n\
         let _guard = if {holds} {{\nmatch self.lock_file() {{ Ok(g) => Some(g), Err(e) => return Err(e) }}\n}} else {{ None }};\n\
         match name.as_str() {{ \"add\" => self.add(&text), _ => Ok(()) }}\n}}\n}}\nimpl Server {{\n\
         fn lock_file(&self) -> anyhow::Result<std::fs::File> {{\nlet file = std::fs::File::create(\"lock\")?;\nfile.lock()?;\nOk(file)\n}}\n\
         fn add(&self, text: &str) -> anyhow::Result<()> {{\nlet old = std::fs::read_to_string(\"notes.txt\")?;\n\
         std::fs::write(\"notes.txt\", format!(\"{{old}}{{text}}\"))?;\nOk(())\n}}\n}}\n"
    )
}

/// Who wrote the list has said what needs the lock.
#[test]
fn a_lock_that_is_taken_for_the_names_of_a_list() {
    let listed = locked_by_name("WRITERS.contains(&name.as_str())");
    assert_eq!(rules(&listed), NONE);
    assert_eq!(seen(&listed, "pedantic"), ["file-read-modify-write"]);
    assert_eq!(rules(&locked_by_name("busy")), ["file-read-modify-write"]);
    // Who is at work is no list of what needs the lock.
    let changed = listed.replace("let _guard", "WRITERS.push(name.as_str());\nlet _guard");
    assert_eq!(rules(&changed), ["file-read-modify-write"]);
}
