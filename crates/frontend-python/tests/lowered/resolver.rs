//! What imports lead to, and which versions the manifests ask for.

use toctou_core::frontend::Manifest;
use toctou_core::ir::{ImportedName, Module, Target};
use toctou_frontend_python::{FRONTEND, resolve};

fn tree(files: &[(&str, &str)]) -> (Vec<String>, Vec<Module>) {
    let (mut paths, mut modules) = (Vec::new(), Vec::new());
    for (path, text) in files {
        paths.push((*path).to_owned());
        modules.push(crate::common::module(path, text));
    }
    resolve(&paths, &mut modules, &[]);
    (paths, modules)
}

fn targets(files: &[(&str, &str)], path: &str) -> Vec<String> {
    let (paths, modules) = tree(files);
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
            "external os *",
            "external os.path *"
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

fn asked(path: &str, text: &str) -> Vec<(String, (u32, u32))> {
    let manifest = Manifest {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    (FRONTEND.requirements)(&manifest)
        .into_iter()
        .map(|r| (r.package, r.version))
        .collect()
}

#[test]
fn manifests_say_which_versions_are_asked_for() {
    let mcp = |version| vec![("mcp".to_owned(), version)];
    assert_eq!(
        asked(
            "pyproject.toml",
            "[project]\ndependencies = [\"mcp[cli]>=1.2,<2\"]\n"
        ),
        mcp((1, 2))
    );
    assert_eq!(
        asked(
            "uv.lock",
            "[[package]]\nname = \"mcp\"\nversion = \"2.0.1\"\n"
        ),
        mcp((2, 0))
    );
    assert_eq!(asked("requirements-dev.txt", "mcp==2.1\n"), mcp((2, 1)));
    assert_eq!(
        asked(
            "pyproject.toml",
            "[tool.poetry.dependencies]\nmcp = { version = \"^1.9\" }\n"
        ),
        mcp((1, 9))
    );
    assert_eq!(asked("pyproject.toml", "not = [toml"), []);
    assert_eq!(asked("go.mod", "require mcp v1.0.0\n"), []);
}
