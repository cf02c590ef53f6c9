//! What Go's own constructs become.

use toctou_core::FileId;
use toctou_core::frontend::Manifest;
use toctou_core::ir::{
    CallKind, Callee, Dispatch, FuncKind, Module, Op, Target, Term, dump, validate,
};
use toctou_frontend_go::{lower, resolve};

#[track_caller]
fn module(text: &str) -> Module {
    let lowered = lower(FileId(0), "a.go", text).expect("lowered");
    assert!(lowered.warnings.is_empty(), "{:?}", lowered.warnings);
    let problems = validate(&lowered.module);
    assert!(
        problems.is_empty(),
        "{problems:?}\n{}",
        dump(&lowered.module)
    );
    lowered.module
}

fn function<'m>(module: &'m Module, name: &str) -> &'m toctou_core::ir::Function {
    module
        .functions
        .iter()
        .find(|f| module.names.text(f.name) == name)
        .expect("the function")
}

fn calls(module: &Module, name: &str) -> Vec<(String, CallKind)> {
    function(module, name)
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .filter_map(|i| match &i.op {
            Op::Call {
                callee: Callee::Method { name, .. },
                kind,
                ..
            } => Some((module.names.text(*name).to_owned(), *kind)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_receiver_is_this_also_in_closures() {
    let m = module("package p\ntype S struct{ n int }\nfunc (s *S) Inc() { func() { s.n++ }() }\n");
    let closure = m
        .functions
        .iter()
        .find(|f| f.kind == FuncKind::Arrow)
        .expect("a closure");
    assert!(
        closure.blocks[0]
            .insts
            .iter()
            .any(|i| matches!(i.op, Op::This { .. }))
    );
    let class = &m.classes[0];
    assert_eq!(class.methods.len(), 1);
    assert_eq!(m.dispatch, Dispatch::Anywhere);
}

#[test]
fn several_results_are_one_object() {
    let m = module(
        "package p\nfunc f() (int, error) { return 1, nil }\nfunc g() { a, err := f(); _, _ = a, err }\n",
    );
    let f = function(&m, "f");
    assert!(
        f.blocks
            .iter()
            .flat_map(|b| &b.insts)
            .any(|i| { matches!(&i.op, Op::Object { fields, .. } if fields.len() == 2) })
    );
    let g = function(&m, "g");
    let read: Vec<&str> = g
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .filter_map(|i| match &i.op {
            Op::GetField { field, .. } => Some(m.names.text(*field)),
            _ => None,
        })
        .collect();
    assert_eq!(read, ["#0", "#1"]);
}

#[test]
fn what_is_deferred_runs_before_every_return() {
    let m = module(
        "package p\nfunc (s *S) f() error {\n s.Lock()\n defer s.Unlock()\n if s.bad { return s.err }\n s.Work()\n return nil\n}\ntype S struct{ bad bool; err error }\n",
    );
    assert_eq!(calls(&m, "f").len(), 3);
    let f = function(&m, "f");
    let returns = f
        .blocks
        .iter()
        .filter(|b| matches!(b.term, Term::Return(Some(_))))
        .count();
    assert_eq!(returns, 1, "{}", dump(&m));
}

#[test]
fn one_that_a_branch_defers_may_not_run() {
    let m = module(
        "package p\nfunc f(a bool, x T) {\n if a { defer x.Close() }\n x.Use()\n}\ntype T struct{}\n",
    );
    let f = function(&m, "f");
    assert!(
        f.blocks
            .iter()
            .any(|b| matches!(&b.term, Term::Multi(ways) if ways.len() == 2)),
        "{}",
        dump(&m)
    );
}

#[test]
fn go_starts_a_thread() {
    let m = module("package p\nfunc f(w W) { go w.Run() }\ntype W struct{}\n");
    assert_eq!(calls(&m, "f"), [("Run".to_owned(), CallKind::Spawn)]);
}

#[test]
fn a_map_lookup_says_whether_it_is_there() {
    let m = module(
        "package p\nvar m map[string]int\nfunc f(k string) { if _, ok := m[k]; !ok { m[k] = 1 }; delete(m, k) }\n",
    );
    let ops: Vec<&Op> = function(&m, "f")
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .map(|i| &i.op)
        .collect();
    assert!(ops.iter().any(|o| matches!(o, Op::GetIndex { .. })));
    assert!(ops.iter().any(|o| matches!(o, Op::SetIndex { .. })));
    assert!(ops.iter().any(|o| matches!(o, Op::Delete { .. })));
}

#[test]
fn directives_are_found() {
    let m =
        module("package p\n// toctou: ignore[data-race] only tests\nvar x = 1 // toctou: ignore\n");
    assert_eq!(m.directives.len(), 2);
    assert!(m.directives[0].alone && !m.directives[1].alone);
}

fn package(files: &[(&str, &str)], mod_file: &str) -> Vec<Module> {
    let paths: Vec<String> = files.iter().map(|f| f.0.to_owned()).collect();
    let mut modules: Vec<Module> = files
        .iter()
        .enumerate()
        .map(|(i, (path, text))| lower(FileId(i as u32), path, text).expect("lowered").module)
        .collect();
    let manifest = Manifest {
        path: "go.mod".to_owned(),
        text: mod_file.to_owned(),
    };
    resolve(&paths, &mut modules, &[manifest]);
    for module in &modules {
        assert_eq!(validate(module), Vec::<String>::new());
    }
    modules
}

#[test]
fn files_of_a_package_share_their_names() {
    let modules = package(
        &[
            (
                "store/a.go",
                "package store\ntype Store struct{ n int }\nfunc New() *Store { return &Store{} }\n",
            ),
            (
                "store/b.go",
                "package store\nfunc (s *Store) Add() { s.n = next() }\n",
            ),
            (
                "store/c.go",
                "package store\nfunc next() int { return 1 }\n",
            ),
        ],
        "module example.com/x\n",
    );
    let import = modules[1]
        .imports
        .iter()
        .find(|i| matches!(i.target, Some(Target::Module(m)) if m.0 == 2));
    assert!(import.is_some(), "next() is in c.go");
    let (target, class) = modules[1].extensions[0].target.expect("the class");
    assert_eq!((target.0, class.0), (0, 0));
}

#[test]
fn imports_lead_to_folders_by_the_module_path() {
    let modules = package(
        &[
            (
                "main.go",
                "package main\nimport (\n\"example.com/x/store\"\n\"os\"\n)\nfunc main() { store.New(); os.Exit(0) }\n",
            ),
            ("store/a.go", "package store\nfunc New() {}\n"),
            ("store/b.go", "package store\nfunc Old() {}\n"),
        ],
        "module example.com/x // the root\n\ngo 1.22\n",
    );
    let targets: Vec<String> = modules[0]
        .imports
        .iter()
        .map(|i| match &i.target {
            Some(Target::Module(m)) => format!("module {}", m.0),
            Some(Target::External(n)) => modules[0].names.text(*n).to_owned(),
            None => "nothing".to_owned(),
        })
        .collect();
    assert_eq!(targets, ["module 1", "os"]);
    assert_eq!(
        modules[1].star_exports.len(),
        1,
        "the first file passes the others on"
    );
}

#[test]
fn whatever_has_the_methods_implements_the_interface() {
    let modules = package(
        &[
            (
                "a/i.go",
                "package a\ntype Closer interface { Close() error }\n",
            ),
            (
                "b/t.go",
                "package b\ntype T struct{}\nfunc (t *T) Close() error { return nil }\ntype U struct{}\n",
            ),
        ],
        "module example.com/x\n",
    );
    assert_eq!(modules[1].classes[0].implements.len(), 1);
    assert!(modules[1].classes[1].implements.is_empty());
}
