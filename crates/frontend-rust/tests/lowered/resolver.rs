//! What paths lead to.

use crate::common::module;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{ImportedName, Module, Target};
use toctou_frontend_rust::resolve;

struct World {
    paths: Vec<String>,
    modules: Vec<Module>,
}

fn world(files: &[(&str, &str)], manifests: &[(&str, &str)]) -> World {
    let paths: Vec<String> = files.iter().map(|(p, _)| (*p).to_owned()).collect();
    let mut modules: Vec<Module> = files.iter().map(|(p, t)| module(p, t)).collect();
    let manifests: Vec<Manifest> = manifests
        .iter()
        .map(|(path, text)| Manifest {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        })
        .collect();
    resolve(&paths, &mut modules, &manifests);
    World { paths, modules }
}

impl World {
    /// `file name` or `library path`, for an import as written.
    fn leads(&self, file: &str, specifier: &str) -> String {
        let at = self.paths.iter().position(|p| p == file).expect("file");
        let m = &self.modules[at];
        let import = m
            .imports
            .iter()
            .find(|i| m.names.text(i.specifier) == specifier)
            .unwrap_or_else(|| panic!("no import {specifier}"));
        let name = match &import.name {
            ImportedName::Named(n) => m.names.text(*n),
            _ => "*",
        };
        match &import.target {
            Some(Target::Module(t)) => format!("{} {name}", self.paths[t.0 as usize]),
            Some(Target::External(l)) => format!("{} {name}", m.names.text(*l)),
            None => "nowhere".to_owned(),
        }
    }
}

#[test]
fn modules_are_files() {
    let w = world(
        &[
            (
                "src/main.rs",
                "mod a; mod b; fn f() { a::x(); b::c::y(); crate::a::x(); }",
            ),
            (
                "src/a.rs",
                "pub fn x() { super::b::z(); self::w(); } pub fn w() {}",
            ),
            ("src/b/mod.rs", "pub mod c; pub fn z() {}"),
            (
                "src/b/c.rs",
                "pub fn y() { super::z(); super::super::a::x(); }",
            ),
        ],
        &[],
    );
    assert_eq!(w.leads("src/main.rs", "self::a::x"), "src/a.rs x");
    assert_eq!(w.leads("src/main.rs", "self::b::c::y"), "src/b/c.rs y");
    assert_eq!(w.leads("src/main.rs", "crate::a::x"), "src/a.rs x");
    assert_eq!(w.leads("src/a.rs", "super::b::z"), "src/b/mod.rs z");
    assert_eq!(w.leads("src/b/c.rs", "super::z"), "src/b/mod.rs z");
    assert_eq!(w.leads("src/b/c.rs", "super::super::a::x"), "src/a.rs x");
}

#[test]
fn libraries_are_known_by_their_crate() {
    let w = world(
        &[(
            "src/main.rs",
            "use std::fs; use tokio::sync::Mutex; fn f() { fs::read(p); core::mem::take(x); uuid::Uuid::new_v4(); }",
        )],
        &[],
    );
    assert_eq!(w.leads("src/main.rs", "std::fs::read"), "std fs.read");
    assert_eq!(
        w.leads("src/main.rs", "tokio::sync::Mutex"),
        "tokio sync.Mutex"
    );
    assert_eq!(w.leads("src/main.rs", "core::mem::take"), "std mem.take");
    assert_eq!(w.leads("src/main.rs", "uuid::Uuid"), "uuid Uuid");
}

#[test]
fn crates_of_a_workspace() {
    let w = world(
        &[
            (
                "crates/app/src/main.rs",
                "use my_store::Store; fn f() { my_store::open(); }",
            ),
            (
                "crates/store/src/lib.rs",
                "mod inner; pub use inner::Store; pub fn open() {}",
            ),
            ("crates/store/src/inner.rs", "pub struct Store;"),
        ],
        &[
            ("crates/app/Cargo.toml", "[package]\nname = \"app\""),
            ("crates/store/Cargo.toml", "[package]\nname = \"my-store\""),
        ],
    );
    assert_eq!(
        w.leads("crates/app/src/main.rs", "my_store::Store"),
        "crates/store/src/lib.rs Store"
    );
    assert_eq!(
        w.leads("crates/store/src/lib.rs", "inner::Store"),
        "crates/store/src/inner.rs Store"
    );
}

#[test]
fn a_module_of_the_file_comes_before_a_crate() {
    let w = world(
        &[
            ("src/lib.rs", "mod core; pub use core::Service;"),
            ("src/core.rs", "pub struct Service;"),
        ],
        &[],
    );
    assert_eq!(
        w.leads("src/lib.rs", "core::Service"),
        "src/core.rs Service"
    );
}

#[test]
fn names_from_a_glob() {
    let w = world(
        &[
            ("src/main.rs", "mod a; use a::*; fn f() { helper(); }"),
            ("src/a.rs", "pub fn helper() {}"),
        ],
        &[],
    );
    assert_eq!(w.leads("src/main.rs", "helper"), "src/main.rs helper");
    assert!(w.modules[0].star_exports.iter().any(|(_, t)| t.is_some()));
}

#[test]
fn a_function_named_like_its_module() {
    let w = world(
        &[
            ("src/main.rs", "mod routes; fn f() { routes::add(); }"),
            ("src/routes/mod.rs", "mod add; pub use add::add;"),
            ("src/routes/add.rs", "pub fn add() {}"),
        ],
        &[],
    );
    assert_eq!(
        w.leads("src/main.rs", "self::routes::add"),
        "src/routes/mod.rs add"
    );
}

#[test]
fn an_impl_elsewhere_belongs_to_its_class() {
    let w = world(
        &[
            (
                "src/lib.rs",
                "pub mod more; pub mod run; pub struct Server { n: u32 }",
            ),
            (
                "src/more.rs",
                "use crate::Server; impl Server { pub fn extra(&self) { Self::two(); } fn two() {} }",
            ),
            (
                "src/run.rs",
                "pub trait Run { fn go(&self) {} } impl Run for crate::Server { fn go(&self) {} }",
            ),
        ],
        &[],
    );
    let targets: Vec<bool> = w
        .modules
        .iter()
        .flat_map(|m| &m.extensions)
        .map(|e| e.target.is_some_and(|(m, c)| m.0 == 0 && c.0 == 0))
        .collect();
    assert_eq!(targets, [true, true, true]);
    assert_eq!(w.modules[0].classes[0].implements.len(), 1);
}
