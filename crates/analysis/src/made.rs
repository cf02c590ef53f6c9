//! What objects are made with, where no constructor is called: `Self { path, items }`. A copy of
//! a file that was loaded for one of the fields is kept there, as if a constructor had set it.

use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{ClassId, FuncId, Key, Var};

use crate::effect::{Act, Source, Trail};
use crate::interp::Interp;
use crate::linkage::TypeTarget;
use crate::sym::{Site, Sym, SymKind};

/// An object that a function makes, or has made by what it calls.
#[derive(Clone, Debug)]
pub struct Made {
    pub func: FuncId,
    pub class: ClassId,
    /// What its fields are, as the function sees it.
    pub fields: Vec<(Name, Sym)>,
    /// Fields with what was read from a file.
    pub loaded: Vec<Loaded>,
}

#[derive(Clone, Debug)]
pub struct Loaded {
    pub field: Name,
    pub file: Sym,
    pub trail: Trail,
    pub site: Site,
}

/// A class, and which parameter each of its fields gets.
pub type Makes = (ClassId, Vec<(Name, Sym)>);

/// More of them in one function, or in a program, are not followed.
const MAX_IN_FUNCTION: usize = 16;
const MAX_MADE: usize = 20_000;
/// Fields that are looked at, and files that one is made from.
const MAX_FIELDS: usize = 64;
const MAX_FILES: usize = 4;

impl Interp<'_, '_, '_> {
    /// An object with a class is written out.
    pub(crate) fn note_made(&mut self, dst: Var, fields: &[(Key, Var)]) {
        if !self.last_round || fields.len() > MAX_FIELDS {
            return;
        }
        let Some(ty) = self
            .function
            .vars
            .get(dst.0 as usize)
            .and_then(|v| v.ty.clone())
        else {
            return;
        };
        let module = self.cx.program.function_module[self.id.0 as usize];
        let cx = &mut *self.cx;
        let target =
            cx.linkage
                .type_target(cx.program, module, &ty, &mut cx.names, &mut cx.entities);
        let Some(TypeTarget::Class(class)) = target else {
            return;
        };
        let mut known: Vec<(Name, Sym)> = Vec::with_capacity(fields.len());
        for (key, value) in fields {
            if let Key::Name(name) = key {
                known.push((*name, self.val(*value)));
            }
        }
        self.add_made(class, known);
    }

    /// A field of an object that was just written out is set: `s := &Store{path: p}; s.items = load(p)`.
    pub(crate) fn note_set(&mut self, obj: Var, base: Sym, field: Name, value: Sym) {
        let SymKind::Object(fields) = self.cx.syms.kind(base) else {
            return;
        };
        if !self.last_round || fields.len() >= MAX_FIELDS {
            return;
        }
        let mut known: Vec<(Name, Sym)> = fields.iter().filter(|f| f.0 != field).copied().collect();
        known.push((field, value));
        if let Some(class) = self.cx.points_to.only_class(self.id, obj) {
            self.add_made(class, known);
        }
    }

    /// What is called makes objects of what it is given: `Server::new(store, path)`.
    pub(crate) fn note_maker(&mut self, f: FuncId, args: &[Sym]) {
        if !self.last_round {
            return;
        }
        let Some(makes) = self.cx.makers.get(&f).cloned() else {
            return;
        };
        for (class, fields) in makes {
            let given = |s: Sym| match self.cx.syms.kind(s) {
                SymKind::Param(i) => args.get(*i as usize).copied(),
                _ => None,
            };
            let fields: Vec<(Name, Sym)> = (fields.iter())
                .filter_map(|(name, s)| Some((*name, given(*s)?)))
                .collect();
            self.add_made(class, fields);
        }
    }

    fn add_made(&mut self, class: ClassId, fields: Vec<(Name, Sym)>) {
        let mut loaded = Vec::new();
        for &(field, value) in &fields {
            let mut files = 0;
            let deps = self.deps_of(value);
            for dep in deps.iter().filter(|d| !d.implicit && !d.asked) {
                let Source::Event(e) = dep.source else {
                    continue;
                };
                let Some(read) = self.events.get(e as usize) else {
                    continue;
                };
                if read.loc.kind == ResourceKind::File && read.act == Act::Read && files < MAX_FILES
                {
                    files += 1;
                    loaded.push(Loaded {
                        field,
                        file: read.loc.key,
                        trail: read.trail.clone(),
                        site: read.site,
                    });
                }
            }
        }
        let given: Vec<(Name, Sym)> = (fields.iter())
            .filter(|(_, s)| matches!(self.cx.syms.kind(*s), SymKind::Param(_)))
            .copied()
            .collect();
        if !given.is_empty() {
            let makes = self.cx.makers.entry(self.id).or_default();
            let new = !makes.iter().any(|(c, f)| *c == class && *f == given);
            if new && makes.len() < MAX_IN_FUNCTION {
                makes.push((class, given));
            }
        }
        if !loaded.is_empty() && self.cx.made.len() < MAX_MADE {
            let func = self.id;
            self.cx.made.push(Made {
                func,
                class,
                fields,
                loaded,
            });
        }
    }
}
