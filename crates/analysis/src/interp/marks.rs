//! What is known of each term while one function is looked at, at a glance. Terms are numbered
//! through the whole program, so a list of numbers does: a term is marked if it has the number of
//! the function's turn, and nothing has to be wiped between two functions.

use std::cell::RefCell;

use crate::sym::Sym;

#[derive(Default)]
pub struct Marks {
    turn: u32,
    /// Terms that what others depend on was made from: if more is found out about these, it has
    /// to be made anew.
    asked: RefCell<Marked>,
    /// Terms of which there is more to know than what they are made of.
    known: Marked,
}

/// A set of terms, for each turn.
#[derive(Default)]
pub struct Marked(Vec<u32>);

impl Marked {
    fn has(&self, sym: Sym, turn: u32) -> bool {
        self.0.get(sym.0 as usize).is_some_and(|t| *t == turn)
    }

    pub fn mark(&mut self, sym: Sym, turn: u32) {
        let i = sym.0 as usize;
        if i >= self.0.len() {
            self.0.resize((i + 1).next_power_of_two(), 0);
        }
        self.0[i] = turn;
    }
}

impl Marks {
    /// Another function is looked at.
    pub fn begin(&mut self) {
        self.turn += 1;
    }

    pub fn turn(&self) -> u32 {
        self.turn
    }

    pub fn asked(&self) -> std::cell::RefMut<'_, Marked> {
        self.asked.borrow_mut()
    }

    pub fn ask(&self, sym: Sym) {
        self.asked().mark(sym, self.turn);
    }

    pub fn is_known(&self, sym: Sym) -> bool {
        self.known.has(sym, self.turn)
    }

    /// There is something to know of a term. Does that concern who has asked?
    pub fn note(&mut self, sym: Sym) -> bool {
        self.known.mark(sym, self.turn);
        self.asked.get_mut().has(sym, self.turn)
    }
}
