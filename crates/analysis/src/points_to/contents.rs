//! What a register holds: a list in the order in which things came, and a table to look them up in
//! where they are many.
//!
//! What comes to a register of many is mostly there already, and finding that out was the larger part
//! of the solver's work. Numbers of objects are dense, so that a multiplication and a look or two is
//! all there is to do.

use smallvec::SmallVec;

use super::ObjId;

/// So few are searched for one by one.
const FEW: usize = 24;
const EMPTY: u32 = u32::MAX;

/// Registers are many, and most of them hold next to nothing.
pub(super) enum Contents {
    Few(u8, [ObjId; 3]),
    Many(Box<Many>),
}

#[derive(Default)]
pub(super) struct Many {
    list: SmallVec<[ObjId; 6]>,
    /// Open addressing, at most half full; empty where they are few.
    table: Box<[u32]>,
}

impl Default for Contents {
    fn default() -> Self {
        Self::Few(0, [ObjId(EMPTY); 3])
    }
}

impl std::ops::Deref for Contents {
    type Target = [ObjId];

    #[inline]
    fn deref(&self) -> &[ObjId] {
        match self {
            Self::Few(held, few) => &few[..usize::from(*held)],
            Self::Many(many) => &many.list,
        }
    }
}

impl Contents {
    #[inline]
    pub(super) fn has(&self, obj: ObjId) -> bool {
        match self {
            // What is not held is no object's number.
            Self::Few(_, few) => few.contains(&obj),
            Self::Many(many) => many.has(obj),
        }
    }

    /// Where the first stands that is not there. Most of what comes is there already.
    #[inline]
    pub(super) fn first_missing(&self, new: &[ObjId]) -> Option<usize> {
        match self {
            Self::Few(_, few) => new.iter().position(|obj| !few.contains(obj)),
            Self::Many(many) if many.table.is_empty() => {
                new.iter().position(|obj| !holds(&many.list, *obj))
            }
            Self::Many(many) => {
                let there = |obj: &ObjId| many.table[many.slot(*obj)] == obj.0;
                new.iter().position(|obj| !there(obj))
            }
        }
    }

    /// Adds what is not there yet.
    pub(super) fn push(&mut self, obj: ObjId) {
        match self {
            Self::Many(many) => many.push(obj),
            Self::Few(held, few) if usize::from(*held) < few.len() => {
                few[usize::from(*held)] = obj;
                *held += 1;
            }
            Self::Few(_, few) => {
                let mut many = Box::<Many>::default();
                many.list.extend_from_slice(few);
                many.list.push(obj);
                *self = Self::Many(many);
            }
        }
    }
}

impl Many {
    #[inline]
    fn has(&self, obj: ObjId) -> bool {
        if self.table.is_empty() {
            return holds(&self.list, obj);
        }
        self.table[self.slot(obj)] == obj.0
    }

    fn push(&mut self, obj: ObjId) {
        self.list.push(obj);
        let held = self.list.len();
        if held * 2 > self.table.len() && held >= FEW {
            self.table = vec![EMPTY; (held * 2).next_power_of_two()].into();
            for at in 0..held {
                let obj = self.list[at];
                let slot = self.slot(obj);
                self.table[slot] = obj.0;
            }
        } else if !self.table.is_empty() {
            let slot = self.slot(obj);
            self.table[slot] = obj.0;
        }
    }

    /// Where it is, or would be.
    #[inline]
    fn slot(&self, obj: ObjId) -> usize {
        let mask = self.table.len() - 1;
        let mut at = (obj.0.wrapping_mul(0x9e37_79b1) >> 16) as usize & mask;
        while self.table[at] != obj.0 && self.table[at] != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }
}

/// Is it among them? Without a way out at each, many are compared at a time.
pub(super) fn holds<T: Copy + PartialEq>(all: &[T], one: T) -> bool {
    let mut parts = all.chunks_exact(8);
    let found = parts.by_ref().any(|part| {
        let same = part.iter().map(|other| u32::from(*other == one));
        same.fold(0, std::ops::BitOr::bitor) != 0
    });
    found || parts.remainder().contains(&one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_and_keep_their_order() {
        let mut held = Contents::default();
        // Numbers that collide, and that lie side by side.
        let numbers = (0..300u32).map(|n| if n % 2 == 0 { n << 16 } else { n });
        for (count, n) in numbers.clone().enumerate() {
            assert!(!held.has(ObjId(n)), "{n}");
            held.push(ObjId(n));
            assert!(numbers.clone().take(count + 1).all(|n| held.has(ObjId(n))));
        }
        assert!(held.iter().map(|obj| obj.0).eq(numbers));
        assert!(!held.has(ObjId(7_000)));
    }
}
