//! What an object of ours holds: `Store(path)` writes to `path`, whatever its methods call it.
//!
//! Only fields that nobody sets but the constructor, and only what names something: a list that
//! is put into a field is known by its field.

use super::Interp;
use crate::sym::{self, NewOf, Sym, SymKind};
use toctou_core::Name;
use toctou_core::ir::FuncKind;

/// Of one object.
const MAX_FIELDS: usize = 24;

impl Interp<'_, '_, '_> {
    /// What this constructor puts into the fields of its object.
    pub(crate) fn fields_set(&mut self) -> Vec<(Name, Sym)> {
        if self.function.kind != FuncKind::Constructor {
            return Vec::new();
        }
        let this = self.cx.syms.make(SymKind::This);
        let mut fields: Vec<(Name, Sym)> = Vec::new();
        for (&place, values) in &self.stored {
            if let SymKind::Field(base, name) = *self.cx.syms.kind(place)
                && base == this
                && let [value] = **values
                && !self.cx.mutable_fields.contains(&name)
                && self.names_something(value)
            {
                fields.push((name, value));
            }
        }
        fields.sort_unstable();
        fields.truncate(MAX_FIELDS);
        fields
    }

    fn names_something(&self, value: Sym) -> bool {
        match self.cx.syms.kind(value) {
            SymKind::Param(_) | SymKind::Str(_) | SymKind::Join(_) | SymKind::Concat(_) => true,
            SymKind::Call(call) => call
                .recv
                .iter()
                .chain(&*call.args)
                .any(|part| self.names_something(*part)),
            SymKind::Field(base, _) => self.names_something(*base),
            SymKind::Cell(cell) => self.cx.is_module_cell(*cell),
            _ => false,
        }
    }

    /// The constructor has run: so much is known of its object. What was read is no name: that is
    /// followed as what the object was made from.
    pub(crate) fn note_fields(&mut self, object: Sym, mut fields: Vec<(Name, Sym)>) {
        fields.retain(|(_, value)| self.deps_of(*value).events().next().is_none());
        match self.cx.syms.kind(object) {
            SymKind::New(..) if !fields.is_empty() => {
                self.cx.syms.fields_of.insert(object, fields);
            }
            // `super().__init__(path)`
            SymKind::This => {
                for (name, value) in fields {
                    let place = self.cx.syms.make(SymKind::Field(object, name));
                    self.stored.entry(place).or_insert_with(|| vec![value]);
                }
            }
            _ => {}
        }
    }

    /// Several ways out that each make one of the same class: one object, of which is known what
    /// is true of all.
    pub(crate) fn one_of_a_kind(&mut self, values: &[Sym]) -> Option<Sym> {
        let &SymKind::New(_, of @ NewOf::Class(_)) = self.cx.syms.kind(*values.first()?) else {
            return None;
        };
        let mut known = self.cx.syms.fields_of.get(values.first()?)?.clone();
        for value in &values[1..] {
            if !matches!(self.cx.syms.kind(*value), SymKind::New(_, other) if *other == of) {
                return None;
            }
            let others = self.cx.syms.fields_of.get(value)?;
            known.retain(|field| others.contains(field));
        }
        let site = sym::through(sym::site(self.id, 0xff_fffd), 1);
        let one = self.cx.syms.make(SymKind::New(site, of));
        self.cx.syms.fields_of.insert(one, known);
        Some(one)
    }

    /// The objects in what is given back, and what is known of them.
    pub(crate) fn made_in_result(&self, result: Sym) -> Vec<(Sym, Vec<(Name, Sym)>)> {
        let mut objects = vec![result];
        if let SymKind::Object(fields) = self.cx.syms.kind(result) {
            objects.extend(fields.iter().map(|field| field.1));
        }
        let known = |object: Sym| Some((object, self.cx.syms.fields_of.get(&object)?.clone()));
        objects.into_iter().filter_map(known).collect()
    }
}
