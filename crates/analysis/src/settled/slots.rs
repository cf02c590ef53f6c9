//! What several functions see: who put what there, and who asked for it.

use rustc_hash::{FxHashMap, FxHashSet};
use toctou_core::ir::FuncId;
use toctou_core::{Name, Names};

use super::value::Value;

/// Something that several functions see.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Slot {
    Result(FuncId),
    /// By its number.
    Variable(u32),
    /// Of any object, set after it was made.
    Field(Name),
    /// Of an object that is written out.
    Part(u32, Name),
}

/// Up to this many who asked are searched one by one.
const FEW: usize = 16;

#[derive(Default)]
struct Held {
    value: Value,
    readers: Vec<FuncId>,
}

/// All of them. They are asked for all the time, so those that have a number of their own are
/// found by it.
pub(super) struct Slots {
    held: Vec<Held>,
    /// Numbers in `held` plus one, by variable and by name.
    variables: Vec<u32>,
    fields: Vec<u32>,
    parts: FxHashMap<(u32, Name), u32>,
    /// Who asked for what has many readers.
    asked: FxHashSet<(u32, FuncId)>,
}

impl Slots {
    /// Results of `functions` come first.
    pub(super) fn new(functions: usize, variables: usize, names: usize) -> Self {
        let mut held = Vec::with_capacity(functions * 2);
        held.resize_with(functions, Held::default);
        Self {
            held,
            variables: vec![0; variables],
            fields: vec![0; names],
            parts: FxHashMap::default(),
            asked: FxHashSet::default(),
        }
    }

    fn number(&mut self, slot: Slot) -> u32 {
        let known = match slot {
            Slot::Result(f) => return f.0,
            Slot::Variable(number) => &mut self.variables[number as usize],
            Slot::Field(name) => &mut self.fields[name.0 as usize],
            Slot::Part(node, name) => self.parts.entry((node, name)).or_default(),
        };
        if *known == 0 {
            self.held.push(Held::default());
            *known = self.held.len() as u32;
        }
        *known - 1
    }

    pub(super) fn read(&mut self, slot: Slot, reader: FuncId) -> Value {
        let number = self.number(slot);
        let held = &mut self.held[number as usize];
        let readers = &mut held.readers;
        if readers.last() != Some(&reader) {
            let new = if readers.len() <= FEW {
                !readers.contains(&reader)
            } else {
                self.asked.insert((number, reader))
            };
            if new && readers.len() == FEW {
                let all = readers.iter().chain([&reader]);
                self.asked.extend(all.map(|f| (number, *f)));
            }
            if new {
                readers.push(reader);
            }
        }
        held.value
    }

    /// Who asked for it, if that makes a difference.
    pub(super) fn write(&mut self, slot: Slot, value: Value, names: &Names) -> Option<&[FuncId]> {
        let number = self.number(slot);
        let held = &mut self.held[number as usize];
        if held.value == value {
            return None;
        }
        let new = held.value.join(value, names);
        if held.value == new {
            return None;
        }
        held.value = new;
        Some(&held.readers)
    }
}
