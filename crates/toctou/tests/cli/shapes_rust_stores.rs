//! Shapes of Rust servers, end to end: guards that are handed on, caches, stores
//! behind cells and libraries, copies that are saved later, names of files.

use crate::common::Project;

fn rules(source: &str) -> Vec<String> {
    let project = Project::new(&[("src/main.rs", source)]);
    let run = project.run("scan src/main.rs --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

/// A server whose `save` reads a file, changes it and writes it, under what `open` gives back.
fn under(open: &str) -> String {
    format!(
        "use std::fs::File;\nuse std::path::PathBuf;\nuse std::sync::{{Mutex, MutexGuard}};\nuse rmcp::{{tool, tool_router}};\n\
         pub struct Server {{ file: PathBuf, door: Mutex<()> }}\n\
         struct Door<'a> {{ _here: MutexGuard<'a, ()>, _everywhere: File }}\n\
         #[tool_router]\nimpl Server {{\n#[tool]\nfn save(&self, text: String) -> anyhow::Result<()> {{\n\
         let _door = self.open_door()?;\nlet old = std::fs::read_to_string(&self.file)?;\n\
         std::fs::write(&self.file, format!(\"{{old}}{{text}}\"))?;\nOk(())\n}}\n}}\nimpl Server {{\n{open}\n}}\n"
    )
}

#[test]
fn a_guard_inside_of_what_is_returned_is_held() {
    let both = "fn open_door(&self) -> anyhow::Result<Door<'_>> {\n\
        let here = self.door.lock().unwrap();\nlet everywhere = File::create(\"lock\")?;\n\
        everywhere.lock()?;\nOk(Door { _here: here, _everywhere: everywhere })\n}";
    assert_eq!(rules(&under(both)), Vec::<String>::new());
    // By the path of a trait; who gets none chose to go on.
    let path = "fn open_door(&self) -> Option<(MutexGuard<'_, ()>, File)> {\n\
        let here = self.door.lock().unwrap();\nlet file = File::create(\"lock\").ok()?;\n\
        fs4::FileExt::lock(&file).ok()?;\nSome((here, file))\n}";
    assert_eq!(rules(&under(path)), Vec::<String>::new());
    // In this process only.
    let one = "fn open_door(&self) -> anyhow::Result<(MutexGuard<'_, ()>, u32)> {\n\
        let here = self.door.lock().unwrap();\nOk((here, 1))\n}";
    assert_eq!(rules(&under(one)), ["process-lock-on-shared-resource"]);
    // Dropped before it returns.
    let none = "fn open_door(&self) -> anyhow::Result<u32> {\n\
        let here = self.door.lock().unwrap();\ndrop(here);\nOk(1)\n}";
    assert_eq!(rules(&under(none)), ["file-read-modify-write"]);
}

/// A server whose `save` takes what `door` gives it, and then reads a file, changes it and writes it.
fn behind(door: &str) -> String {
    format!(
        "use std::fs::File;\nuse std::sync::{{Mutex, MutexGuard}};\nuse rmcp::{{tool, tool_router}};\n\
         pub struct Server {{ door: Mutex<u32> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         fn save(&self, text: String) -> anyhow::Result<String> {{\n{door}\n\
         let old = std::fs::read_to_string(\"notes.txt\")?;\n\
         std::fs::write(\"notes.txt\", format!(\"{{old}}{{text}}\"))?;\nOk(text)\n}}\n}}\nimpl Server {{\n\
         fn lock_file(&self) -> anyhow::Result<File> {{\nlet file = File::create(\"lock\")?;\nfile.lock()?;\nOk(file)\n}}\n\
         fn poisoned(&self) -> MutexGuard<'_, u32> {{\nmatch self.door.lock() {{ Ok(g) => g, Err(p) => p.into_inner() }}\n}}\n}}\n"
    )
}

#[test]
fn a_guard_that_a_choice_gives_on() {
    for door in [
        "let _g = match self.door.lock() { Ok(g) => g, Err(p) => p.into_inner() };",
        "let _g = match self.door.lock() { Ok(g) => g, Err(e) => return Ok(e.to_string()) };",
        "let _g = match self.door.lock() { Ok(g) => { Some(g) } Err(e) => { return Ok(e.to_string()); } };",
        "let _g = if let Ok(g) = self.door.lock() { g } else { return Ok(text) };",
        "let mut g = match self.door.lock() { Ok(g) => g, Err(p) => p.into_inner() };\n*g += 1;",
        "let _g = self.poisoned();",
    ] {
        assert_eq!(
            rules(&behind(door)),
            ["process-lock-on-shared-resource"],
            "{door}"
        );
    }
    for door in [
        "let _g = match self.lock_file() { Ok(f) => f, Err(e) => return Ok(e.to_string()) };",
        "let f = match self.lock_file() { Ok(f) => f, Err(e) => return Err(e) };\nlet _end = move || drop(f);",
        "let _g = if text.is_empty() { return Ok(text) } else { match self.lock_file() { Ok(f) => Some(f), Err(e) => return Err(e) } };",
    ] {
        assert_eq!(rules(&behind(door)), Vec::<String>::new(), "{door}");
    }
    // What was counted under it is all that is given on, or nothing is.
    for door in [
        "let _n = match self.door.lock() { Ok(g) => *g, Err(_) => 0 };",
        "let _n = match self.lock_file() { Ok(_f) => 1, Err(e) => return Err(e) };",
        "let _ = match self.door.lock() { Ok(g) => g, Err(p) => p.into_inner() };",
        "{ let _g = match self.door.lock() { Ok(g) => g, Err(p) => p.into_inner() }; }",
        "let g = match self.door.lock() { Ok(g) => g, Err(p) => p.into_inner() };\ndrop(g);",
    ] {
        assert_eq!(rules(&behind(door)), ["file-read-modify-write"], "{door}");
    }
}

#[test]
fn a_file_that_the_system_locks() {
    let opened = |lock: &str| {
        under(&format!(
            "fn open_door(&self) -> anyhow::Result<File> {{\nlet file = File::create(\"lock\")?;\n{lock}\nOk(file)\n}}"
        ))
    };
    for lock in [
        "rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;",
        "nix::fcntl::flock(file.as_raw_fd(), nix::fcntl::FlockArg::LockExclusive)?;",
        "if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 { return Err(anyhow::anyhow!(\"busy\")); }",
    ] {
        assert_eq!(rules(&opened(lock)), Vec::<String>::new(), "{lock}");
    }
    // Many have it at once.
    let shared = "rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared)?;";
    assert_eq!(rules(&opened(shared)), ["file-read-modify-write"]);
}

/// A copy of `std::fs` that is a crate: no `fs` stands in its paths.
#[test]
fn a_crate_in_place_of_a_module() {
    let source = |read: &str, write: &str| {
        format!(
            "use rmcp::{{tool, tool_router}};\npub struct Server;\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             fn save(&self, text: String) -> anyhow::Result<()> {{\nlet old = {read}(\"a.txt\")?;\n\
             {write}(\"a.txt\", format!(\"{{old}}{{text}}\"))?;\nOk(())\n}}\n}}\n"
        )
    };
    let by_path = source("fs_err::read_to_string", "fs_err::write");
    assert_eq!(rules(&by_path), ["file-read-modify-write"]);
    let by_name = format!(
        "use fs_err as fs;\n{}",
        source("fs::read_to_string", "fs::write")
    );
    assert_eq!(rules(&by_name), ["file-read-modify-write"]);
}

#[test]
fn a_cache_that_two_calls_fill() {
    let cache = |ty: &str, made: &str| {
        format!(
            "use std::collections::HashMap;\nuse std::sync::Arc;\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::Mutex;\n\
             pub struct Server {{ pages: Mutex<HashMap<String, {ty}>> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn page(&self, url: String) -> anyhow::Result<{ty}> {{\n\
             if let Some(page) = self.pages.lock().await.get(&url) {{ return Ok(page.clone()); }}\n\
             let page = {made};\nself.pages.lock().await.insert(url, page.clone());\nOk(page)\n}}\n}}\n\
             async fn fetch(url: &str) -> anyhow::Result<String> {{ Ok(reqwest::get(url).await?.text().await?) }}\n"
        )
    };
    assert_eq!(
        rules(&cache("String", "fetch(&url).await?")),
        Vec::<String>::new()
    );
    // Two locks for one page keep nobody apart.
    assert_eq!(
        rules(&cache(
            "Arc<Mutex<String>>",
            "Arc::new(Mutex::new(fetch(&url).await?))"
        )),
        ["lock-scope-too-narrow"]
    );
}

#[test]
fn what_is_handed_on_to_be_waited_for_runs() {
    let with = |call: &str| {
        format!(
            "use std::future::Future;\nuse std::path::PathBuf;\nuse std::time::Duration;\nuse rmcp::{{tool, tool_router}};\n\
             pub struct Server {{ file: PathBuf }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn add(&self, text: String) -> anyhow::Result<()> {{\n{call}\n}}\n}}\n\
             async fn bounded<T>(time: Duration, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {{\n\
             tokio::time::timeout(time, work).await?\n}}\n"
        )
    };
    let body = "async { let old = tokio::fs::read_to_string(&self.file).await?;\n\
        tokio::fs::write(&self.file, format!(\"{old}{text}\")).await?; Ok(()) }";
    for call in [
        format!("bounded(Duration::from_secs(1), {body}).await"),
        format!("tokio::time::timeout(Duration::from_secs(1), {body}).await?"),
        format!("let work = {body};\nbounded(Duration::from_secs(1), work).await"),
        format!("let work = {body};\nwork.await"),
    ] {
        assert_eq!(rules(&with(&call)), ["file-read-modify-write"], "{call}");
    }
}

#[test]
fn a_store_behind_a_cell_that_is_set_once() {
    for (ty, get) in [
        (
            "OnceLock<Mutex<HashMap<String, String>>>",
            "STORE.get().unwrap()",
        ),
        (
            "OnceLock<Mutex<HashMap<String, String>>>",
            "STORE.get_or_init(|| Mutex::new(HashMap::new()))",
        ),
        ("LazyLock<Mutex<HashMap<String, String>>>", "STORE"),
    ] {
        let source = format!(
            "use std::collections::HashMap;\nuse std::sync::{{LazyLock, OnceLock}};\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::Mutex;\n\
             static STORE: {ty} = make();\npub struct Server {{}}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn claim(&self, name: String, who: String) -> anyhow::Result<()> {{\n\
             if {get}.lock().await.contains_key(&name) {{ anyhow::bail!(\"taken\"); }}\n\
             {get}.lock().await.insert(name, who);\nOk(())\n}}\n}}\n"
        );
        assert_eq!(rules(&source), ["lock-scope-too-narrow"], "{get}");
    }
}

#[test]
fn a_copy_that_is_saved_after_the_lock() {
    let with = |body: &str| {
        format!(
            "use std::collections::HashMap;\nuse std::path::PathBuf;\nuse rmcp::{{tool, tool_router}};\nuse tokio::sync::{{Mutex, RwLock}};\n\
             pub struct Server {{ map: Mutex<HashMap<String, String>>, list: RwLock<Vec<String>>, file: PathBuf }}\n\
             #[tool_router]\nimpl Server {{\n#[tool]\nasync fn put(&self, key: String, value: String) -> anyhow::Result<()> {{\n{body}\n}}\n}}\n"
        )
    };
    let late = with(
        "let text = { let mut map = self.map.lock().await; map.insert(key, value); serde_json::to_string(&*map)? };\n\
         tokio::fs::write(&self.file, text).await?; Ok(())",
    );
    assert_eq!(rules(&late), ["lock-scope-too-narrow"]);
    let reader = with(
        "self.list.write().await.push(value);\nlet list = self.list.read().await.clone();\n\
         tokio::fs::write(&self.file, serde_json::to_string(&list)?).await?; Ok(())",
    );
    assert_eq!(rules(&reader), ["file-read-modify-write"]);
    let held = with(
        "let mut map = self.map.lock().await; map.insert(key, value);\n\
         tokio::fs::write(&self.file, serde_json::to_string(&*map)?).await?; Ok(())",
    );
    assert_eq!(rules(&held), Vec::<String>::new());
    let other_file = with(
        "let text = serde_json::to_string(&*self.map.lock().await)?;\n\
         tokio::fs::write(self.file.join(key), text).await?; Ok(())",
    );
    assert_eq!(rules(&other_file), Vec::<String>::new());
}

#[test]
fn names_with_a_number_that_nobody_else_gets() {
    let with = |name: &str| {
        format!(
            "use std::path::PathBuf;\nuse std::sync::atomic::{{AtomicU64, Ordering}};\nuse rmcp::{{tool, tool_router}};\n\
             static COUNT: AtomicU64 = AtomicU64::new(0);\npub struct Server {{ file: PathBuf }}\n\
             #[tool_router]\nimpl Server {{\n#[tool]\nfn save(&self, text: String) -> anyhow::Result<()> {{\n\
             let tmp = {name};\nstd::fs::write(&tmp, text)?;\nstd::fs::rename(&tmp, &self.file)?;\nOk(())\n}}\n}}\n"
        )
    };
    let counted = "self.file.with_extension(format!(\"{}.{}\", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))";
    assert_eq!(rules(&with(counted)), Vec::<String>::new());
    assert_eq!(
        rules(&with("self.file.with_extension(\"tmp\")")),
        ["shared-temp-path"]
    );
}

#[test]
fn an_entry_that_a_concurrent_map_keeps_locked() {
    let with = |body: &str| {
        format!(
            "use dashmap::DashMap;\nuse rmcp::{{tool, tool_router}};\npub struct Hits {{ n: u64 }}\n\
             pub struct Server {{ hits: DashMap<String, Hits> }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             async fn hit(&self, key: String) -> anyhow::Result<()> {{\n{body}\nOk(())\n}}\n}}\n"
        )
    };
    let held = "if let Some(mut hits) = self.hits.get_mut(&key) { hits.n += 1; }";
    assert_eq!(rules(&with(held)), Vec::<String>::new());
    let twice = "let n = self.hits.get(&key).map(|h| h.n).unwrap_or(0);\nself.hits.insert(key, Hits { n: n + 1 });";
    assert_eq!(rules(&with(twice)), ["session-lost-update"]);
}

#[test]
fn a_trait_that_is_several_others() {
    let source = "use std::path::PathBuf;\nuse std::sync::Arc;\nuse rmcp::{tool, tool_router};\n\
        pub trait Load { fn load(&self) -> String; }\npub trait Save { fn save(&self, text: String); }\n\
        pub trait Store: Load + Save {}\nimpl<T: Load + Save> Store for T {}\n\
        pub struct Disk { file: PathBuf }\n\
        impl Load for Disk { fn load(&self) -> String { std::fs::read_to_string(&self.file).unwrap() } }\n\
        impl Save for Disk { fn save(&self, text: String) { std::fs::write(&self.file, text).unwrap(); } }\n\
        pub struct Server { store: Arc<dyn Store> }\n#[tool_router]\nimpl Server {\n#[tool]\n\
        async fn add(&self, text: String) { let old = self.store.load(); self.store.save(format!(\"{old}{text}\")); }\n}\n";
    assert_eq!(rules(source), ["file-read-modify-write"]);
}

#[test]
fn stores_that_libraries_keep() {
    let with = |body: &str| {
        format!(
            "use redis::AsyncCommands;\nuse rmcp::{{tool, tool_router}};\n\
             pub struct Server {{ client: redis::Client, pool: deadpool_postgres::Pool, db: sled::Db }}\n\
             #[tool_router]\nimpl Server {{\n#[tool]\nasync fn act(&self, id: String) -> anyhow::Result<()> {{\n{body}\nOk(())\n}}\n}}\n"
        )
    };
    let connect = "let mut con = self.client.get_multiplexed_async_connection().await?;\n";
    let found = |body: &str| rules(&with(body));
    assert_eq!(
        found(&format!(
            "{connect}let n: u64 = con.get(&id).await?;\ncon.set(&id, n + 1).await?;"
        )),
        ["db-lost-update"]
    );
    assert_eq!(
        found(&format!("{connect}con.incr(&id, 1).await?;")),
        Vec::<String>::new()
    );
    let account = |begin: &str, lock: &str, end: &str| {
        format!(
            "let mut client = self.pool.get().await?;\n{begin}\n\
             let row = client.query_one(\"SELECT balance FROM accounts WHERE id = $1{lock}\", &[&id]).await?;\n\
             let balance: i64 = row.get(0);\n\
             client.execute(\"UPDATE accounts SET balance = $2 WHERE id = $1\", &[&id, &(balance - 1)]).await?;\n{end}"
        )
    };
    assert_eq!(found(&account("", "", "")), ["db-lost-update"]);
    assert_eq!(
        found(&account(
            "let client = client.transaction().await?;",
            " FOR UPDATE",
            "client.commit().await?;"
        )),
        Vec::<String>::new()
    );
    assert_eq!(
        found(
            "let n = self.db.get(&id)?.map(parse).unwrap_or(0);\nself.db.insert(&id, encode(n + 1))?;"
        ),
        ["session-lost-update"]
    );
    assert_eq!(
        found("self.db.update_and_fetch(&id, |old| next(old))?;"),
        Vec::<String>::new()
    );
}

#[test]
fn files_that_only_one_call_can_have_made() {
    let with = |body: &str| {
        format!(
            "use std::fs::OpenOptions;\nuse std::io::Write;\nuse std::path::PathBuf;\nuse rmcp::{{tool, tool_router}};\n\
             pub struct Server {{ file: PathBuf }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             fn save(&self, text: String) -> anyhow::Result<()> {{\n{body}\nOk(())\n}}\n}}\n"
        )
    };
    let exclusive = "let tmp = self.file.with_extension(\"tmp\");\n\
        let mut file = OpenOptions::new().write(true).create_new(true).open(&tmp)?;\n\
        file.write_all(text.as_bytes())?;\nstd::fs::rename(&tmp, &self.file)?;";
    assert_eq!(rules(&with(exclusive)), Vec::<String>::new());
    // Another name on every way.
    let timed = "let now = std::time::SystemTime::now().elapsed()?.as_nanos();\n\
        let tmp = if text.is_empty() { self.file.with_extension(format!(\"{now}.e\")) } else { self.file.with_extension(format!(\"{now}\")) };\n\
        std::fs::write(&tmp, text)?;\nstd::fs::rename(&tmp, &self.file)?;";
    assert_eq!(rules(&with(timed)), Vec::<String>::new());
    // Changed in place, it is another path.
    let beside = "let mut meta = self.file.clone();\nmeta.set_extension(\"meta\");\n\
        let old = std::fs::read_to_string(&self.file)?;\nstd::fs::write(&meta, old)?;";
    assert_eq!(rules(&with(beside)), Vec::<String>::new());
}

#[test]
fn a_file_that_is_a_cache() {
    let source = "use std::path::PathBuf;\nuse rmcp::{tool, tool_router};\npub struct Server { folder: PathBuf }\n\
        #[tool_router]\nimpl Server {\n#[tool]\nasync fn page(&self, name: String) -> anyhow::Result<String> {\n\
        let path = self.folder.join(&name);\nif let Ok(page) = tokio::fs::read_to_string(&path).await { return Ok(page); }\n\
        let page = reqwest::get(&name).await?.text().await?;\ntokio::fs::write(&path, &page).await?;\nOk(page)\n}\n}\n";
    assert_eq!(rules(source), Vec::<String>::new());
}

/// A statement of `sqlx` is put together by a chain of any length, and run by its last step. That the
/// program has a method of the same name as that step changes nothing.
#[test]
fn a_long_chain_is_one_statement() {
    let rules = |set: &str, row: &str| {
        let source = format!(
            "use rmcp::{{tool, tool_router}};\nuse sqlx::{{PgPool, Row}};\npub struct Coaches {{ pool: PgPool }}\n\
             impl Coaches {{ async fn fetch_one(&self, id: &str) -> anyhow::Result<String> {{ Ok(id.to_owned()) }} }}\n\
             #[tool_router]\nimpl Coaches {{\n#[tool]\n\
             async fn edit(&self, id: String, user: String, title: Option<String>) -> anyhow::Result<String> {{\n\
             let row = sqlx::query(\"SELECT title, tags, kind FROM coaches WHERE id = $1 AND owner = $2\")\
             .bind(&id).bind(user.to_string()).fetch_one(&self.pool).await?;\n\
             let old: String = row.get(\"title\");\n{row}\n\
             let done = sqlx::query(\"UPDATE coaches SET {set} WHERE id = $4 AND owner = $5\")\
             .bind(title).bind(i64::from(old.len() != 1)).bind(&id).bind(&id).bind(user.to_string()).execute(&self.pool).await?;\n\
             anyhow::ensure!(done.rows_affected() == 1, \"gone\");\nOk(old)\n}}\n}}\n"
        );
        let project = Project::new(&[("src/main.rs", &source)]);
        project
            .run("scan src/main.rs --no-config --output json")
            .rules()
    };
    let changed = "let title = title.unwrap_or(old.clone());";
    assert_eq!(
        rules("title = $1, flag = $2, by = $3", changed),
        ["db-lost-update"]
    );
    assert!(rules("uses = uses + 1", "let title = 1;").is_empty());
}

/// An attribute that has a library's name declares nothing of that name.
#[test]
fn attributes_named_like_a_library() {
    let source = "use rmcp::{tool, tool_router};\n#[derive(FromRow)]\n#[sqlx(rename_all = \"camelCase\")]\n\
        pub struct User { balance: i64 }\npub struct Server { pool: sqlx::PgPool }\n#[tool_router]\nimpl Server {\n#[tool]\n\
        async fn pay(&self, id: i64, amount: i64) -> anyhow::Result<()> {\n\
        let user: User = sqlx::query_as(\"SELECT balance FROM users WHERE id = $1\").bind(id).fetch_one(&self.pool).await?;\n\
        sqlx::query(\"UPDATE users SET balance = $2 WHERE id = $1\").bind(id).bind(user.balance - amount).execute(&self.pool).await?;\n\
        Ok(())\n}\n}\n";
    assert_eq!(rules(source), ["db-lost-update"]);
}
