//! Libraries inside a bundle.
//!
//! esbuild, tsup, bun and rolldown put the modules of a program and of its libraries into one
//! file, each behind a comment with its path. What stands behind a path into
//! `node_modules` is a library: its names are bound as if they had been
//! imported, and its code, which others wrote, is not lowered.

use oxc_ast::Comment;
use oxc_ast::ast::{CallExpression, Expression, Program, Statement};
use oxc_span::GetSpan;
use oxc_syntax::symbol::SymbolId;
use rustc_hash::FxHashMap;
use toctou_core::ir::ImportedName;

use super::{Lower, peel};

const FOLDER: &str = "node_modules/";

/// `var require_x = __commonJS(…)`: calling it loads the package.
pub(super) type Loaders<'a> = FxHashMap<SymbolId, &'a str>;

/// Start of each module, and its package unless it is the program's own; in order.
struct Bundle<'a> {
    modules: Vec<(u32, Option<&'a str>)>,
}

impl<'a> Bundle<'a> {
    fn new(text: &'a str, comments: &[Comment]) -> Self {
        let mut modules = Vec::new();
        if text.contains(FOLDER) {
            modules.extend(comments.iter().filter_map(|c| module(text, c)));
        }
        // One comment that looks like it makes no bundle.
        if modules.len() < 2 {
            modules.clear();
        }
        Self { modules }
    }

    /// The package that the statement is part of. What a module imports or
    /// exports is said at the file's own top level.
    fn package(&self, statement: &Statement<'a>) -> Option<&'a str> {
        if statement.as_module_declaration().is_some() {
            return None;
        }
        let start = statement.span().start;
        let next = self.modules.partition_point(|(at, _)| *at <= start);
        self.modules.get(next.checked_sub(1)?)?.1
    }
}

/// `// node_modules/zod/index.js`, `// src/index.ts` and `//#region src/index.ts`, at the
/// start of a line.
fn module<'a>(text: &'a str, comment: &Comment) -> Option<(u32, Option<&'a str>)> {
    let start = comment.span.start as usize;
    if !comment.is_line() || !(start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n')) {
        return None;
    }
    let content = comment.content_span();
    let text = text
        .get(content.start as usize..content.end as usize)?
        .trim();
    let path = text.strip_prefix("#region ").unwrap_or(text);
    let name = path.rsplit('/').next()?;
    if path.contains(char::is_whitespace) || !path.contains('/') || !name.contains('.') {
        return None;
    }
    // The innermost: `node_modules/.pnpm/zod@4/node_modules/zod/index.js`.
    let package = path.rfind(FOLDER).and_then(|at| {
        let inside = path.get(at + FOLDER.len()..)?;
        let scope = usize::from(inside.starts_with('@'));
        let end = inside.match_indices('/').nth(scope)?.0;
        inside.get(..end)
    });
    Some((comment.span.start, package))
}

impl<'a> Lower<'a, '_> {
    /// The top level without what is a library's, as runs of statements that
    /// stand together. What the libraries declare is bound.
    pub(super) fn own_statements(&mut self, program: &'a Program<'a>) -> Vec<&'a [Statement<'a>]> {
        let bundle = Bundle::new(self.text, &program.comments);
        let mut own = Vec::new();
        for run in program
            .body
            .chunk_by(|a, b| bundle.package(a) == bundle.package(b))
        {
            match run.first().and_then(|first| bundle.package(first)) {
                None => own.push(run),
                Some(package) => run.iter().for_each(|s| self.bind_library(s, package)),
            }
        }
        own
    }

    fn bind_library(&mut self, statement: &'a Statement<'a>, package: &'a str) {
        let Some(declaration) = statement.as_declaration() else {
            return;
        };
        let specifier = self.names.intern(package);
        for (name, symbol) in self.declared(declaration) {
            let local = self.names.text(name).to_owned();
            if local.starts_with("require_") {
                self.loaders.insert(symbol, package);
            }
            let imported = self.names.intern(self.before_bundling(&local));
            self.add_import(symbol, &local, specifier, ImportedName::Named(imported));
        }
    }

    /// Bundlers number a name that is taken: `Server2` beside `Server`.
    fn before_bundling<'n>(&self, name: &'n str) -> &'n str {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_taken = stem != name && self.scoping.get_root_binding(stem.into()).is_some();
        if is_taken { stem } else { name }
    }

    /// The package that `require_x()` loads.
    pub(super) fn bundled(&self, call: &CallExpression<'a>) -> Option<&'a str> {
        if self.loaders.is_empty() {
            return None;
        }
        let Expression::Identifier(id) = peel(&call.callee) else {
            return None;
        };
        self.loader(self.symbol_of(id)?)
    }

    fn loader(&self, symbol: SymbolId) -> Option<&'a str> {
        self.loaders.get(&symbol).copied()
    }
}
