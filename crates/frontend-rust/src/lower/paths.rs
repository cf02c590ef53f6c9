//! Names and paths: what `a`, `a::b` and `a::B::c` stand for.
//!
//! Within the file they are looked up here. What leads out of it becomes an
//! import of the path as written, cut behind the first name that is written
//! like a type (`crate::db::Store` of `crate::db::Store::open`), and the
//! resolver finds its module.

use syn::Path;
use toctou_core::ir::{Cell, FuncKind, Op, TypeDef, Var};
use toctou_core::{Name, Span};

use super::{Item, Local, Lower};

/// What a path begins with.
enum Head {
    Item(Item, usize),
    /// The whole path, to be found elsewhere.
    Elsewhere(Vec<String>),
}

pub(super) fn segments(path: &Path) -> Vec<String> {
    path.segments.iter().map(|s| s.ident.to_string()).collect()
}

/// Written like a type: `Store`, not `store` and not `STORE`.
pub(crate) fn is_type_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(char::is_uppercase)
        && (name.len() == 1 || name.chars().any(char::is_lowercase))
}

impl Lower<'_> {
    /// A local variable, and how many functions out it is declared.
    pub(super) fn local(&mut self, name: Name) -> Option<(usize, Local)> {
        let find = |f: &super::FuncState| {
            f.scopes
                .iter()
                .rev()
                .find_map(|s| s.locals.iter().rev().find(|l| l.name == name))
                .cloned()
        };
        if let Some(local) = find(&self.f) {
            return Some((0, local));
        }
        let mut inner_kind = self.f.kind;
        for (out, f) in self.outer.iter().rev().enumerate() {
            // Only closures see the variables round them.
            if inner_kind != FuncKind::Arrow {
                return None;
            }
            if let Some(local) = find(f) {
                return Some((out + 1, local));
            }
            inner_kind = f.kind;
        }
        None
    }

    pub(super) fn owner(&self, out: usize) -> Option<&super::FuncState> {
        if out == 0 {
            return Some(&self.f);
        }
        self.outer
            .len()
            .checked_sub(out)
            .and_then(|i| self.outer.get(i))
    }

    pub(super) fn read_local(&mut self, at: Span, out: usize, local: &Local) -> Option<Var> {
        let owner = self.owner(out)?;
        let captured = owner.vars.get(local.var.0 as usize)?.captured;
        if !captured {
            // Seen from inside, and not known to be captured: nothing we can say.
            return (out == 0).then_some(local.var);
        }
        let cell = Cell {
            owner: owner.id,
            var: local.var,
        };
        Some(self.op(at, |dst| Op::LoadVar { dst, cell }))
    }

    pub(super) fn write_local(&mut self, at: Span, out: usize, local: &Local, value: Var) {
        let Some(owner) = self.owner(out) else { return };
        let Some(info) = owner.vars.get(local.var.0 as usize) else {
            return;
        };
        if info.captured {
            let cell = Cell {
                owner: owner.id,
                var: local.var,
            };
            self.emit(at, Op::StoreVar { cell, value });
        } else if out == 0 {
            self.emit(
                at,
                Op::Copy {
                    dst: local.var,
                    src: value,
                },
            );
        }
    }

    fn item_in_blocks(&self, name: Name) -> Option<Item> {
        std::iter::once(&self.f)
            .chain(self.outer.iter().rev())
            .flat_map(|f| f.scopes.iter().rev())
            .find_map(|s| s.items.iter().rev().find(|(n, _)| *n == name))
            .map(|(_, item)| *item)
    }

    /// An item of this file by its name, from the inline module we are in outwards.
    pub(super) fn item(&mut self, name: &str) -> Option<Item> {
        let name = self.names.find(name)?;
        if let Some(item) = self.item_in_blocks(name) {
            return Some(item);
        }
        let mut within = self.within.clone();
        loop {
            if let Some(key) = self.names.find(&within)
                && let Some(item) = self.items.get(&(key, name))
            {
                return Some(*item);
            }
            if within.is_empty() {
                return None;
            }
            within = parent(&within).to_owned();
        }
    }

    fn head(&mut self, path: &[String]) -> Option<Head> {
        let mut within = self.within.clone();
        let mut at = 0;
        let mut relative = false;
        let mut above = 0usize;
        while let Some(first) = path.get(at) {
            match first.as_str() {
                "self" => relative = true,
                "super" => {
                    relative = true;
                    if within.is_empty() {
                        above += 1;
                    }
                    within = parent(&within).to_owned();
                }
                _ => break,
            }
            at += 1;
        }
        if above > 0 {
            let mut out = vec!["super".to_owned(); above];
            out.extend(path.iter().skip(at).cloned());
            return Some(Head::Elsewhere(out));
        }
        let first = path.get(at)?;
        if first == "crate" {
            return Some(Head::Elsewhere(path.to_vec()));
        }
        let mut item = if relative {
            match (self.names.find(&within), self.names.find(first)) {
                (Some(key), Some(name)) => self.items.get(&(key, name)).copied(),
                _ => None,
            }
        } else {
            self.item(first)
        };
        // Down through inline modules.
        let mut inside = join(&within, first);
        while item.is_none() {
            let Some(next) = path.get(at + 1) else { break };
            let (Some(key), Some(name)) = (self.names.find(&inside), self.names.find(next)) else {
                break;
            };
            if !self.inline.contains(&key) {
                break;
            }
            item = self.items.get(&(key, name)).copied();
            inside = join(&inside, next);
            at += 1;
        }
        if let Some(item) = item {
            if let Some(alias) = item.var.and_then(|var| self.alias(var)) {
                let mut full: Vec<String> = alias.split("::").map(str::to_owned).collect();
                full.extend(path.iter().skip(at + 1).cloned());
                return Some(Head::Elsewhere(full));
            }
            return Some(Head::Item(item, at + 1));
        }
        Some(Head::Elsewhere(path.to_vec()))
    }

    /// The path behind an import's register.
    fn alias(&self, var: Var) -> Option<String> {
        let path = self.import_path.get(&var)?;
        Some(self.names.text(*path).to_owned())
    }

    /// The value of a path, and the names that are left over behind it.
    fn path_head(&mut self, at: Span, path: &[String]) -> (Var, usize) {
        if path.first().is_some_and(|s| s == "Self") {
            let value = match self.self_class() {
                Some(class) => self.op(at, |dst| Op::Class { dst, class }),
                None => match self.self_path() {
                    Some(path) => self.path_value(at, &path),
                    None => self.derived(at, Vec::new()),
                },
            };
            return (value, 1);
        }
        match self.head(path) {
            Some(Head::Item(item, used)) => {
                let value = match item.var {
                    Some(var) => self.load_top(at, var),
                    None => self.derived(at, Vec::new()),
                };
                (value, used.min(path.len()))
            }
            Some(Head::Elsewhere(full)) => {
                let cut = cut(&full);
                let text = full.get(..cut).unwrap_or_default().join("::");
                let var = self.import(&text);
                let value = self.load_top(at, var);
                // What was cut off is at the end of the path as written, too.
                (value, path.len() - (full.len() - cut).min(path.len()))
            }
            None => (self.derived(at, Vec::new()), path.len()),
        }
    }

    pub(super) fn path_value(&mut self, at: Span, path: &[String]) -> Var {
        if let [one] = path {
            let name = self.names.intern(one);
            if let Some((out, local)) = self.local(name)
                && let Some(value) = self.read_local(at, out, &local)
            {
                return value;
            }
        }
        let (mut value, used) = self.path_head(at, path);
        for field in path.iter().skip(used) {
            let field = self.names.intern(field);
            let obj = value;
            value = self.op(at, |dst| Op::GetField { dst, obj, field });
        }
        value
    }

    /// The same where nobody calls it: a variant that holds nothing (`Status::Open`) is a constant.
    pub(super) fn plain_value(&mut self, at: Span, path: &[String]) -> Var {
        match path {
            [.., of, variant] if (is_type_name(of) || of == "Self") && is_type_name(variant) => {
                self.string(at, variant)
            }
            path => self.path_value(at, path),
        }
    }

    /// For a call `a::b::f(…)`: what `f` is called on, if it is not one value.
    pub(super) fn path_receiver(&mut self, at: Span, path: &[String]) -> Option<(Var, Name)> {
        let (last, before) = path.split_last()?;
        if before.is_empty() {
            return None;
        }
        // A function of this file or of a module elsewhere is itself the value.
        let first = before.last()?;
        if !is_type_name(first) && first != "Self" {
            return None;
        }
        let value = self.path_value(at, before);
        Some((value, self.names.intern(last)))
    }

    /// The name by which [`toctou_core::ir::Module::types`] knows a type.
    pub(crate) fn type_name(&mut self, path: &Path) -> Option<Name> {
        let path = segments(path);
        if path.first().is_some_and(|s| s == "Self") {
            if path.len() > 1 {
                return None;
            }
            if let Some(class) = self.self_class() {
                return self.classes.get(class.0 as usize).map(|c| c.name);
            }
            // Taken out meanwhile: `impl X<Self>` would go round for ever.
            let ty = self.self_type.take()?;
            let name = self.type_ref(&ty).map(|t| t.name);
            self.self_type = Some(ty);
            return name;
        }
        match self.head(&path)? {
            Head::Item(item, used) => {
                if used < path.len() {
                    return None;
                }
                item.ty
            }
            Head::Elsewhere(full) => {
                let text = full.join("::");
                let name = self.names.intern(&text);
                let var = self.import(&text);
                self.add_type(name, TypeDef::Import(var));
                Some(name)
            }
        }
    }

    /// The type of an `impl` block whose type is declared in another file.
    fn self_path(&self) -> Option<Vec<String>> {
        match self.self_type.as_ref()? {
            syn::Type::Path(t) => {
                let path = segments(&t.path);
                (path.first().is_some_and(|s| s != "Self")).then_some(path)
            }
            _ => None,
        }
    }

    pub(super) fn self_class(&self) -> Option<toctou_core::ir::ClassId> {
        std::iter::once(&self.f)
            .chain(self.outer.iter().rev())
            .find_map(|f| f.class)
    }
}

/// How much of a path is imported: up to the first name that is written like a type.
fn cut(path: &[String]) -> usize {
    path.iter()
        .position(|s| is_type_name(s))
        .map_or(path.len(), |i| i + 1)
}

pub(super) fn parent(within: &str) -> &str {
    within.rsplit_once("::").map_or("", |(head, _)| head)
}

pub(super) fn join(within: &str, name: &str) -> String {
    if within.is_empty() {
        name.to_owned()
    } else {
        format!("{within}::{name}")
    }
}
