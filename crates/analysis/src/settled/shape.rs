//! What can be said of a function's registers before any value is known.
//!
//! A function is looked at several times, and gone through several times each
//! time; none of this changes in between.

use toctou_core::ir::{Function, Op, Term, Var, VarKind};

/// Variables that are set in several places, and followed by the way taken.
const MAX_SEVERAL: usize = 24;

/// Set in one place.
const ONCE: u8 = u8::MAX;
/// Set in several, and not followed; or set by somebody who has its address.
const LOST: u8 = u8::MAX - 1;

/// How a register is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// It has one value, wherever it is asked for.
    Once,
    /// By the way taken: its number among those.
    Several(usize),
    /// It can be anything.
    Lost,
}

pub(super) struct Shape {
    kept: Vec<u8>,
    /// The registers that are followed by the way taken.
    pub(super) several: Vec<Var>,
    awaited: Vec<bool>,
    /// The number of the first call in each block.
    pub(super) calls: Vec<u32>,
    /// The number of the first instruction of each block; its end counts as one.
    pub(super) starts: Vec<u32>,
    /// The number of the first instruction that asks for a register.
    first_use: Vec<u32>,
}

impl Shape {
    pub(super) fn new(function: &Function) -> Self {
        let count = function.vars.len();
        let mut set = vec![false; count];
        let mut several: Vec<Var> = function.params.clone();
        for param in &function.params {
            set[param.0 as usize] = true;
        }
        let mut shape = Self {
            kept: vec![ONCE; count],
            several: Vec::new(),
            awaited: vec![false; count],
            calls: Vec::with_capacity(function.blocks.len()),
            starts: Vec::with_capacity(function.blocks.len()),
            first_use: vec![u32::MAX; count],
        };
        let (mut call, mut at) = (0, 0);
        for block in &function.blocks {
            shape.calls.push(call);
            shape.starts.push(at);
            for inst in &block.insts {
                if let Some(dst) = inst.op.dst()
                    && std::mem::replace(&mut set[dst.0 as usize], true)
                {
                    several.push(dst);
                }
                match &inst.op {
                    Op::Call { .. } | Op::TaggedTemplate { .. } => call += 1,
                    Op::Await { src, .. } => shape.awaited[src.0 as usize] = true,
                    _ => {}
                }
                asked(&inst.op, |v| shape.note_use(v, at));
                at += 1;
            }
            if let Term::Branch { cond: v, .. } | Term::Return(Some(v)) = block.term {
                shape.note_use(v, at);
            }
            at += 1;
        }
        // A variable that is not set where it is declared.
        for (v, info) in function.vars.iter().enumerate() {
            if info.kind == VarKind::Let && !info.captured {
                several.push(Var(v as u32));
            }
        }
        for v in super::lent(function) {
            shape.kept[v.0 as usize] = LOST;
        }
        for v in several {
            let kept = &mut shape.kept[v.0 as usize];
            if *kept != ONCE {
                continue;
            }
            if shape.several.len() < MAX_SEVERAL {
                *kept = shape.several.len() as u8;
                shape.several.push(v);
            } else {
                *kept = LOST;
            }
        }
        shape
    }

    fn note_use(&mut self, v: Var, at: u32) {
        let first = &mut self.first_use[v.0 as usize];
        *first = at.min(*first);
    }

    pub(super) fn kept(&self, v: Var) -> Kept {
        match self.kept[v.0 as usize] {
            ONCE => Kept::Once,
            LOST => Kept::Lost,
            number => Kept::Several(usize::from(number)),
        }
    }

    pub(super) fn is_awaited(&self, v: Var) -> bool {
        self.awaited[v.0 as usize]
    }

    /// Does an instruction up to this one ask for the register?
    pub(super) fn is_used_by(&self, v: Var, at: u32) -> bool {
        self.first_use[v.0 as usize] <= at
    }
}

/// The registers whose values an instruction asks for.
fn asked(op: &Op, mut each: impl FnMut(Var)) {
    match op {
        Op::Copy { src: v, .. }
        | Op::Await { src: v, .. }
        | Op::Enter { resource: v, .. }
        | Op::Not { src: v, .. }
        | Op::StoreVar { value: v, .. }
        | Op::SetField { value: v, .. }
        | Op::GetField { obj: v, .. } => each(*v),
        Op::Object { fields, .. } => fields.iter().for_each(|field| each(field.1)),
        Op::Phi { from, .. } => from.iter().for_each(|v| each(*v)),
        Op::Binary { left, right, .. } => {
            each(*left);
            each(*right);
        }
        Op::Call { args, .. } => args.iter().for_each(|arg| each(arg.value)),
        _ => {}
    }
}
