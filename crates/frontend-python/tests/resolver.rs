//! What imports lead to, and which dispatch the manifests say.

mod common;

use toctou_core::frontend::Manifest;
use toctou_core::ir::{Dispatch, ImportedName, Module, Target};
use toctou_frontend_python::resolve;

fn tree(files: &[(&str, &str)]) -> (Vec<String>, Vec<Module>, Vec<String>) {
    let (mut paths, mut modules, mut manifests) = (Vec::new(), Vec::new(), Vec::new());
    for (path, text) in files {
        if path.ends_with(".py") {
            paths.push((*path).to_owned());
            modules.push(common::module(path, text));
        } else {
            manifests.push(Manifest {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            });
        }
    }
    let notes = resolve(&paths, &mut modules, &manifests);
    (paths, modules, notes)
}

fn targets(files: &[(&str, &str)], path: &str) -> Vec<String> {
    let (paths, modules, _) = tree(files);
    let index = paths.iter().position(|p| p == path).expect("path");
    let module = &modules[index];
    module
        .imports
        .iter()
        .map(|i| {
            let whole = matches!(i.name, ImportedName::Namespace);
            let target = match &i.target {
                None => "nothing".to_owned(),
                Some(Target::Module(id)) => paths[id.0 as usize].clone(),
                Some(Target::External(name)) => format!("external {}", module.names.text(*name)),
            };
            if whole { format!("{target} *") } else { target }
        })
        .collect()
}

#[test]
fn packages_relative_imports_and_src_layouts() {
    let files = [
        ("src/pkg/__init__.py", "from .store import Store\n"),
        ("src/pkg/store.py", "class Store: pass\n"),
        ("src/pkg/sub/__init__.py", ""),
        (
            "src/pkg/sub/tool.py",
            "from ..store import Store\nfrom .. import store\nfrom . import other\nimport json\nfrom pkg.store import Store as S\n",
        ),
        ("src/pkg/sub/other.py", "x = 1\n"),
        (
            "main.py",
            "import pkg\nfrom pkg import Store, sub\nimport pkg.store as s\nimport os.path\n",
        ),
    ];
    assert_eq!(
        targets(&files, "src/pkg/sub/tool.py"),
        [
            "src/pkg/store.py",
            "src/pkg/__init__.py",
            "src/pkg/sub/__init__.py",
            "external json *",
            "src/pkg/store.py"
        ]
    );
    assert_eq!(
        targets(&files, "main.py"),
        [
            "src/pkg/__init__.py *",
            "src/pkg/__init__.py",
            "src/pkg/__init__.py",
            "src/pkg/store.py *",
            "external os *"
        ]
    );
}

#[test]
fn a_module_of_a_package_does_not_shadow_the_library() {
    let files = [
        ("pkg/__init__.py", ""),
        ("pkg/json.py", ""),
        ("pkg/a.py", "import json\nfrom . import json as own\n"),
    ];
    assert_eq!(
        targets(&files, "pkg/a.py"),
        ["external json *", "pkg/__init__.py"]
    );
}

#[test]
fn relative_imports_above_the_root_lead_nowhere() {
    let files = [("a.py", "from ....x import y\n")];
    assert_eq!(targets(&files, "a.py"), ["nothing"]);
}

fn dispatch(manifest: &str, text: &str) -> (Dispatch, usize) {
    let (_, modules, notes) = tree(&[
        ("server.py", "from mcp.server.fastmcp import FastMCP\n"),
        (manifest, text),
    ]);
    (modules[0].dispatch, notes.len())
}

#[test]
fn the_version_decides_about_threads() {
    let threads = |handlers| Dispatch::Threads { handlers };
    let one = (threads(Some(false)), 0);
    let two = (threads(Some(true)), 0);
    assert_eq!(
        dispatch(
            "pyproject.toml",
            "[project]\ndependencies = [\"mcp[cli]>=1.2,<2\"]\n"
        ),
        one
    );
    assert_eq!(
        dispatch(
            "uv.lock",
            "[[package]]\nname = \"mcp\"\nversion = \"2.0.1\"\n"
        ),
        two
    );
    assert_eq!(dispatch("requirements-dev.txt", "mcp==2.1\n"), two);
    assert_eq!(
        dispatch(
            "pyproject.toml",
            "[tool.poetry.dependencies]\nmcp = { version = \"^1.9\" }\n"
        ),
        one
    );
    assert_eq!(
        dispatch("pyproject.toml", "[project]\ndependencies = []\n"),
        (threads(None), 1)
    );
    assert_eq!(
        dispatch("pyproject.toml", "not = [toml"),
        (threads(None), 1)
    );
}
