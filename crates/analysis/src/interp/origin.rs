//! Where the things in a list came from.
//!
//! `for x in cache { out.push(x) }; return out` gives out a list that nobody else has, of things
//! that everybody has. The list is a value of its own; what was put into it is kept here, beside
//! the values, for the check for data races: a lock that was held while the list was filled is
//! given back when its things are used.

use super::Interp;
use super::access::Owner;
use crate::sym::{CalleeSym, Sym, SymKind};

/// Things of different origin in one list that are told apart.
const MAX_ORIGINS: usize = 4;
/// Lists that a list is made of.
const MAX_LISTS: usize = 24;

impl Interp<'_, '_, '_> {
    /// A value is put into a list or table.
    pub(crate) fn note_kept(&mut self, list: Sym, value: Sym) {
        if !self.is_racy() || self.owner_of(list) != Owner::Own {
            return;
        }
        let value = self.origin(value);
        let kept = self.kept.entry(list).or_default();
        if kept.len() < MAX_ORIGINS && !kept.contains(&value) {
            kept.push(value);
        }
    }

    /// A result can be what others know by this place, or by another one.
    pub(crate) fn note_known_as(&mut self, result: Sym, place: Sym) {
        if !self.is_racy() || self.owner_of(result) != Owner::Own {
            return;
        }
        let known = self.known_as.entry(result).or_default();
        if known.len() < MAX_ORIGINS && !known.contains(&place) {
            known.push(place);
        }
    }

    /// The place that others know a value by, if it was taken out of a list made here, or is one
    /// of several things.
    pub(crate) fn origin(&mut self, sym: Sym) -> Sym {
        if !self.is_racy() || self.owner_of(sym) != Owner::Own {
            return sym;
        }
        let origins = self.origins(sym, 0, &mut Vec::new());
        let known = origins
            .into_iter()
            .find(|o| self.owner_of(*o) != Owner::Own);
        known.unwrap_or(sym)
    }

    /// `seen` has the lists of the whole question, so that it ends soon whatever they are made of.
    fn origins(&mut self, sym: Sym, depth: u32, seen: &mut Vec<Sym>) -> Vec<Sym> {
        if depth > 4 {
            return Vec::new();
        }
        match *self.cx.syms.kind(sym) {
            SymKind::Field(base, name) => {
                let bases = self.origins(base, depth + 1, seen);
                bases
                    .into_iter()
                    .map(|b| self.cx.syms.field(b, name))
                    .collect()
            }
            SymKind::Element(list) | SymKind::Index(list, _) => {
                let mut out = Vec::new();
                self.contents(list, depth, seen, &mut out);
                out
            }
            _ if seen.contains(&sym) || seen.len() >= MAX_LISTS => Vec::new(),
            // Found here or found there, as a function gives it back, or by the way that was taken.
            _ => {
                seen.push(sym);
                let mut options = self.known_as.get(&sym).cloned().unwrap_or_default();
                options.extend(self.alternatives.get(&sym).into_iter().flatten());
                let mut out = Vec::new();
                for option in options.into_iter().take(2 * MAX_ORIGINS) {
                    match self.is_others_place(option) {
                        // A struct that is given back as it is, is a copy.
                        true if self.is_plain_struct(option) => {}
                        true => out.push(option),
                        false => out.extend(self.origins(option, depth + 1, seen)),
                    }
                }
                out
            }
        }
    }

    /// A field, or what is in a list or table, that others know too.
    fn is_others_place(&self, sym: Sym) -> bool {
        let place = matches!(
            self.cx.syms.kind(sym),
            SymKind::Field(..) | SymKind::Index(..) | SymKind::Element(_)
        );
        place && self.owner_of(sym) != Owner::Own
    }

    /// What was put into a list, on any way that leads here.
    fn contents(&mut self, list: Sym, depth: u32, seen: &mut Vec<Sym>, out: &mut Vec<Sym>) {
        if seen.contains(&list) || seen.len() >= MAX_LISTS || out.len() >= MAX_ORIGINS {
            return;
        }
        seen.push(list);
        let mut add = |sym: Sym| {
            if !out.contains(&sym) {
                out.push(sym);
            }
        };
        if let Some(kept) = self.kept.get(&list) {
            kept.iter().copied().for_each(&mut add);
        }
        let mut more: Vec<Sym> = self.alternatives.get(&list).cloned().unwrap_or_default();
        match self.cx.syms.kind(list).clone() {
            SymKind::Array(items) => items.iter().copied().for_each(&mut add),
            // A list and what was added to it.
            SymKind::Call(call) if call.callee == CalleeSym::Method(self.cx.words.op) => {
                more.extend(call.args.iter().copied());
            }
            SymKind::Field(..) | SymKind::Index(..) | SymKind::Element(_)
                if self.owner_of(list) == Owner::Own =>
            {
                more.extend(self.origins(list, depth + 1, seen));
            }
            SymKind::Field(..)
            | SymKind::Index(..)
            | SymKind::Element(_)
            | SymKind::Cell(_)
            | SymKind::Param(_) => add(self.cx.syms.make(SymKind::Element(list))),
            _ => {}
        }
        for list in more {
            self.contents(list, depth, seen, out);
        }
    }

    /// Whose the things in a list are that is nobody else's, and whose their parts are.
    pub(crate) fn owners_inside(&mut self, list: Sym) -> (Owner, Owner) {
        let mut owners = (Owner::Own, Owner::Own);
        if !self.is_racy() || self.owner_of(list) != Owner::Own {
            return owners;
        }
        let mut items = Vec::new();
        self.contents(list, 0, &mut Vec::new(), &mut items);
        for item in items {
            let owner = self.owner_of(item);
            if owner != Owner::Own {
                return (owner, owner);
            }
            if let SymKind::Object(parts) = self.cx.syms.kind(item) {
                let part = parts.iter().map(|p| self.owner_of(p.1));
                owners.1 = part
                    .into_iter()
                    .find(|o| *o != Owner::Own)
                    .unwrap_or(owners.1);
            }
        }
        owners
    }

    /// What a function gives back is one of several things: which of them do others know?
    pub(crate) fn known_results(&mut self, values: &[Sym], result: Sym) -> Vec<(Sym, Sym)> {
        let mut out = Vec::new();
        if !self.is_racy() {
            return out;
        }
        for value in values {
            // One result or several, of which each has its place.
            let parts: Vec<(Sym, Sym)> = match self.cx.syms.kind(*value).clone() {
                SymKind::Object(fields) => (fields.iter().take(4))
                    .map(|&(name, part)| (self.cx.syms.field(result, name), part))
                    .collect(),
                _ => vec![(result, *value)],
            };
            for (result, part) in parts {
                if self.owner_of(result) != Owner::Own {
                    continue;
                }
                let places = match self.is_others_place(part) {
                    true if self.is_plain_struct(part) => continue,
                    true => vec![part],
                    false => self.origins(part, 0, &mut Vec::new()),
                };
                for place in places {
                    if out.len() < MAX_ORIGINS && !out.contains(&(result, place)) {
                        out.push((result, place));
                    }
                }
            }
        }
        out
    }

    /// What the lists that a function gives back hold: each list, and what is in it.
    pub(crate) fn kept_in_result(&mut self, values: &[Sym], result: Sym) -> Vec<(Sym, Sym)> {
        let mut out = Vec::new();
        if self.is_racy() {
            for value in values {
                self.kept_in(*value, result, 0, &mut out);
            }
        }
        out
    }

    fn kept_in(&mut self, value: Sym, result: Sym, depth: u32, out: &mut Vec<(Sym, Sym)>) {
        if let SymKind::Object(fields) = self.cx.syms.kind(value).clone() {
            for (name, value) in fields.iter().take(16).filter(|_| depth < 3) {
                let result = self.cx.syms.field(result, *name);
                self.kept_in(*value, result, depth + 1, out);
            }
            return;
        }
        if self.owner_of(value) != Owner::Own {
            return;
        }
        let mut items = Vec::new();
        self.contents(value, 0, &mut Vec::new(), &mut items);
        for item in items {
            // What is in there, or a part of it.
            let known = self.is_others_place(item)
                || matches!(self.cx.syms.kind(item), SymKind::Object(parts) if parts.iter().any(|p| self.is_others_place(p.1)));
            if known && !out.contains(&(result, item)) && out.len() < 2 * MAX_ORIGINS {
                out.push((result, item));
            }
        }
    }
}
