//! Shapes of Rust servers, end to end: copies of files that structs are made with, lists that are
//! searched or full, entries that are changed in place, messages that tasks take along.

use crate::common::Project;

fn rules(source: &str) -> Vec<String> {
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

const NONE: [&str; 0] = [];

/// A store that is made of a file when the server starts, and `change` by a tool.
fn kept(make: &str, change: &str) -> String {
    format!(
        "use std::path::PathBuf;\nuse std::sync::Arc;\nuse tokio::sync::RwLock;\nuse rmcp::{{ServiceExt, tool, tool_router}};\n\
         pub struct Store {{ path: PathBuf, salt: String, notes: RwLock<Vec<String>> }}\n\
         impl Store {{\n{make}\n\
         async fn change(&self, text: String) -> anyhow::Result<()> {{\n{change}\nOk(())\n}}\n}}\n\
         pub struct Server {{ store: Arc<Store> }}\n\
         #[tool_router]\nimpl Server {{\n#[tool]\nasync fn add(&self, text: String) -> anyhow::Result<()> {{\n\
         self.store.change(text).await\n}}\n}}\n\
         #[tokio::main]\nasync fn main() -> anyhow::Result<()> {{\n\
         let server = Server {{ store: Arc::new(Store::open(PathBuf::from(\"notes.json\"))?) }};\n\
         server.serve(rmcp::transport::stdio()).await?;\nOk(())\n}}\n"
    )
}

#[test]
fn what_a_struct_is_made_with_is_kept() {
    let open = "fn open(path: PathBuf) -> anyhow::Result<Self> {\nlet text = std::fs::read_to_string(&path)?;\n\
        let salt = text.clone();\nlet notes = serde_json::from_str(&text)?;\n\
        Ok(Self { path, salt, notes: RwLock::new(notes) })\n}";
    let save = "let mut notes = self.notes.write().await;\nnotes.push(text);\n\
        tokio::fs::write(&self.path, serde_json::to_string(&*notes)?).await?;";
    assert_eq!(rules(&kept(open, save)), ["file-read-modify-write"]);
    // Made by another function, of what it is given.
    let given = "fn open(path: PathBuf) -> anyhow::Result<Self> {\nlet text = std::fs::read_to_string(&path)?;\n\
        Ok(Self::with(path, serde_json::from_str(&text)?))\n}\n\
        fn with(path: PathBuf, notes: Vec<String>) -> Self {\nSelf { path, salt: String::new(), notes: RwLock::new(notes) }\n}";
    assert_eq!(rules(&kept(given, save)), ["file-read-modify-write"]);
    // Another file; and what no call changes is the same for everybody.
    let elsewhere = "let mut notes = self.notes.write().await;\nnotes.push(text);\n\
        tokio::fs::write(\"copy.json\", serde_json::to_string(&*notes)?).await?;";
    let same = "tokio::fs::write(&self.path, format!(\"{}{text}\", self.salt)).await?;";
    for change in [elsewhere, same] {
        assert_eq!(rules(&kept(open, change)), NONE, "{change}");
    }
}

/// A store that is made empty, and filled by `fill` before clients are let in.
fn filled(fill: &str) -> String {
    let open = "fn open(path: PathBuf) -> anyhow::Result<Self> {\n\
        Ok(Self { path, salt: String::new(), notes: RwLock::new(Vec::new()) })\n}\n\
        async fn fill(&self) -> anyhow::Result<()> {\nlet text = std::fs::read_to_string(&self.path)?;\n\
        let loaded: Vec<String> = serde_json::from_str(&text)?;\nFILL\nOk(())\n}";
    let save = "let mut notes = self.notes.write().await;\nnotes.push(text);\n\
        tokio::fs::write(&self.path, serde_json::to_string(&*notes)?).await?;";
    kept(&open.replace("FILL", fill), save).replace(
        "server.serve(",
        "server.store.fill().await?;\nserver.serve(",
    )
}

#[test]
fn what_is_put_to_an_empty_list_is_kept() {
    for fill in [
        "let mut notes = self.notes.write().await;\nnotes.extend(loaded);",
        "*self.notes.write().await = loaded;",
    ] {
        assert_eq!(rules(&filled(fill)), ["file-read-modify-write"], "{fill}");
    }
    // How many there were is told, and nothing is kept of them.
    let told = "println!(\"{}\", loaded.len());";
    assert_eq!(rules(&filled(told)), NONE);
}

/// A process number keeps processes apart, and the lock the calls of one.
#[test]
fn a_temporary_file_of_this_process() {
    let open = "fn open(path: PathBuf) -> anyhow::Result<Self> {\n\
        Ok(Self { path, salt: String::new(), notes: RwLock::new(Vec::new()) })\n}";
    let save = |name: &str| {
        format!(
            "let mut notes = self.notes.write().await;\nnotes.push(text);\n\
             let to = self.path.with_extension({name});\nstd::fs::write(&to, serde_json::to_string(&*notes)?)?;\n\
             std::fs::rename(&to, &self.path)?;"
        )
    };
    let own = save("format!(\"{}.tmp\", std::process::id())");
    assert_eq!(rules(&kept(open, &own)), NONE);
    assert_eq!(rules(&kept(open, &save("\"tmp\""))), ["shared-temp-path"]);
}

/// A tool on shared lists and tables.
fn tool(body: &str) -> String {
    format!(
        "use std::collections::HashMap;\nuse std::sync::Arc;\nuse tokio::sync::RwLock;\nuse rmcp::{{tool, tool_router}};\n\
         #[derive(Clone)]\npub struct Task {{ owner: String }}\n\
         pub struct Server {{ list: Arc<RwLock<Vec<Task>>>, tasks: Arc<RwLock<HashMap<String, Task>>> }}\n\
         async fn work() {{ tokio::time::sleep(std::time::Duration::from_secs(1)).await }}\n\
         #[tool_router]\nimpl Server {{\n#[tool]\nasync fn take(&self, id: String, who: String) -> anyhow::Result<()> {{\n\
         {body}\nOk(())\n}}\n}}\n"
    )
}

#[test]
fn a_list_of_structs_that_is_full_or_has_it_already() {
    let add = "work().await;\nself.list.write().await.push(Task { owner: who });";
    for test in [
        "if self.list.read().await.len() >= 10 { anyhow::bail!(\"full\"); }",
        "if self.list.read().await.iter().any(|t| t.owner == who) { anyhow::bail!(\"there\"); }",
        "let old = self.list.read().await.iter().find(|t| t.owner == who).cloned();\n\
         if old.is_some() { anyhow::bail!(\"there\"); }",
    ] {
        assert_eq!(rules(&tool(&format!("{test}\n{add}"))).len(), 1, "{test}");
        let held = test.replace("self.list.read().await", "list");
        let held = format!(
            "let mut list = self.list.write().await;\n{held}\nwork().await;\nlist.push(Task {{ owner: who }});"
        );
        assert_eq!(rules(&tool(&held)), NONE, "{held}");
    }
}

/// Under a name of its own it is one more all the same.
#[test]
fn a_table_that_is_full() {
    let test = "if self.tasks.read().await.len() >= 10 { anyhow::bail!(\"full\"); }\nwork().await;";
    let add =
        "self.tasks.write().await.insert(uuid::Uuid::new_v4().to_string(), Task { owner: who });";
    assert_eq!(rules(&tool(&format!("{test}\n{add}"))).len(), 1);
    assert_eq!(rules(&tool(add)), NONE);
    // Another one was looked for.
    let other = "if self.tasks.read().await.contains_key(&id) { return Ok(()); }\nwork().await;";
    assert_eq!(rules(&tool(&format!("{other}\n{add}"))), NONE);
    // The same once more.
    let twice = format!(
        "let name = uuid::Uuid::new_v4().to_string();\n{test}\n\
         self.tasks.write().await.insert(name.clone(), Task {{ owner: who.clone() }});\nwork().await;\n\
         self.tasks.write().await.insert(name, Task {{ owner: who }});"
    );
    assert_eq!(rules(&tool(&twice)).len(), 1);
}

#[test]
fn an_attribute_that_was_looked_at_in_a_copy() {
    let look = "let task = self.tasks.read().await.get(&id).cloned();\n\
        let Some(task) = task else { anyhow::bail!(\"none\") };\n\
        if !task.owner.is_empty() { anyhow::bail!(\"taken\"); }\nwork().await;\n\
        let mut tasks = self.tasks.write().await;";
    let set = "if let Some(task) = tasks.get_mut(&id) { task.owner = who; }";
    assert_eq!(rules(&tool(&format!("{look}\n{set}"))).len(), 1);
    let again = "if let Some(task) = tasks.get_mut(&id) {\n\
        if !task.owner.is_empty() { anyhow::bail!(\"taken\"); }\ntask.owner = who;\n}";
    assert_eq!(rules(&tool(&format!("{look}\n{again}"))), NONE);
}

/// A server that reads messages itself, and what it does with each.
fn listening(each: &str) -> String {
    format!(
        "use std::collections::HashMap;\nuse std::sync::Arc;\nuse serde_json::{{Value, json}};\nuse tokio::io::{{AsyncBufReadExt, BufReader}};\nuse tokio::sync::RwLock;\n\
         pub struct State {{ counts: RwLock<HashMap<String, u64>> }}\n\
         async fn handle(state: &State, message: Value) -> Value {{\nmatch message[\"method\"].as_str() {{\n\
         Some(\"tools/call\") => add(state, message[\"params\"][\"name\"].to_string()).await,\n_ => json!({{}}),\n}}\n}}\n\
         async fn add(state: &State, name: String) -> Value {{\n\
         let old = state.counts.read().await.get(&name).copied().unwrap_or(0);\n\
         tokio::time::sleep(std::time::Duration::from_secs(1)).await;\n\
         state.counts.write().await.insert(name, old + 1);\njson!({{}})\n}}\n\
         #[tokio::main]\nasync fn main() -> anyhow::Result<()> {{\n\
         let state = Arc::new(State {{ counts: RwLock::new(HashMap::new()) }});\n\
         let mut lines = BufReader::new(tokio::io::stdin()).lines();\n\
         while let Some(line) = lines.next_line().await? {{\n\
         let message: Value = serde_json::from_str(&line)?;\nlet state = state.clone();\n{each}\n}}\nOk(())\n}}\n"
    )
}

#[test]
fn a_task_for_each_message_is_a_handler() {
    let block = "tokio::spawn(async move { println!(\"{}\", handle(&state, message).await); });";
    let call = "tokio::spawn(handle(state, message));";
    assert_eq!(rules(&listening(block)).len(), 1);
    assert_eq!(rules(&listening(call)).len(), 1);
    // One after the other.
    let waits = "println!(\"{}\", handle(&state, message).await);";
    assert_eq!(rules(&listening(waits)), NONE);
}

/// What a framework hands to a handler has the fields of what it holds.
#[test]
fn state_that_a_framework_hands_out() {
    let route = |of: &str, wrapper: &str| {
        format!(
            "use std::collections::HashMap;\nuse std::sync::Mutex;\nuse actix_web::{{post, web}};\n{of}\
             pub struct App {{ counts: Mutex<HashMap<String, u64>> }}\n\
             async fn work() {{ tokio::time::sleep(std::time::Duration::from_secs(1)).await }}\n\
             #[post(\"/add\")]\nasync fn add(app: {wrapper}<App>, name: String) {{\n\
             let old = *app.counts.lock().unwrap().get(&name).unwrap_or(&0);\nwork().await;\n\
             app.counts.lock().unwrap().insert(name, old + 1);\n}}\n"
        )
    };
    assert_eq!(rules(&route("", "web::Data")).len(), 1);
    // A type of the program's own, which holds something else.
    let own = "pub struct Data<T> { of: T }\n";
    assert_eq!(rules(&route(own, "Data")), NONE);
}

/// What was there is put back because the file system has failed: no other call makes it fail.
/// That what was written reads otherwise, though, can be another call's doing.
#[test]
fn a_backup_that_is_put_back() {
    let save = |test: &str| {
        format!(
            "use std::fs;\nuse std::path::PathBuf;\nuse rmcp::{{tool, tool_router}};\n\
             pub struct Server {{ path: PathBuf }}\n\
             #[tool_router]\nimpl Server {{\n#[tool]\nasync fn save(&self, text: String) -> anyhow::Result<()> {{\n\
             let backup = fs::read_to_string(&self.path)?;\n{test} {{\n\
             fs::write(&self.path, &backup)?;\nanyhow::bail!(\"not saved\");\n}}\nOk(())\n}}\n}}\n"
        )
    };
    for test in [
        "if let Err(e) = fs::write(&self.path, &text)",
        "if let Err(e) = tokio::fs::write(&self.path, &text).await",
        "fs::write(&self.path, &text)?;\nif let Err(e) = fs::read_to_string(&self.path)",
    ] {
        assert_eq!(rules(&save(test)), NONE, "{test}");
    }
    let seen = "fs::write(&self.path, &text)?;\nif fs::read_to_string(&self.path)? != text";
    assert_eq!(rules(&save(seen)), ["file-read-modify-write"]);
}
