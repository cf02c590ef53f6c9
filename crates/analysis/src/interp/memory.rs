//! Variables, fields and entries: places in memory that others may see.

use super::Interp;
use super::access::Owner;
use super::sets::Turn;
use crate::effect::{Act, Dep, Deps, Loc, Source};
use crate::sym::{self, Sym, SymKind};
use toctou_core::Name;
use toctou_core::finding::ResourceKind;
use toctou_core::ir::{Cell, Var};
use toctou_models::Mode;

impl<'c, 'a, 'm> Interp<'c, 'a, 'm> {
    /// Going through a shared collection reads all of it.
    pub(crate) fn read_all(&mut self, base: Sym) {
        let shared = matches!(
            self.cx.syms.kind(base),
            SymKind::Field(..) | SymKind::Cell(_)
        ) && self.cx.may_be_shared(base)
            && !self.is_param(self.cx.syms.root(base));
        if shared {
            let loc = Loc {
                kind: ResourceKind::Memory,
                key: base,
                entry: None,
            };
            let mut event = self.event(Act::Read, loc);
            event.collection = true;
            if let Some(id) = self.push(event) {
                let element = self.cx.syms.make(SymKind::Element(base));
                self.add_deps(element, &Deps::event(id));
            }
        }
    }

    /// All of what a lock protects is copied or handed on.
    fn read_behind(&mut self, guard: Sym) {
        let shared = self.guarded && self.cx.may_be_shared(guard) && !self.is_param(guard);
        if !shared || !self.cx.is_behind_holder(guard, self.id) {
            return;
        }
        let loc = Loc {
            kind: ResourceKind::Memory,
            key: guard,
            entry: None,
        };
        let mut event = self.event(Act::Read, loc);
        event.collection = true;
        if let Some(id) = self.push(event) {
            let content = self.cx.syms.field(guard, self.cx.words.content);
            self.add_deps(content, &Deps::event(id));
        }
    }

    pub(crate) fn load(&mut self, cell: Cell) -> Sym {
        if let Some(sym) = self.cx.constant(cell) {
            return sym;
        }
        let place = self.cx.syms.make(SymKind::VarLoc(cell));
        let mutable = self.cx.mutable_cells.contains(&cell);
        if mutable {
            let loc = Loc {
                kind: ResourceKind::Memory,
                key: place,
                entry: None,
            };
            let event = self.event(Act::Read, loc);
            let id = self.push(event);
            let own = cell.owner == self.id;
            let set_by_closures = self.stored.get(&place).cloned().unwrap_or_default();
            let value = if own {
                match set_by_closures.as_slice() {
                    [] => self.vals[cell.var.0 as usize],
                    many => {
                        let mut all = many.to_vec();
                        all.push(self.vals[cell.var.0 as usize]);
                        self.join_syms(&all, u64::from(cell.var.0))
                    }
                }
            } else {
                self.cx.syms.make(SymKind::Cell(cell))
            };
            if let Some(id) = id {
                let mut deps = Deps::event(id);
                if let Some(d) = self.deps.get(&place) {
                    deps.extend(&d.clone());
                }
                if let Some(d) = self.below.get(&place) {
                    deps.extend(&d.clone());
                }
                self.add_deps(value, &deps);
            }
            return value;
        }
        if cell.owner == self.id {
            return self.val(cell.var);
        }
        self.cx.syms.make(SymKind::Cell(cell))
    }

    pub(crate) fn store(&mut self, cell: Cell, value: Var) {
        let value = self.val(value);
        if cell.owner == self.id {
            self.set(cell.var, value);
        }
        if cell.owner != self.id || self.cx.mutable_cells.contains(&cell) {
            let place = self.cx.syms.make(SymKind::VarLoc(cell));
            self.write_memory(place, value, Mode::Blind);
        }
    }

    pub(crate) fn get_field(&mut self, base: Sym, field: Name) -> Sym {
        // One call, one result or several: the first stands for the whole.
        if field == self.cx.words.first {
            let tuple = matches!(self.cx.syms.kind(base), SymKind::Object(fields)
                if fields.first().is_some_and(|(name, _)| *name == field));
            return if tuple {
                self.cx.syms.field(base, field)
            } else {
                base
            };
        }
        if let Some(sym) = self.set_in_copy(base, field) {
            return sym;
        }
        if let Some(sym) = self.cx.member(base, field) {
            return sym;
        }
        let words = &self.cx.words;
        let whole = field == words.length || field == words.size;
        let sym = self.cx.syms.field(base, field);
        let place = if whole { base } else { sym };
        let tracked = if whole {
            self.is_tracked_container(base)
        } else {
            self.cx.mutable_fields.contains(&field)
        };
        // What callers hand in is theirs to watch, unless it is changed here.
        let of_param = self.is_param(self.cx.syms.root(place));
        let tracked = tracked && (!of_param || self.set_fields.contains(&field));
        if !tracked && field == self.cx.words.content {
            self.read_behind(base);
        }
        if tracked && self.cx.may_be_shared(place) && !self.is_param(place) {
            let loc = Loc {
                kind: ResourceKind::Memory,
                key: place,
                entry: None,
            };
            let event = self.event(Act::Read, loc);
            if let Some(id) = self.push(event) {
                let mut deps = Deps::event(id);
                deps.insert(Dep {
                    attr: Some(field),
                    ..Dep::on(Source::Event(id))
                });
                self.add_deps(sym, &deps);
            }
        }
        sym
    }

    /// What a field of a copy was set to: that is not what the original has there.
    fn set_in_copy(&mut self, base: Sym, field: Name) -> Option<Sym> {
        let is_copy = self.is_racy()
            && matches!(self.cx.syms.kind(base), SymKind::Object(fields)
                if fields.len() == 1 && Some(fields[0].0) == self.cx.syms.rest);
        if !is_copy {
            return None;
        }
        let place = self.cx.syms.make(SymKind::Field(base, field));
        match self.stored.get(&place)?.as_slice() {
            [one] => Some(*one),
            // One way gives it an empty one, the other a copy.
            many if many.iter().all(|v| self.owner_of(*v) == Owner::Own) => {
                let many = many.to_vec();
                Some(self.join_syms(&many, u64::from(place.0)))
            }
            _ => None,
        }
    }

    /// A field or variable that holds a container somebody changes.
    pub(crate) fn is_tracked_container(&self, base: Sym) -> bool {
        matches!(
            self.cx.syms.kind(base),
            SymKind::Field(..) | SymKind::Cell(_)
        )
    }

    pub(crate) fn get_index(&mut self, base: Sym, index: Sym) -> Sym {
        let sym = self.cx.syms.index(base, index, &self.cx.names);
        if let (SymKind::Element(_), SymKind::Num(n)) =
            (self.cx.syms.kind(base), self.cx.syms.kind(index))
            && let Ok(at) = self.cx.names.text(*n).parse()
        {
            self.note_column_at(base, at, sym);
        }
        let tracked = match self.cx.syms.kind(base) {
            SymKind::Field(_, name) => self.cx.indexed_fields.contains(name),
            SymKind::Cell(cell) => self.cx.indexed_cells.contains(cell),
            _ => false,
        };
        if tracked && self.cx.may_be_shared(sym) {
            let loc = Loc {
                kind: ResourceKind::Memory,
                key: sym,
                entry: None,
            };
            let event = self.event(Act::Read, loc);
            if let Some(id) = self.push(event) {
                self.add_deps(sym, &Deps::event(id));
            }
        }
        sym
    }

    /// Puts a value into a place: an event if others can see it, and in any
    /// case the place and what contains it now depend on the value.
    pub fn write_memory(&mut self, place: Sym, value: Sym, mode: Mode) {
        let data = self.deps_of(value);
        if let Some(list) = self.stored.get_mut(&place) {
            if !list.contains(&value) && list.len() < 8 {
                list.push(value);
            }
        } else {
            self.stored.insert(place, vec![value]);
        }
        if self.cx.may_be_shared(place) {
            let loc = Loc {
                kind: ResourceKind::Memory,
                key: place,
                entry: None,
            };
            let mut event = self.event(Act::Write, loc);
            event.mode = mode;
            event.data = data.clone();
            event.constant = self.is_constant(value);
            event.copies = self.cx.may_be_shared(value) && !self.is_param(self.cx.syms.root(value));
            event.puts_back = self.place_of(value) == place;
            event.idempotent = self.is_empty_value(value);
            let length = matches!(*self.cx.syms.kind(place), SymKind::Field(_, field)
                if field == self.cx.words.length);
            event.empties = if length && self.is_empty_value(value) {
                Some(true)
            } else {
                self.stores_empty_collection()
            };
            self.push(event);
        }
        self.taint(place, &data);
    }

    /// `json.Unmarshal(data, &s.notes)`: the field is set, as if by an assignment.
    pub(crate) fn fill_field(&mut self, obj: Var, field: Name, index: usize, deps: &Deps) {
        let base = self.val(obj);
        let place = self.cx.syms.make(SymKind::Field(base, field));
        let value = (self.cx.syms).unknown(sym::through(self.site(), index as u64 + 1));
        self.add_deps(value, deps);
        self.note_set(obj, base, field, value);
        let ours = self.is_copy(obj, base) || self.is_own_to_thread(obj);
        if !ours && self.cx.may_be_shared(place) && !self.is_param(self.cx.syms.root(place)) {
            self.field_access(obj, base, field, true);
            self.write_memory(place, value, Mode::Blind);
        }
    }

    /// `null`, `false`, `0`, `""`: what a place holds when it holds nothing.
    pub(crate) fn is_empty_value(&self, value: Sym) -> bool {
        match self.cx.syms.kind(value) {
            SymKind::Bool(false) | SymKind::Null => true,
            SymKind::Num(n) => self.cx.names.text(*n) == "0",
            SymKind::Str(n) => self.cx.names.text(*n).is_empty(),
            _ => false,
        }
    }

    /// The place that a value was read from: of a variable's value, the variable.
    pub fn place_of(&mut self, value: Sym) -> Sym {
        match *self.cx.syms.kind(value) {
            SymKind::Cell(cell) => self.cx.syms.make(SymKind::VarLoc(cell)),
            _ => value,
        }
    }

    pub fn taint(&mut self, place: Sym, data: &Deps) {
        if data.is_empty() {
            return;
        }
        let ours = self.is_param(self.cx.syms.root(place))
            && !(self.guarded && self.cx.is_behind_holder(place, self.id));
        let shared = self.cx.may_be_shared(place) && !ours;
        let data = &if shared {
            self.turned(data, Turn::Shared, Deps::through_memory)
        } else {
            data.clone()
        };
        self.add_deps(place, data);
        let mut at = place;
        while let SymKind::Field(base, _) | SymKind::Index(base, _) | SymKind::Element(base) =
            *self.cx.syms.kind(at)
        {
            if !self.is_constant(base) && !self.is_param(base) {
                let below = self.below.entry(base).or_default();
                if self.cx.sets.get_mut().extend(below, data) {
                    self.note_change_of(base);
                }
            }
            at = base;
        }
    }

    /// Something in this place is changed: so is what holds it.
    pub(crate) fn note_change(&mut self, place: Sym) {
        let base = match self.cx.syms.kind(place) {
            SymKind::Field(base, _) | SymKind::Index(base, _) => *base,
            _ => return,
        };
        match *self.cx.syms.kind(base) {
            SymKind::Cell(cell) => {
                self.cx.changed_cells.insert(cell);
            }
            SymKind::Field(_, name) => {
                self.cx.changed_fields.insert(name);
            }
            _ => {}
        }
    }
}
