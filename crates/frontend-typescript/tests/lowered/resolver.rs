//! What imports lead to, on trees that exist only here.

use toctou_core::frontend::Manifest;
use toctou_core::ir::{ExportTarget, Module, Target};
use toctou_frontend_typescript::resolve;

/// A tree: files with their text, manifests among them.
struct Tree {
    paths: Vec<String>,
    modules: Vec<Module>,
    manifests: Vec<Manifest>,
}

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree {
        paths: Vec::new(),
        modules: Vec::new(),
        manifests: Vec::new(),
    };
    for (path, text) in files {
        if path.ends_with(".json") || path.ends_with(".yaml") {
            tree.manifests.push(Manifest {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            });
        } else {
            tree.paths.push((*path).to_owned());
            tree.modules.push(crate::common::module(path, text));
        }
    }
    resolve(&tree.paths, &mut tree.modules, &tree.manifests);
    tree
}

impl Tree {
    fn show(&self, module: &Module, target: Option<&Target>) -> String {
        match target {
            None => "nothing".to_owned(),
            Some(Target::Module(id)) => self.paths[id.0 as usize].clone(),
            Some(Target::External(name)) => format!("external {}", module.names.text(*name)),
        }
    }

    /// The targets of everything that the file imports and re-exports.
    fn targets(&self, path: &str) -> Vec<String> {
        let index = self.paths.iter().position(|p| p == path);
        let module = &self.modules[index.unwrap_or_else(|| panic!("no {path}"))];
        let imports = module.imports.iter().map(|i| i.target.as_ref());
        let exports = module.exports.iter().filter_map(|(_, e)| match e {
            ExportTarget::From { target, .. } => Some(target.as_ref()),
            ExportTarget::Local(_) => None,
        });
        let stars = module.star_exports.iter().map(|(_, t)| t.as_ref());
        imports
            .chain(exports)
            .chain(stars)
            .map(|t| self.show(module, t))
            .collect()
    }
}

#[test]
fn relative_imports() {
    let tree = tree(&[
        (
            "src/a.ts",
            "import b from './b'; import c from './c.js'; import d from './dir'; import e from '../top.mjs';
             import f from './dir/'; import g from '.'; import h from './view.jsx'; import i from './x.json';
             import j from './missing'; import k from '../../outside'; import l from './b.ts'; import m from './dotted.name';",
        ),
        ("src/b.ts", ""),
        ("src/c.ts", ""),
        ("src/c.js", ""),
        ("src/dir/index.tsx", ""),
        ("src/dir.test.ts", ""),
        ("src/index.js", ""),
        ("src/view.tsx", ""),
        ("src/dotted.name.ts", ""),
        ("top.mts", ""),
    ]);
    assert_eq!(
        tree.targets("src/a.ts"),
        [
            "src/b.ts",
            "src/c.ts",
            "src/dir/index.tsx",
            "top.mts",
            "src/dir/index.tsx",
            "src/index.js",
            "src/view.tsx",
            "external ./x.json",
            "external ./missing",
            "external ../../outside",
            "src/b.ts",
            "src/dotted.name.ts",
        ]
    );
}

#[test]
fn libraries_have_one_name() {
    let tree = tree(&[(
        "a.ts",
        "import a from 'node:fs/promises'; import b from 'fs'; import c from '@scope/pkg/sub'; import d from 'npm:pg@8.11';
         import e from 'npm:@s/p@1.2/x'; import f from 'https://x.y/z.ts'; const g = require('node:path');",
    )]);
    assert_eq!(
        tree.targets("a.ts"),
        [
            "external fs/promises",
            "external fs",
            "external @scope/pkg/sub",
            "external pg",
            "external @s/p/x",
            "external https://x.y/z.ts",
            "external path",
        ]
    );
}

#[test]
fn re_exports_and_dynamic_imports() {
    let tree = tree(&[
        (
            "a.ts",
            "export { x as y } from './b'; export * from './c'; export * as n from './b'; async function f() { await import('./c'); }",
        ),
        ("b.ts", ""),
        ("c.ts", ""),
    ]);
    assert_eq!(tree.targets("a.ts"), ["c.ts", "b.ts", "b.ts", "c.ts"]);
}

#[test]
fn paths_and_base_url() {
    let tree = tree(&[
        (
            "tsconfig.base.json",
            "{ // shared\n \"compilerOptions\": { \"baseUrl\": \".\", \"paths\": { \"@lib/*\": [\"packages/lib/src/*\"], }, }, }",
        ),
        ("app/tsconfig.json", r#"{ "extends": "../tsconfig.base" }"#),
        (
            "app/src/a.ts",
            "import a from '@lib/x'; import b from 'packages/lib/src/x'; import c from 'react';",
        ),
        (
            "web/tsconfig.json",
            r#"{ "compilerOptions": { "paths": { "@/*": ["./src/*"], "@/special": ["./other.ts"], "~": ["./src/index.ts"] } } }"#,
        ),
        (
            "web/src/deep/a.ts",
            "import a from '@/util'; import b from '@/special'; import c from '~'; import d from '@lib/x';",
        ),
        ("web/src/util.ts", ""),
        ("web/src/index.ts", ""),
        ("web/other.ts", ""),
        ("packages/lib/src/x.ts", ""),
    ]);
    assert_eq!(
        tree.targets("app/src/a.ts"),
        [
            "packages/lib/src/x.ts",
            "packages/lib/src/x.ts",
            "external react"
        ]
    );
    assert_eq!(
        tree.targets("web/src/deep/a.ts"),
        [
            "web/src/util.ts",
            "web/other.ts",
            "web/src/index.ts",
            "external @lib/x"
        ]
    );
}

#[test]
fn solution_files_and_loops_of_extends() {
    let tree = tree(&[
        (
            "tsconfig.json",
            r#"{ "files": [], "references": [{ "path": "./tsconfig.app.json" }] }"#,
        ),
        (
            "tsconfig.app.json",
            r#"{ "extends": ["./tsconfig.app.json"], "compilerOptions": { "paths": { "@/*": ["./src/*"] } } }"#,
        ),
        ("src/a.ts", "import b from '@/b';"),
        ("src/b.ts", ""),
        ("broken/tsconfig.json", "{ not json"),
        ("broken/a.ts", "import b from '@/b';"),
    ]);
    assert_eq!(tree.targets("src/a.ts"), ["src/b.ts"]);
    assert_eq!(tree.targets("broken/a.ts"), ["src/b.ts"]);
}

#[test]
fn workspace_packages_lead_to_their_sources() {
    let tree = tree(&[
        ("package.json", r#"{ "name": "root", "workspaces": ["packages/*"] }"#),
        ("pnpm-workspace.yaml", "packages:\n  - packages/*\n"),
        (
            "packages/core/package.json",
            r#"{ "name": "@acme/core", "exports": { ".": { "types": "./dist/index.d.ts", "import": "./dist/index.js" },
                 "./db": "./dist/db/index.js", "./tools/*": "./dist/tools/*.js" } }"#,
        ),
        ("packages/core/src/index.ts", "import self from '@acme/core/db';"),
        ("packages/core/src/db/index.ts", ""),
        ("packages/core/src/tools/read.ts", ""),
        ("packages/core/dist/index.js", ""),
        ("packages/old/package.json", r#"{ "name": "old", "main": "lib/main.js" }"#),
        ("packages/old/lib/main.js", ""),
        ("packages/bare/package.json", r#"{ "name": "bare" }"#),
        ("packages/bare/src/index.ts", ""),
        ("packages/bare/src/util.ts", ""),
        (
            "packages/app/src/a.ts",
            "import a from '@acme/core'; import b from '@acme/core/db'; import c from '@acme/core/tools/read';
             import d from 'old'; import e from 'bare'; import f from 'bare/util'; import g from '@acme/none'; import h from '@acme';",
        ),
    ]);
    assert_eq!(
        tree.targets("packages/app/src/a.ts"),
        [
            "packages/core/src/index.ts",
            "packages/core/src/db/index.ts",
            "packages/core/src/tools/read.ts",
            "packages/old/lib/main.js",
            "packages/bare/src/index.ts",
            "packages/bare/src/util.ts",
            "external @acme/none",
            "external @acme",
        ]
    );
    assert_eq!(
        tree.targets("packages/core/src/index.ts"),
        ["packages/core/src/db/index.ts"]
    );
}

#[test]
fn built_files_stand_for_their_sources() {
    let tree = tree(&[
        (
            "pkg/bin/cli.js",
            "import a from '../dist/main.js'; import b from '../dist/none.js'; import c from '../lib/real.js';",
        ),
        ("pkg/src/main.ts", ""),
        ("pkg/lib/real.js", ""),
    ]);
    assert_eq!(
        tree.targets("pkg/bin/cli.js"),
        [
            "pkg/src/main.ts",
            "external ../dist/none.js",
            "pkg/lib/real.js"
        ]
    );
}

#[test]
fn internal_imports_of_a_package() {
    let tree = tree(&[
        (
            "pkg/package.json",
            r##"{ "name": "p", "imports": { "#db": { "node": "./dist/db.js", "default": "./dist/db.js" }, "#lib/*": "./src/lib/*.js" } }"##,
        ),
        (
            "pkg/src/deep/a.ts",
            "import a from '#db'; import b from '#lib/x'; import c from '#none';",
        ),
        ("pkg/src/db.ts", ""),
        ("pkg/src/lib/x.ts", ""),
    ]);
    assert_eq!(
        tree.targets("pkg/src/deep/a.ts"),
        ["pkg/src/db.ts", "pkg/src/lib/x.ts", "external #none"]
    );
}

#[test]
fn counts() {
    let mut modules = vec![
        crate::common::module(
            "a.ts",
            "import b from './b'; import c from './c.css'; import d from 'pg';",
        ),
        crate::common::module("b.ts", ""),
    ];
    let paths = ["a.ts".to_owned(), "b.ts".to_owned()];
    let stats = resolve(&paths, &mut modules, &[]);
    assert_eq!((stats.internal, stats.external, stats.missing), (1, 1, 1));
}
