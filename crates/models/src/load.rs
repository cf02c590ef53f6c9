//! Reading model files into tables that are cheap to ask.
//!
//! Everything that can be wrong in a file is found here, with its line, so
//! that the analysis can take a model at its word. Lookups take the names as
//! the program has them; that a default import, a namespace import and an
//! alias lead to the same thing is settled here once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::schema::{
    CallModel, ChainModel, ClassEntryModel, EntryModel, ExportEntryModel, Library,
    MarkedEntryModel, RunsModel,
};

mod builtin;
mod check;
mod module;

use module::{ModuleTable, Table};

/// A type of a library, by the module that has it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TypeName {
    pub module: Arc<str>,
    pub name: Arc<str>,
}

/// A model and the library it is of. Cheap to clone.
#[derive(Debug)]
pub struct ModelRef<T> {
    /// The library's `id`.
    pub library: Arc<str>,
    pub model: Arc<T>,
    /// For calls: the type of what comes back, whichever way the model says it.
    pub result_type: Option<TypeName>,
}

pub type CallModelRef = ModelRef<CallModel>;
pub type ChainModelRef = ModelRef<ChainModel>;
pub type EntryModelRef = ModelRef<EntryModel>;
pub type ClassEntryModelRef = ModelRef<ClassEntryModel>;
pub type MarkedEntryModelRef = ModelRef<MarkedEntryModel>;

impl<T> Clone for ModelRef<T> {
    fn clone(&self) -> Self {
        Self {
            library: Arc::clone(&self.library),
            model: Arc::clone(&self.model),
            result_type: self.result_type.clone(),
        }
    }
}

impl<T> Deref for ModelRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.model
    }
}

/// What is wrong with a model file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    /// The name the file was given with.
    pub file: String,
    /// 1-based. `None` if it is about the file as a whole.
    pub position: Option<(usize, usize)>,
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for LoadError {}

/// `v2`, `v82`
fn is_major(part: &str) -> bool {
    let digits = part.strip_prefix('v').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A library, taken apart.
#[derive(Clone, Debug)]
struct Loaded {
    id: Arc<str>,
    /// What is not among the models below.
    rest: Library,
    calls: Vec<CallModelRef>,
    entries: Vec<EntryModelRef>,
    classes: Vec<ClassEntryModelRef>,
    marked: Vec<MarkedEntryModelRef>,
    /// Those that it extends, by their places among the libraries.
    parents: Vec<usize>,
}

impl Loaded {
    fn new(mut library: Library, parents: Vec<usize>) -> Self {
        let id: Arc<str> = library.id.as_str().into();
        let home: Arc<str> = module_and_names(&library.modules[0]).0.into();
        Self {
            calls: call_refs(&id, &home, std::mem::take(&mut library.call)),
            entries: plain_refs(&id, std::mem::take(&mut library.entry)),
            classes: plain_refs(&id, std::mem::take(&mut library.class_entry)),
            marked: plain_refs(&id, std::mem::take(&mut library.marked_entry)),
            id,
            rest: library,
            parents,
        }
    }
}

/// One module: which libraries speak about it, by their places, and what they say. That is put
/// together when it is first asked for: a program imports few of all the modules.
#[derive(Clone, Default, Debug)]
struct Known {
    libraries: Vec<usize>,
    table: OnceLock<Box<ModuleTable>>,
}

/// All models of one language.
#[derive(Clone, Default, Debug)]
pub struct Models {
    language: String,
    libraries: Vec<Loaded>,
    modules: FxHashMap<Arc<str>, Known>,
    methods: Table<CallModel>,
    /// Fields that make a class a table.
    record_fields: FxHashSet<Arc<str>>,
    ducks: Table<EntryModel>,
    chains: Vec<ChainModelRef>,
    any_classes: Vec<ClassEntryModelRef>,
}

impl Models {
    /// No models at all.
    pub fn empty(language: &str) -> Self {
        Self {
            language: language.to_owned(),
            ..Self::default()
        }
    }

    /// The models that come with the program, for one language.
    ///
    /// A built-in file that does not load is left out here, and fails a test of this crate.
    pub fn builtin(language: &str) -> Self {
        let mut models = Self::empty(language);
        for library in builtin::libraries(language) {
            let result = models.enter(library);
            debug_assert!(result.is_ok(), "{result:?}");
        }
        models.sort_chains();
        models
    }

    /// Reads one more file. Its names replace those that were there before.
    /// A file for another language is checked, and then not used.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), LoadError> {
        let library: Library =
            toml::from_str(text).map_err(|error| syntax_error(name, text, &error))?;
        check::library(&library).map_err(|problem| invalid(name, text, problem))?;
        self.enter(library)
            .map_err(|problem| invalid(name, text, problem))?;
        self.sort_chains();
        Ok(())
    }

    fn enter(&mut self, mut library: Library) -> Result<(), check::Problem> {
        if !library.languages.contains(&self.language) {
            return Ok(());
        }
        let mut parents = Vec::new();
        for id in &library.extends {
            let Some(parent) = self.libraries.iter().rposition(|l| *l.id == **id) else {
                return Err(check::Problem {
                    near: id.clone(),
                    message: format!("extends `{id}`, which is no library's id or is loaded later"),
                });
            };
            parents.push(parent);
        }
        let methods = std::mem::take(&mut library.method);
        let chains = std::mem::take(&mut library.chain);
        let loaded = Loaded::new(library, parents);
        self.register(&loaded, methods);
        self.chains.extend(plain_refs(&loaded.id, chains));
        self.libraries.push(loaded);
        Ok(())
    }

    /// What is known of a module. `…/v*/…` in a model is any major version that Go has in its paths.
    fn table(&self, module: &str) -> Option<&ModuleTable> {
        let any = || {
            let of = |part| if is_major(part) { "v*" } else { part };
            let parts: Vec<&str> = module.split('/').map(of).collect();
            self.modules.get_key_value(parts.join("/").as_str())
        };
        let found = self.modules.get_key_value(module);
        let (module, known) = found.or_else(|| module.contains("/v").then(any)?)?;
        let table = || Box::new(ModuleTable::of(module, &known.libraries, &self.libraries));
        Some(known.table.get_or_init(table))
    }

    /// Models of a call, by the module's canonical name and the path below it:
    /// `readFile`, `Pool#query`. Several differ in `when` or the number of
    /// arguments: the first that holds is meant.
    pub fn call(&self, module: &str, path: &str) -> Option<&[CallModelRef]> {
        let table = self.table(module)?;
        let path = plain_path(path);
        if let Some(found) = table.calls.get(path) {
            return Some(found);
        }
        let (ty, method) = path.split_once('#')?;
        if let Some(found) =
            any_field(method).and_then(|method| table.calls.get(&format!("{ty}#{method}")))
        {
            return Some(found);
        }
        let actual = table.aliases.get(ty)?;
        if *actual.name == *ty && *actual.module == *module {
            return None;
        }
        let table = self.table(&actual.module)?;
        table
            .calls
            .get(&format!("{}#{method}", actual.name))
            .or_else(|| {
                let method = any_field(method)?;
                table.calls.get(&format!("{}#{method}", actual.name))
            })
    }

    /// Models of a method by its name alone, for receivers that nothing is known about.
    pub fn method(&self, name: &str) -> &[CallModelRef] {
        self.methods.get(name).unwrap_or_default()
    }

    /// Registrations of handlers, by module and path.
    pub fn entries_for(&self, module: &str, path: &str) -> &[EntryModelRef] {
        let Some(table) = self.table(module) else {
            return &[];
        };
        let path = plain_path(path);
        if let Some(found) = table.entries.get(path) {
            return found;
        }
        let aliased = path.split_once('#').and_then(|(ty, method)| {
            let actual = table.aliases.get(ty)?;
            let table = self.table(&actual.module)?;
            table.entries.get(&format!("{}#{method}", actual.name))
        });
        aliased.unwrap_or_default()
    }

    /// Registrations by a method's name alone: `*#tool`.
    pub fn duck_entries(&self, method: &str) -> &[EntryModelRef] {
        self.ducks.get(method).unwrap_or_default()
    }

    /// Handlers by what their class extends.
    pub fn class_entries(&self, module: &str, path: &str) -> &[ClassEntryModelRef] {
        self.table(module)
            .and_then(|table| table.classes.get(plain_path(path)))
            .unwrap_or_default()
    }

    /// Handlers by the methods that a class has.
    pub fn any_class_entries(&self) -> &[ClassEntryModelRef] {
        &self.any_classes
    }

    /// Handlers by what they are marked with.
    pub fn marked_entries(&self, module: &str, path: &str) -> &[MarkedEntryModelRef] {
        self.table(module)
            .and_then(|table| table.marked.get(plain_path(path)))
            .unwrap_or_default()
    }

    /// Can shared memory be changed through this type?
    pub fn is_holder(&self, module: &str, path: &str) -> bool {
        self.table(module)
            .is_some_and(|table| table.holders.contains(plain_path(path)))
    }

    /// Are subclasses of this class tables?
    pub fn is_record(&self, module: &str, path: &str) -> bool {
        self.table(module)
            .is_some_and(|table| table.records.contains(plain_path(path)))
    }

    /// Is a class with this field a table?
    pub fn is_record_field(&self, name: &str) -> bool {
        self.record_fields.contains(name)
    }

    /// Does this error say that a row is there already?
    pub fn is_conflict(&self, module: &str, path: &str) -> bool {
        self.table(module)
            .is_some_and(|table| table.conflicts.contains(plain_path(path)))
    }

    /// Is it another value in every process?
    pub fn is_own_to_process(&self, module: &str, path: &str) -> bool {
        self.table(module)
            .is_some_and(|table| table.own_to_process.contains(plain_path(path)))
    }

    /// Has every thread the fields of such an object for itself?
    pub fn is_own_to_thread(&self, module: &str, path: &str) -> bool {
        self.table(module)
            .is_some_and(|table| table.own_to_thread.contains(plain_path(path)))
    }

    /// Does going through a table fail if something is added to it or taken from it meanwhile?
    pub fn fails_if_changed(&self) -> bool {
        self.libraries.iter().any(|l| l.rest.fails_if_changed)
    }

    /// Builder chains. The first that matches is meant; longer ones stand first.
    pub fn chains(&self) -> &[ChainModelRef] {
        &self.chains
    }

    /// Fields and methods that say nothing about whether a thing is there.
    pub fn asides(&self) -> impl Iterator<Item = &str> {
        let calls = self.libraries.iter().flat_map(|l| &l.calls);
        calls.flat_map(|call| call.asides.iter().map(String::as_str))
    }

    /// Those of them that say that it is a folder.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let calls = self.libraries.iter().flat_map(|l| &l.calls);
        calls.flat_map(|call| call.folders.iter().map(String::as_str))
    }

    /// What asks where a path leads, or whether it is a link.
    pub fn judges(&self) -> impl Iterator<Item = &str> {
        let calls = self.libraries.iter().flat_map(|l| &l.calls);
        calls.flat_map(|call| call.judged_by.iter().map(String::as_str))
    }

    /// Methods of exported objects that a runtime calls, and the modules of who says so.
    pub fn export_entries(&self) -> impl Iterator<Item = (&[String], &ExportEntryModel)> {
        let libraries = self.libraries.iter();
        libraries.flat_map(|Loaded { rest: l, .. }| {
            l.export_entry.iter().map(|e| (l.modules.as_slice(), e))
        })
    }

    /// Which type argument of a class a field is of, by module, class and field.
    pub fn generics(&self) -> impl Iterator<Item = (&str, &str, &str, u32)> {
        self.libraries.iter().flat_map(|Loaded { rest: l, .. }| {
            let fields = l.generic.iter().flat_map(|g| {
                let each = |name| g.fields.iter().map(move |(f, i)| (name, f, *i));
                g.names.iter().flat_map(each)
            });
            let fields: Vec<(&String, &String, u32)> = fields.collect();
            l.modules.iter().flat_map(move |module| {
                let fields = fields.clone().into_iter();
                fields.map(move |(n, f, i)| (module.as_str(), n.as_str(), f.as_str(), i))
            })
        })
    }

    /// How packages run handlers, those that were said last first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &RunsModel> {
        self.libraries.iter().rev().flat_map(|l| &l.rest.runs)
    }

    /// Is there anything to say about this path, or about something below it?
    pub fn knows_path(&self, module: &str, path: &str) -> bool {
        let Some(table) = self.table(module) else {
            return false;
        };
        let path = plain_path(path);
        if path == "default" || table.paths.contains(path) {
            return true;
        }
        let Some((ty, method)) = path.split_once('#') else {
            return false;
        };
        let any = match method.split_once('.') {
            Some((_, rest)) => format!("*.{rest}"),
            None => "*".to_owned(),
        };
        if table.paths.contains(format!("{ty}#{any}").as_str()) {
            return true;
        }
        let Some(actual) = table.aliases.get(ty) else {
            return false;
        };
        self.table(&actual.module).is_some_and(|table| {
            [method, &any].iter().any(|m| {
                table
                    .paths
                    .contains(format!("{}#{m}", actual.name).as_str())
            })
        })
    }

    /// The type that a name below a module stands for, if the models say that
    /// it is another: `default` of `better-sqlite3` is its `Database`.
    pub fn type_alias(&self, module: &str, path: &str) -> Option<&TypeName> {
        self.table(module)?.aliases.get(plain_path(path))
    }

    /// Enters what is not said of one module, and which modules the rest is about.
    fn register(&mut self, loaded: &Loaded, methods: Vec<CallModel>) {
        let at = self.libraries.len();
        for spec in &loaded.rest.modules {
            let module = module_and_names(spec).0;
            let known = match self.modules.get_mut(module) {
                Some(known) => known,
                None => self.modules.entry(module.into()).or_default(),
            };
            known.table.take();
            if known.libraries.last() != Some(&at) {
                known.libraries.push(at);
            }
        }
        let home: Arc<str> = module_and_names(&loaded.rest.modules[0]).0.into();
        let mut now = FxHashSet::default();
        for model in call_refs(&loaded.id, &home, methods) {
            for name in &model.names {
                let first = !now.contains(name) && now.insert(name.clone());
                self.methods.put(name, &model, first);
            }
        }
        let mut now = FxHashSet::default();
        for model in &loaded.entries {
            for name in &model.names {
                if let Some(method) = name.strip_prefix("*#") {
                    self.ducks.put(method, model, now.insert(method));
                }
            }
        }
        let classes = loaded.classes.iter();
        let any = classes.filter(|m| m.names.iter().any(|n| n == "*"));
        self.any_classes.extend(any.cloned());
        let records = loaded.rest.records.iter();
        for name in records.filter_map(|n| n.strip_prefix('.')) {
            self.record_fields.insert(name.into());
        }
    }

    /// A user's library comes last and must still win among equals.
    fn sort_chains(&mut self) {
        let libraries: FxHashMap<&str, usize> = self
            .libraries
            .iter()
            .enumerate()
            .map(|(i, library)| (&*library.id, i))
            .collect();
        self.chains.sort_by_key(|chain| {
            let age = libraries.get(&*chain.library).copied();
            (std::cmp::Reverse(chain.steps.len()), std::cmp::Reverse(age))
        });
    }
}

fn plain_refs<T>(library: &Arc<str>, models: Vec<T>) -> Vec<ModelRef<T>> {
    let plain = |model| ModelRef {
        library: Arc::clone(library),
        model: Arc::new(model),
        result_type: None,
    };
    models.into_iter().map(plain).collect()
}

fn call_refs(library: &Arc<str>, home: &Arc<str>, models: Vec<CallModel>) -> Vec<CallModelRef> {
    let call = |model| {
        let ty = check::result_type(&model);
        ModelRef {
            library: Arc::clone(library),
            result_type: ty.map(|ty| type_name(home, ty)),
            model: Arc::new(model),
        }
    };
    models.into_iter().map(call).collect()
}

/// `Pool` is of the library's first module; `pg:Client` says its own.
fn type_name(home: &Arc<str>, text: &str) -> TypeName {
    match text.rsplit_once(':') {
        Some((module, name)) => TypeName {
            module: module.into(),
            name: name.into(),
        },
        None => TypeName {
            module: Arc::clone(home),
            name: text.into(),
        },
    }
}

/// How the names of a model are written in one of its modules.
#[derive(Clone, Copy)]
struct Below<'s> {
    /// `fs:promises`: below the object `promises`.
    object: Option<&'s str>,
    /// `fs_err=fs`: those below `fs`, without it.
    part: Option<&'s str>,
}

impl Below<'_> {
    fn path(self, name: &str) -> Option<String> {
        let name = match self.part {
            Some(part) => name.strip_prefix(part)?.strip_prefix('.')?,
            None => name,
        };
        Some(match self.object {
            Some(object) => format!("{object}.{name}"),
            None => name.to_owned(),
        })
    }
}

/// The module that a library's `modules` name. Scheme names such as `bun:sqlite` and
/// `cloudflare:workers` are module names.
fn module_and_names(spec: &str) -> (&str, Below<'_>) {
    let (spec, part) = match spec.split_once('=') {
        Some((spec, part)) => (spec, Some(part)),
        None => (spec, None),
    };
    let (module, object) = match spec.rsplit_once(':') {
        Some((module, object)) if !matches!(module, "bun" | "cloudflare" | "jsr" | "npm") => {
            (module, Some(object))
        }
        _ => (spec, None),
    };
    (module, Below { object, part })
}

/// The default export and the module itself are one thing.
fn plain_path(path: &str) -> &str {
    if path.is_empty() {
        return "default";
    }
    let mut path = path;
    while let Some(rest) = path.strip_prefix("default.") {
        path = rest;
    }
    path
}

/// `user.findUnique` → `*.findUnique`
fn any_field(method: &str) -> Option<String> {
    let (field, rest) = method.split_once('.')?;
    (field != "*").then(|| format!("*.{rest}"))
}

fn syntax_error(file: &str, text: &str, error: &toml::de::Error) -> LoadError {
    LoadError {
        file: file.to_owned(),
        position: error.span().map(|span| position(text, span.start)),
        message: error.message().to_owned(),
    }
}

fn invalid(file: &str, text: &str, problem: check::Problem) -> LoadError {
    let quoted = [
        format!("\"{}\"", problem.near),
        format!("'{}'", problem.near),
        problem.near.clone(),
    ];
    let at = quoted.iter().find_map(|near| text.find(near.as_str()));
    LoadError {
        file: file.to_owned(),
        position: at.map(|at| position(text, at)),
        message: problem.message,
    }
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests;
