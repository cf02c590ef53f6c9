use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::schema::{Do, Mode};

/// Names and texts of the files that come with the program, as they are written.
fn builtin_sources() -> Vec<(&'static str, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("libraries");
    let text = |name| std::fs::read_to_string(root.join(name)).expect("a file that is listed");
    let names = builtin::FILES.iter().map(|(name, _)| *name);
    names.map(|name| (name, text(name))).collect()
}

fn typescript() -> Models {
    Models::builtin("typescript")
}

#[test]
fn every_builtin_loads() {
    let mut models = Models::empty("typescript");
    for (name, text) in builtin_sources() {
        if let Err(error) = models.add(name, &text) {
            panic!("{error}");
        }
    }
}

#[test]
fn the_list_is_the_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("libraries");
    let mut files = Vec::new();
    for language in std::fs::read_dir(&root).expect("libraries") {
        let language = language.expect("entry").path();
        if !language.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&language).expect("language") {
            let file = file.expect("entry").path();
            let relative = file.strip_prefix(&root).expect("below");
            files.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    files.sort();
    let mut listed: Vec<_> = builtin_sources()
        .iter()
        .map(|(n, _)| (*n).to_owned())
        .collect();
    listed.sort();
    assert_eq!(
        listed, files,
        "src/load/builtin.rs lists what is in libraries/"
    );
}

#[test]
fn every_file_opens_with_what_it_covers() {
    for (name, text) in builtin_sources() {
        assert!(text.starts_with("# "), "{name} has no opening comment");
    }
}

#[test]
fn a_name_is_modelled_in_one_file_and_its_variants_differ() {
    let mut owners: BTreeMap<(Vec<String>, String, String), String> = BTreeMap::new();
    for (file, text) in builtin_sources() {
        let library: Library = toml::from_str(&text).expect("parses");
        let mut variants: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for model in &library.call {
            let test = format!("{:?} {:?} {:?}", model.when, model.min_args, model.max_args);
            for name in &model.names {
                let tests = variants.entry(name).or_default();
                assert!(
                    !tests.contains(&test),
                    "{file}: `{name}` stands twice with the same conditions"
                );
                tests.push(test.clone());
            }
        }
        for name in variants.keys() {
            for module in &library.modules {
                let languages = library.languages.clone();
                let key = (languages, module.clone(), (*name).to_owned());
                if let Some(other) = owners.insert(key, file.to_owned()) {
                    panic!("{file} and {other} both model `{name}` of `{module}`");
                }
            }
        }
    }
}

#[test]
fn forms_of_one_call_lead_to_one_model() {
    let models = typescript();
    for (module, path) in [
        ("fs", "readFile"),
        ("fs", "default.readFile"),
        ("fs", "promises.readFile"),
        ("fs", "readFileSync"),
        ("fs/promises", "readFile"),
        ("fs-extra", "readFile"),
        ("graceful-fs", "promises.readFile"),
    ] {
        let found = models.call(module, path);
        let found = found.unwrap_or_else(|| panic!("{module} {path}"));
        assert_eq!(found[0].effects[0].r#do, Do::Read, "{module} {path}");
    }
    assert!(models.call("fs", "nothing").is_none());
    assert!(models.call("nothing", "readFile").is_none());
}

#[test]
fn types_lead_on() {
    let models = typescript();
    let open = &models.call("fs", "promises.open").expect("open")[0];
    let ty = open.result_type.as_ref().expect("a type");
    assert_eq!((&*ty.module, &*ty.name), ("fs/promises", "FileHandle"));
    assert!(models.call(&ty.module, "FileHandle#readFile").is_some());

    let connect = &models.call("pg", "Pool#connect").expect("connect")[0];
    let ty = connect.result_type.as_ref().expect("a type");
    assert_eq!((&*ty.module, &*ty.name), ("pg", "PoolClient"));
    assert!(models.call("pg", "default.Pool#query").is_some());
}

#[test]
fn aliases_and_fields() {
    let models = typescript();
    assert!(models.call("better-sqlite3", "default#prepare").is_some());
    assert!(
        models
            .call("better-sqlite3", "Database.Database#prepare")
            .is_some()
    );
    assert!(models.call("sqlite", "DatabaseSync#prepare").is_some());
    assert!(models.call("ioredis", "default#set").is_some());
    let update = &models
        .call("@prisma/client", "PrismaClient#user.update")
        .expect("any field")[0];
    assert_eq!(update.effects[0].mode, Mode::Conditional);
    assert!(
        models
            .call("@prisma/client", "Prisma.TransactionClient#user.update")
            .is_some()
    );
    assert!(
        models
            .call("stripe", "default#checkout.sessions.create")
            .is_some()
    );
    assert_eq!(
        models.type_alias("better-sqlite3", "").map(|t| &*t.name),
        Some("Database")
    );
    assert!(models.call("p-limit", "Limit#()").is_some());
    assert!(models.call("<global>", "Map#get").is_some());
    assert!(models.call("<global>", "navigator.locks.request").is_some());
}

#[test]
fn extending_keeps_its_own() {
    let models = typescript();
    let sql = &models.call("sql.js", "default").expect("default")[0];
    assert_eq!(sql.result_type.as_ref().map(|t| &*t.name), Some("SqlJs"));
    assert!(models.call("sql.js", "Database#prepare").is_some());
}

#[test]
fn entries_by_type_and_by_name() {
    let models = typescript();
    for module in [
        "@modelcontextprotocol/sdk/server/mcp.js",
        "@modelcontextprotocol/sdk/server/mcp",
        "@modelcontextprotocol/server",
    ] {
        assert!(
            !models
                .entries_for(module, "McpServer#registerTool")
                .is_empty()
        );
    }
    let handlers = models.entries_for(
        "@modelcontextprotocol/sdk/server/index.js",
        "Server#setRequestHandler",
    );
    assert!(handlers[0].dispatches);
    assert_eq!(handlers.len(), 4);
    assert!(!models.duck_entries("tool").is_empty());
    assert!(models.duck_entries("toString").is_empty());
    assert_eq!(
        models.class_entries("mcp-framework", "MCPTool")[0].methods,
        ["execute"]
    );
    assert!(!models.method("findOne").is_empty());
    for word in [
        "get", "set", "update", "delete", "save", "create", "query", "run",
    ] {
        let alone = models.method(word).iter().any(|m| !m.known_table);
        assert!(!alone, "`{word}` says too little");
    }
}

#[test]
fn longer_chains_stand_first() {
    let models = typescript();
    let lengths: Vec<_> = models.chains().iter().map(|c| c.steps.len()).collect();
    assert!(lengths.is_sorted_by(|a, b| a >= b));
    assert!(models.knows_path("pg", "") && !models.knows_path("left-pad", ""));
    assert!(models.knows_path("pg", "Pool") && !models.knows_path("pg", "Pool#nothing"));
    // Any field of a Prisma client is a table.
    assert!(models.knows_path("@prisma/client", "PrismaClient#user"));
}

const HEAD: &str = "id = \"mine\"\nlanguages = [\"typescript\"]\nmodules = [\"pg\"]\n";

#[test]
fn a_users_model_wins() {
    let mut models = typescript();
    let text = format!("{HEAD}[[call]]\nnames = [\"Pool#query\"]\nresult = \"none\"\n");
    models.add("mine.toml", &text).expect("loads");
    let found = models.call("pg", "Pool#query").expect("found");
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].library, "mine");
    assert!(models.call("pg", "Client#query").is_some(), "others stay");
}

#[test]
fn another_languages_file_is_checked_and_not_used() {
    let mut models = Models::empty("python");
    let text = format!("{HEAD}[[call]]\nnames = [\"f\"]\n");
    models.add("mine.toml", &text).expect("loads");
    assert!(!models.knows_path("pg", ""));
}

#[test]
fn mistakes_say_where_and_what() {
    let cases = [
        (
            "[[call]]\nnmaes = [\"f\"]\n",
            "5:1",
            "unknown field `nmaes`",
        ),
        (
            "[[call]]\nnames = [\"f(\"]\n",
            "5:10",
            "is not a call's name",
        ),
        (
            "[[call]]\nnames = [\"f\"]\neffects = [{ do = \"read\", resource = \"file\", key = \"argument0\" }]\n",
            "6:",
            "is not a place",
        ),
        (
            "[[call]]\nnames = [\"f\"]\nresult = \"raed\"\n",
            "6:10",
            "is not a result",
        ),
        (
            "[[call]]\nnames = [\"f\"]\neffects = [{ do = \"read\", key = \"arg0\" }]\n",
            "",
            "needs `resource`",
        ),
        (
            "[[call]]\nnames = [\"f\"]\nwhen = [{ place = \"arg0\" }]\n",
            "",
            "tests nothing",
        ),
        ("[[method]]\nnames = [\"T#f\"]\n", "5:10", "bare name"),
        (
            "[[entry]]\nnames = [\"*#f.g\"]\nkind = \"tool\"\nhandler = \"last\"\n",
            "5:10",
            "one method's name",
        ),
        ("extends = [\"nobody\"]\n", "4:12", "no library's id"),
        ("[[call]]\nnames = [\n", "", ""),
    ];
    for (text, position, message) in cases {
        let mut models = Models::empty("typescript");
        let error = models
            .add("mine.toml", &format!("{HEAD}{text}"))
            .expect_err(text);
        let shown = error.to_string();
        assert!(
            shown.starts_with(&format!("mine.toml:{position}")),
            "{shown}"
        );
        assert!(shown.contains(message), "{shown}");
    }
}

#[test]
fn any_major_version_of_a_module_is_meant_by_a_star() {
    let models = Models::builtin("go");
    let knows = |module: &str| models.call(module, "New").is_some();
    assert!(knows("github.com/stripe/stripe-go/v82/paymentintent"));
    assert!(knows("github.com/stripe/stripe-go/v9/paymentintent"));
    assert!(!knows("github.com/stripe/stripe-go/vendor/paymentintent"));
    assert!(!knows("github.com/stripe/stripe-go/v/paymentintent"));
}
