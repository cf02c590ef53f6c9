//! What the constructs of the language become.

use crate::common::{function, in_order, module};
use toctou_core::ir::{FuncKind, dump};

#[test]
fn a_guard_is_dropped_at_the_end_of_its_scope() {
    let f = function(
        "fn f(m: &Mutex<u32>) { { let g = m.lock().unwrap(); a(&g); } b(); }",
        "f",
    );
    in_order(&f, &["lock()", "unwrap()", "exit", "load b"]);
}

#[test]
fn a_temporary_guard_is_dropped_at_the_end_of_its_statement() {
    let f = function(
        "async fn f(m: &Mutex<Map>) { let v = m.lock().await.get(1); b(v); }",
        "f",
    );
    in_order(&f, &["lock()", "await", "get(", "exit", "load b"]);
}

#[test]
fn a_guard_in_a_scrutinee_lives_through_the_body() {
    let f = function(
        "fn f(m: &Mutex<Map>) { if let Some(v) = m.lock().unwrap().get(1) { b(v); } c(); }",
        "f",
    );
    in_order(&f, &["lock()", "get(", "load b", "exit", "load c"]);
}

#[test]
fn a_guard_in_a_plain_condition_ends_before_the_body() {
    let f = function(
        "fn f(m: &Mutex<Map>) { if m.lock().unwrap().is_empty() { b(); } }",
        "f",
    );
    in_order(&f, &["lock()", "is_empty()", "exit", "load b"]);
}

#[test]
fn drop_ends_a_guard() {
    let f = function(
        "fn f(m: &Mutex<u32>) { let g = m.lock().unwrap(); drop(g); b(); }",
        "f",
    );
    in_order(&f, &["lock()", "exit", "load b"]);
}

#[test]
fn a_return_drops_what_is_held() {
    let f = function(
        "fn f(m: &Mutex<u32>, x: bool) { let g = m.lock().unwrap(); if x { return; } b(); }",
        "f",
    );
    in_order(&f, &["lock()", "if ", "exit", "return"]);
}

#[test]
fn errors_are_thrown() {
    let f = function(
        "fn f(x: u32) -> Result<u32, E> { if x > 1 { return Err(E::Big); } Ok(x) }",
        "f",
    );
    in_order(&f, &["if ", "throw", "return x"]);
    assert!(function("fn f() -> Result<()> { bail!(\"no\") }", "f").contains("throw"));
}

#[test]
fn nothing_where_something_should_be_is_a_branch() {
    let f = function(
        "fn f(m: &M) -> Result<u32, E> { let x = m.find(1).ok_or(E::No)?; Ok(x) }",
        "f",
    );
    in_order(&f, &["ok_or(", "if ", "throw"]);
    let f = function(
        "fn f(m: &M) -> Option<u32> { let x = m.find(1)?; Some(x) }",
        "f",
    );
    in_order(&f, &["find(", "if ", "return"]);
}

#[test]
fn what_a_guard_protects_is_a_place() {
    let f = function("fn f(m: &Mutex<u32>) { *m.lock().unwrap() += 1; }", "f");
    in_order(&f, &["lock()", ".* =", "exit"]);
    let f = function(
        "fn f(m: &Mutex<u32>) { let mut g = m.lock().unwrap(); *g = *g + 1; }",
        "f",
    );
    in_order(&f, &[".*", ".* =", "exit"]);
}

#[test]
fn format_strings_are_parts() {
    let f = function(
        "fn f(id: &str) -> String { format!(\"{}/{id}.json\", dir()) }",
        "f",
    );
    in_order(&f, &["\"/\"", "\".json\"", "concat"]);
}

#[test]
fn a_match_on_text_compares() {
    let f = function(
        "fn f(name: &str) { match name { \"add\" => a(), \"del\" => b(), _ => c() } }",
        "f",
    );
    in_order(
        &f,
        &["\"add\"", "==", "if ", "\"del\"", "==", "if ", "load a"],
    );
}

#[test]
fn loops_with_labels() {
    let f = function(
        "fn f() { 'a: loop { for x in xs() { if x { continue 'a; } break 'a; } } }",
        "f",
    );
    assert!(f.contains("element of") || f.contains("element"), "{f}");
}

#[test]
fn impl_blocks_give_methods_and_traits_mark_them() {
    let m = module(
        "src/main.rs",
        "struct S { a: Arc<Mutex<T>> } struct T; impl S { fn new() -> Self { S { a: x } } \
         async fn get(&self) {} } impl Handler for S { fn call(&self) {} }",
    );
    let class = &m.classes[0];
    let kinds: Vec<FuncKind> = class
        .methods
        .iter()
        .map(|(_, f)| m.functions[f.0 as usize].kind)
        .collect();
    assert_eq!(
        kinds,
        [FuncKind::StaticMethod, FuncKind::Method, FuncKind::Method]
    );
    assert_eq!(class.fields.len(), 1);
    let ty = class.fields[0].ty.as_ref().expect("a type");
    assert_eq!(m.names.text(ty.name), "Mutex");
    assert!(ty.element.is_some());
    assert_eq!(class.implements.len(), 1);
    assert!(dump(&m).contains("@Handler"));
}

#[test]
fn tests_are_left_out() {
    let m = module(
        "src/main.rs",
        "fn a() {} #[cfg(test)] mod tests { fn b() {} } #[test] fn c() {} \
         #[cfg(not(test))] fn d() {} #[tokio::test] async fn e() {}",
    );
    let names: Vec<&str> = m.functions.iter().map(|f| m.names.text(f.name)).collect();
    assert_eq!(names, ["src/main.rs", "a", "d"]);
}

#[test]
fn comments_that_speak_to_the_analyser() {
    let m = module(
        "src/main.rs",
        "// toctou: ignore[file-check-then-act] one process\nfn a() {} // toctou: ignore\n\
         fn b() { let s = \"// toctou: ignore\"; }",
    );
    assert_eq!(m.directives.len(), 2);
    assert!(m.directives[0].alone);
    assert!(!m.directives[1].alone);
}

#[test]
fn work_that_is_started_is_a_function() {
    let m = module(
        "src/main.rs",
        "fn f(s: S) { tokio::spawn(async move { s.run().await; }); tokio::spawn(s.other()); }",
    );
    let inner = m
        .functions
        .iter()
        .filter(|f| f.kind == FuncKind::Arrow && f.is_async)
        .count();
    assert_eq!(inner, 2);
}

#[test]
fn a_byte_order_mark_and_a_shebang_do_not_shift_places() {
    for head in ["\u{feff}", "#!/usr/bin/env run\n"] {
        let text = format!("{head}fn place() {{}}");
        let m = module("src/main.rs", &text);
        let span = m.functions[1].name_span;
        assert_eq!(&text[span.start as usize..span.end as usize], "place");
    }
}

#[test]
fn a_table_is_a_module_with_its_columns() {
    let m = module(
        "src/schema.rs",
        "diesel::table! {\n    use diesel::sql_types::*;\n    /// People.\n    public.users (id) {\n        id -> Int4,\n        \
         #[sql_name = \"type\"]\n        kind -> Nullable<Text>,\n        r#ref -> Text,\n    }\n}\n\
         #[diesel(table_name = crate::schema::users, check_for_backend(Pg))]\nstruct User { id: i32 }\n\
         #[sea_orm(table_name = \"accounts\")]\nstruct Model { #[sea_orm(primary_key)] id: i32, #[sea_orm(unique)] mail: String }",
    );
    let exports: Vec<&str> = m.exports.iter().map(|(n, _)| m.names.text(*n)).collect();
    for name in [
        "users::table",
        "users::kind",
        "users::dsl::users",
        "users::dsl::id",
        "users",
    ] {
        assert!(exports.contains(&name), "{name}: {exports:?}");
    }
    let text = dump(&m);
    in_order(
        &text,
        &[
            "class 0 User",
            "table=users",
            "class 1 Model",
            "table=accounts unique=id unique=mail",
            "users",
            "table=users unique=id",
            "\"ref\"",
        ],
    );
    // What only looks like one, and what breaks off.
    for text in [
        "table! { rows }",
        "table!();",
        "table! { users (id) }",
        "x::table! { { -> } }",
    ] {
        module("src/main.rs", text);
    }
}
