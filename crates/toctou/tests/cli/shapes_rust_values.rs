//! Values of Rust, end to end: variants of an enum, what is made of an option, files that are
//! known by a field, and messages that are read into a variable.

use crate::common::{Project, Run};

const NONE: [&str; 0] = [];

fn run(source: &str) -> Run {
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run
}

fn rules(source: &str) -> Vec<String> {
    run(source).rules()
}

/// A variant that holds nothing is a constant: the state that was tested, and the one that is set.
#[test]
fn variants_are_constants() {
    let source = |look: &str| {
        format!(
            "use std::collections::HashMap;\nuse std::sync::Arc;\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::RwLock;\n\
             #[derive(PartialEq)]\npub enum Status {{ Open, Claimed }}\npub struct Task {{ status: Status }}\n\
             pub struct Server {{ tasks: Arc<RwLock<HashMap<String, Task>>> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn claim(&self, id: String) -> Result<(), String> {{\n{look}\n\
             if let Some(task) = tasks.get_mut(&id) {{ task.status = Status::Claimed; }}\nOk(())\n}}\n}}\n"
        )
    };
    let test = "let task = tasks.get(&id).ok_or(\"none\")?;\nif task.status != Status::Open { return Err(\"taken\".into()); }";
    let two = format!(
        "{{ let tasks = self.tasks.read().await;\n{test} }}\nlet mut tasks = self.tasks.write().await;"
    );
    assert_eq!(rules(&source(&two)), ["memory-check-then-act"]);
    let one = format!("let mut tasks = self.tasks.write().await;\n{test}");
    assert_eq!(rules(&source(&one)), NONE);
}

/// `args.get("name").and_then(|v| v.as_str())` is the argument, and names the same entry twice.
#[test]
fn what_is_made_of_an_option() {
    let source = |name: &str, body: &str| {
        format!(
            "use std::collections::HashMap;\nuse std::sync::Arc;\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::RwLock;\n\
             pub struct Bank {{ accounts: Arc<RwLock<HashMap<String, i64>>> }}\n#[tool_router]\nimpl Bank {{\n#[tool]\n\
             async fn withdraw(&self, args: serde_json::Value, amount: i64) -> Result<(), String> {{\n{name}\n{body}\nOk(())\n}}\n}}\n"
        )
    };
    let two = "let balance = self.accounts.read().await.get(&name).copied().unwrap_or(0);\n\
        if balance < amount { return Err(\"too little\".into()); }\n\
        self.accounts.write().await.insert(name, balance - amount);";
    let one = "let mut accounts = self.accounts.write().await;\nlet balance = accounts.get(&name).copied().unwrap_or(0);\n\
        if balance < amount { return Err(\"too little\".into()); }\naccounts.insert(name, balance - amount);";
    for name in [
        "let name = args.get(\"name\").and_then(|v| v.as_str()).ok_or(\"name\")?;",
        "let name = args[\"name\"].as_str().map(|s| s.to_string()).unwrap_or_default();",
    ] {
        assert_eq!(
            rules(&source(name, two)),
            ["lock-scope-too-narrow"],
            "{name}"
        );
        assert_eq!(rules(&source(name, one)), NONE, "{name}");
    }
}

/// The path of an open file may well be a field, and what is written may be put together in a
/// temporary one.
#[test]
fn open_files_by_a_field() {
    let source = |door: &str, write: &str| {
        format!(
            "use std::fs::File;\nuse std::path::PathBuf;\nuse rmcp::{{tool, tool_router}};\nuse tempfile::NamedTempFile;\n\
             pub struct Server {{ path: PathBuf }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn add(&self, line: String) -> anyhow::Result<()> {{\n{door}\nlet file = File::open(&self.path)?;\n\
             let mut lines: Vec<String> = serde_json::from_reader(file)?;\nlines.push(line);\n{write}\nOk(())\n}}\n}}\n"
        )
    };
    let door = "let door = File::create(self.path.with_extension(\"lock\"))?;\ndoor.lock()?;";
    let plain =
        "let file = File::create(&self.path)?;\nserde_json::to_writer_pretty(file, &lines)?;";
    let aside = "let mut aside = NamedTempFile::new_in(\"/data\")?;\nserde_json::to_writer(&mut aside, &lines)?;\naside.persist(&self.path)?;";
    for write in [plain, aside] {
        assert_eq!(
            rules(&source("", write)),
            ["file-read-modify-write"],
            "{write}"
        );
        assert_eq!(rules(&source(door, write)), NONE, "{write}");
    }
}

/// Messages that are read into a variable come from clients, one after the other.
#[test]
fn messages_read_into_a_variable() {
    let source = |server: &str, door: &str| {
        format!(
            "use std::io::{{self, BufRead, BufReader}};\nuse serde_json::Value;\n\
             fn handle(line: &str) -> anyhow::Result<String> {{\nlet request: Value = serde_json::from_str(line)?;\n\
             match request[\"method\"].as_str().unwrap_or(\"\") {{\n\"tools/call\" => {{\n{door}\n\
             let old = std::fs::read_to_string(\"notes.txt\")?;\nstd::fs::write(\"notes.txt\", format!(\"{{old}}x\"))?;\nOk(String::new())\n}}\n\
             _ => Ok(String::new()),\n}}\n}}\n{server}"
        )
    };
    let door = "let door = std::fs::File::create(\"notes.lock\")?;\ndoor.lock()?;";
    let local = "fn main() -> anyhow::Result<()> {\nlet mut reader = BufReader::new(io::stdin());\nlet mut line = String::new();\n\
        while reader.read_line(&mut line)? > 0 { println!(\"{}\", handle(line.trim())?); line.clear(); }\nOk(())\n}\n";
    let field = "struct Server { reader: BufReader<io::Stdin> }\nimpl Server {\nfn run(&mut self) -> anyhow::Result<()> {\n\
        let mut line = String::new();\nwhile self.reader.read_line(&mut line)? > 0 { println!(\"{}\", handle(line.trim())?); line.clear(); }\nOk(())\n}\n}\n\
        fn main() -> anyhow::Result<()> { Server { reader: BufReader::new(io::stdin()) }.run() }\n";
    for server in [local, field] {
        let run = run(&source(server, ""));
        assert_eq!(run.rules(), ["file-read-modify-write"], "{server}");
        let json = run.json();
        let finding = &json["findings"][0];
        assert_eq!(finding["entry_points"][0]["kind"], "tool", "{server}");
        // The loop waits for each, so it takes another process.
        assert_eq!(finding["scopes"], serde_json::json!(["cross-process"]));
        assert_eq!(rules(&source(server, door)), NONE, "{server}");
    }
}

/// A tool that changes a row. What is given for `title` goes into the row with this `id`.
fn row(id: &str, title: &str) -> String {
    format!(
        "use rmcp::{{tool, tool_router}};\nuse sqlx::{{Row, SqlitePool}};\nuse uuid::Uuid;\n\
         const UNTITLED: &str = \"untitled\";\npub struct Server {{ pool: SqlitePool }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         async fn rename(&self, id: String, sent: Option<String>) -> anyhow::Result<()> {{\n\
         let row = sqlx::query(\"SELECT title FROM notes WHERE id = $1\").bind(&id).fetch_one(&self.pool).await?;\n\
         let old: String = row.try_get(\"title\")?;\nprintln!(\"{{old}}\");\nlet id = {id};\nlet title = {title};\n\
         sqlx::query(\"UPDATE notes SET title = $1 WHERE id = $2\").bind(&title).bind(&id).execute(&self.pool).await?;\nOk(())\n}}\n}}\n"
    )
}

/// Where nothing was sent, what was there is written back.
#[test]
fn what_was_sent_or_else_what_was_there() {
    for title in [
        "sent.unwrap_or(old)",
        "sent.as_deref().unwrap_or(&old)",
        "sent.unwrap_or_else(|| old.clone())",
    ] {
        assert_eq!(rules(&row("id", title)), ["db-lost-update"], "{title}");
    }
    for title in [
        "sent.unwrap_or(UNTITLED.to_string())",
        "sent.unwrap_or_default()",
    ] {
        assert_eq!(rules(&row("id", title)), NONE, "{title}");
    }
}

/// An id that is read from its text is the same id.
#[test]
fn an_id_that_was_a_text() {
    let kept = "sent.unwrap_or(old)";
    let parsed = "Uuid::parse_str(&id)?.to_string()";
    assert_eq!(rules(&row(parsed, kept)), ["db-lost-update"]);
    assert_eq!(rules(&row("Uuid::new_v4().to_string()", kept)), NONE);
}
