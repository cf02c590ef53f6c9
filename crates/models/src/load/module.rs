//! What is known of one module: the names of all libraries that speak about it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Loaded, ModelRef, TypeName, module_and_names, type_name};
use crate::schema::{CallModel, ClassEntryModel, EntryModel, MarkedEntryModel};

#[derive(Clone, Debug)]
pub(super) struct Table<T>(FxHashMap<Arc<str>, Vec<ModelRef<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> Table<T> {
    pub(super) fn get(&self, key: &str) -> Option<&[ModelRef<T>]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// `first`: the name is new in this file, so what older files said is dropped.
    pub(super) fn put(&mut self, key: &str, model: &ModelRef<T>, first: bool) {
        let list = match self.0.get_mut(key) {
            Some(list) => list,
            None => self.0.entry(key.into()).or_default(),
        };
        if first {
            list.clear();
        }
        list.push(model.clone());
    }
}

#[derive(Clone, Default, Debug)]
pub(super) struct ModuleTable {
    pub(super) calls: Table<CallModel>,
    pub(super) entries: Table<EntryModel>,
    pub(super) classes: Table<ClassEntryModel>,
    pub(super) marked: Table<MarkedEntryModel>,
    pub(super) holders: FxHashSet<Arc<str>>,
    pub(super) records: FxHashSet<Arc<str>>,
    pub(super) conflicts: FxHashSet<Arc<str>>,
    pub(super) own_to_process: FxHashSet<Arc<str>>,
    pub(super) own_to_thread: FxHashSet<Arc<str>>,
    pub(super) aliases: FxHashMap<Arc<str>, TypeName>,
    /// Every name above, and everything that such a name is below of.
    pub(super) paths: FxHashSet<Arc<str>>,
}

/// The kinds of models that are entered by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Call,
    Entry,
    Class,
    Marked,
}

/// The names of a library and of those that it extends, as they are entered.
#[derive(Default)]
struct Seen {
    /// Entered by earlier sources: the same name from another one does not add to it.
    done: FxHashSet<(Kind, String)>,
    /// Entered by this one: a second model of one name is a variant.
    now: FxHashSet<(Kind, String)>,
}

/// One library's models, entered under the modules of another that extends it, or its own.
struct Source<'l> {
    source: &'l Loaded,
    target: &'l Loaded,
    own: bool,
}

impl ModuleTable {
    /// `speakers`: the libraries that name the module, by their places.
    pub(super) fn of(module: &str, speakers: &[usize], libraries: &[Loaded]) -> Self {
        let mut table = Self::default();
        for target in speakers.iter().map(|at| &libraries[*at]) {
            let mut seen = Seen::default();
            // Own names first: whoever claims a name first within one file keeps it.
            let parents = target.parents.iter().map(|at| (&libraries[*at], false));
            for (source, own) in std::iter::once((target, true)).chain(parents) {
                let source = Source {
                    source,
                    target,
                    own,
                };
                table.enter(module, &source, &mut seen);
                let now = std::mem::take(&mut seen.now);
                seen.done.extend(now);
            }
        }
        table
    }

    fn enter(&mut self, module: &str, from: &Source<'_>, seen: &mut Seen) {
        let Source { source, target, .. } = *from;
        let id = &target.id;
        let home: Arc<str> = module_and_names(&source.rest.modules[0]).0.into();
        let specs = target
            .rest
            .modules
            .iter()
            .map(|spec| module_and_names(spec));
        for (_, below) in specs.filter(|(name, _)| *name == module) {
            let path = |name: &String| below.path(name);
            for model in &source.calls {
                let paths = model.names.iter().filter_map(path);
                let paths = put(&mut self.calls, (Kind::Call, model, id), paths, seen);
                paths.iter().for_each(|path| self.note(path));
            }
            for model in &source.entries {
                let names = model.names.iter().filter(|name| !name.starts_with("*#"));
                let paths = names.filter_map(path);
                let paths = put(&mut self.entries, (Kind::Entry, model, id), paths, seen);
                paths.iter().for_each(|path| self.note(path));
            }
            for model in &source.classes {
                let paths = model.names.iter().filter_map(path);
                let paths = put(&mut self.classes, (Kind::Class, model, id), paths, seen);
                paths.iter().for_each(|path| self.note(path));
            }
            for model in &source.marked {
                let paths = model.names.iter().filter_map(path);
                put(&mut self.marked, (Kind::Marked, model, id), paths, seen);
            }
            let rest = &source.rest;
            for (names, list) in [
                (&mut self.holders, &rest.holders),
                (&mut self.records, &rest.records),
                (&mut self.conflicts, &rest.conflicts),
                (&mut self.own_to_process, &rest.own_to_process),
                (&mut self.own_to_thread, &rest.own_to_thread),
            ] {
                names.extend(list.iter().filter_map(path).map(Into::into));
            }
            for (name, ty) in &rest.aliases {
                let Some(path) = below.path(name) else {
                    continue;
                };
                self.note(&path);
                if from.own || !self.aliases.contains_key(path.as_str()) {
                    self.aliases.insert(path.into(), type_name(&home, ty));
                }
            }
        }
    }

    fn note(&mut self, path: &str) {
        let ends = path.match_indices(['.', '#']).map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            if !self.paths.contains(&path[..end]) {
                self.paths.insert(path[..end].into());
            }
        }
    }
}

/// Enters a model under each path that no earlier source has, and says which these are.
fn put<T>(
    table: &mut Table<T>,
    (kind, model, library): (Kind, &ModelRef<T>, &Arc<str>),
    paths: impl Iterator<Item = String>,
    seen: &mut Seen,
) -> Vec<String> {
    let mut model = model.clone();
    model.library = Arc::clone(library);
    let mut entered = Vec::new();
    for path in paths {
        let key = (kind, path);
        if seen.done.contains(&key) {
            continue;
        }
        entered.push(key.1.clone());
        let path = &entered[entered.len() - 1];
        table.put(path, &model, seen.now.insert(key));
    }
    entered
}
