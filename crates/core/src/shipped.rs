//! Which files the programs of a package are made of: what their starts load,
//! and what is named in a text. The rest lies in the repository and is not run.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Literal, Module, ModuleId, Op, Target};

/// A package that says where its programs start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Programs {
    /// With a `/` at the end; empty for the root.
    pub folder: String,
    pub starts: Vec<ModuleId>,
}

/// Texts longer than this name no file.
const MAX_TEXT: usize = 240;
/// So much of the end of a path tells files apart.
const MAX_PARTS: usize = 4;

/// Files of a package by the ends of their paths, and by the folder that they are in.
struct Index<'p> {
    ends: FxHashMap<&'p str, Vec<u32>>,
    folders: FxHashMap<&'p str, Vec<u32>>,
    /// The length of the longest of their names.
    longest: usize,
    endings: FxHashSet<&'p str>,
    /// All of them.
    count: usize,
}

impl<'p> Index<'p> {
    fn new(paths: &'p [String], folder: &str) -> Self {
        let mut index = Self {
            ends: FxHashMap::default(),
            folders: FxHashMap::default(),
            longest: 0,
            endings: FxHashSet::default(),
            count: 0,
        };
        for (at, path) in paths.iter().enumerate() {
            let Some(path) = path.strip_prefix(folder) else {
                continue;
            };
            let at = at as u32;
            index.count += 1;
            let (stem, ending) = path.rsplit_once('.').unwrap_or((path, ""));
            index.endings.insert(ending);
            index.endings.insert(match ending {
                "ts" | "tsx" => "js",
                "mts" => "mjs",
                "cts" => "cjs",
                other => other,
            });
            for end in ends(stem) {
                index.ends.entry(end).or_default().push(at);
            }
            // The folder at the top is called like the package or `src`, which says nothing.
            let mut above = path.rsplit('/').skip(1);
            if let (Some(folder), Some(_)) = (above.next(), above.next()) {
                index.folders.entry(folder).or_default().push(at);
                index.longest = index.longest.max(folder.len());
            }
        }
        index
    }

    /// Files of a folder that a text names: it may be gone through.
    fn within(&self, text: &str, known: &mut FxHashSet<&'p str>, out: &mut Vec<u32>) {
        let text = text.trim_end_matches('/');
        let slash = memchr::memrchr(b'/', text.as_bytes());
        let name = slash.map_or(text, |slash| &text[slash + 1..]);
        // Most texts are longer than any folder's name, and the others are words.
        if name.len() <= self.longest
            && let Some((name, files)) = self.folders.get_key_value(name)
            && known.insert(name)
        {
            out.extend(files);
        }
    }

    /// Files that an import means that leads nowhere: all of its path is theirs. The last part
    /// alone (`sdk/server/index`) is that of many.
    fn imported(&self, text: &str, out: &mut Vec<u32>) {
        let plain = text.trim_start_matches(['@', '~', '#', '.', '/']);
        let stem = match plain.rsplit_once('.') {
            Some((stem, ending)) if self.endings.contains(ending) => stem.to_owned(),
            _ if plain.contains('/') => plain.to_owned(),
            _ => plain.replace('.', "/"),
        };
        let whole = ends(&stem).last();
        out.extend(
            whole
                .and_then(|end| self.ends.get(end))
                .into_iter()
                .flatten(),
        );
    }

    /// Files that a text means by a path or a dotted name.
    fn named(&self, text: &str, out: &mut Vec<u32>) {
        if text.is_empty() || text.len() > MAX_TEXT {
            return;
        }
        // Most texts are words.
        if memchr::memchr3(b'.', b'/', b':', text.as_bytes()).is_none() {
            return;
        }
        let text = text.split(['?', '#']).next().unwrap_or(text);
        let plain = text.trim_start_matches(['.', '/']).trim_end_matches('/');
        let stem = match plain.rsplit_once('.') {
            Some((stem, ending)) if self.endings.contains(ending) => Cow::Borrowed(stem),
            _ if plain.contains('/') => Cow::Borrowed(plain),
            // `package.module:function`
            _ if plain.contains(['.', ':']) => {
                let dotted = plain.split(':').next().unwrap_or(plain);
                Cow::Owned(dotted.replace('.', "/"))
            }
            _ => return,
        };
        // Who shares more of the end shares the last part.
        let last = ends(&stem).next();
        if last.is_none_or(|last| !self.ends.contains_key(last)) {
            return;
        }
        let parts: Vec<&str> = ends(&stem).collect();
        for end in parts.into_iter().rev() {
            // What is built from `src/x.ts` is called `dist/x.js`.
            let source = end.split_once('/').map(|(_, rest)| format!("src/{rest}"));
            let found = self.ends.get(end);
            let found = found.or_else(|| self.ends.get(source?.as_str()));
            if let Some(found) = found {
                out.extend(found);
                return;
            }
        }
    }
}

/// The last parts of a path, the shortest first.
fn ends(stem: &str) -> impl Iterator<Item = &str> {
    let slashes = stem.rmatch_indices('/').map(|(at, _)| at + 1);
    let starts = slashes.chain([0]).take(MAX_PARTS);
    starts.filter_map(|at| stem.get(at..))
}

/// What the programs of a package are made of. `loads`: what runs when a module is loaded.
/// `guides`: texts for people and tools that say how things are started.
pub fn reached(
    paths: &[String],
    modules: &[Module],
    programs: &Programs,
    loads: fn(&[Module], ModuleId) -> Vec<ModuleId>,
    guides: &[String],
) -> Vec<bool> {
    let index = Index::new(paths, &programs.folder);
    let mut seen = vec![false; modules.len()];
    let mut left = index.count;
    let mut work: Vec<u32> = programs.starts.iter().map(|start| start.0).collect();
    for line in guides.iter().flat_map(|guide| guide.lines()) {
        commands(line, |token| index.named(token, &mut work));
    }
    // Modules whose texts were not looked at yet: what is loaded says most, and often all.
    let mut unread: Vec<u32> = Vec::new();
    let mut folders: FxHashSet<&str> = FxHashSet::default();
    loop {
        while let Some(at) = work.pop() {
            let Some(module) = modules.get(at as usize) else {
                continue;
            };
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            let path = paths.get(at as usize);
            let ours = path.is_some_and(|path| path.starts_with(&programs.folder));
            left -= usize::from(ours);
            unread.push(at);
            work.extend(loads(modules, ModuleId(at)).iter().map(|to| to.0));
            // An import that leads nowhere may mean a file by the name that it is built under.
            for import in &module.imports {
                let specifier = module.names.text(import.specifier);
                match import.target {
                    Some(Target::Module(_)) => {}
                    _ if specifier.starts_with('.') => index.named(specifier, &mut work),
                    _ => index.imported(specifier, &mut work),
                }
            }
        }
        let Some(module) = unread.pop().map(|at| &modules[at as usize]) else {
            return seen;
        };
        if left == 0 {
            return seen;
        }
        let mut read = vec![false; module.names.len()];
        let blocks = module.functions.iter().flat_map(|f| &f.blocks);
        for inst in blocks.flat_map(|block| &block.insts) {
            if let Op::Const {
                value: Literal::Str(text),
                ..
            } = &inst.op
                && !std::mem::replace(&mut read[text.0 as usize], true)
            {
                let text = module.names.text(*text);
                index.named(text, &mut work);
                index.within(text, &mut folders, &mut work);
            }
        }
    }
}

/// What a line of a guide names if it is a command, or a part of a configuration. That a file is
/// in a picture of the repository says nothing.
fn commands(line: &str, mut each: impl FnMut(&str)) {
    const RUNNERS: &[&str] = &[
        "node",
        "nodemon",
        "tsx",
        "ts-node",
        "bun",
        "bunx",
        "deno",
        "npx",
        "pm2",
        "python",
        "python3",
        "uv",
        "uvicorn",
        "gunicorn",
        "fastmcp",
        "mcp",
        "main",
        "entrypoint",
    ];
    let is_part = |c: char| c.is_alphanumeric() || "_-./:@".contains(c);
    let mut runs = false;
    let mut rest = line;
    while let Some(start) = rest.find(is_part) {
        let before = rest[..start].chars().next_back();
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        if runs || before == Some('"') && after.starts_with('"') {
            each(token);
        }
        runs |= RUNNERS.contains(&token.to_lowercase().as_str());
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<String> {
        list.iter().map(|path| (*path).to_owned()).collect()
    }

    fn named(list: &[&str], text: &str) -> Vec<u32> {
        let paths = paths(list);
        let mut out = Vec::new();
        Index::new(&paths, "").named(text, &mut out);
        out
    }

    #[test]
    fn a_path_means_the_file_that_shares_most_of_its_end() {
        let files = ["src/index.ts", "legacy/index.ts", "src/jobs/worker.ts"];
        assert_eq!(named(&files, "/home/me/app/dist/index.js"), [0]);
        assert_eq!(named(&files, "./jobs/worker.js"), [2]);
        assert_eq!(named(&files, "worker.ts"), [2]);
        assert_eq!(named(&files, "index"), [0u32; 0]);
        assert_eq!(named(&["app/web.py", "app/old.py"], "app.web:create"), [0]);
    }

    #[test]
    fn an_import_means_all_of_its_path() {
        let paths = paths(&["src/server/index.ts", "src/index.ts", "src/lib/store.ts"]);
        let imported = |text: &str| {
            let mut out = Vec::new();
            Index::new(&paths, "").imported(text, &mut out);
            out
        };
        assert_eq!(imported("@acme/sdk/server/index.js"), [0u32; 0]);
        assert_eq!(imported("@/lib/store"), [2]);
        assert_eq!(imported("express"), [0u32; 0]);
    }

    #[test]
    fn of_a_guide_commands_count() {
        let tokens = |line: &str| {
            let mut out = Vec::new();
            commands(line, |token| out.push(token.to_owned()));
            out
        };
        assert_eq!(tokens("├── server_old.py   # as it was"), [""; 0]);
        assert_eq!(tokens("$ node dist/http.js"), ["dist/http.js"]);
        assert_eq!(
            tokens("  \"args\": [\"/path/x.js\"]"),
            ["args", "/path/x.js"]
        );
    }
}
