//! What several checks ask of the code: calls and what models say about them,
//! words in names, the first line of a statement.

use std::rc::Rc;

use smallvec::SmallVec;
use toctou_core::Span;
use toctou_core::ir::{FuncId, Function, Inst, Op};

use crate::context::Context;
use crate::effect::Pos;
use crate::entity::EntityId;
use crate::library::Call;

/// Every call of a function with its place and its number, in order.
pub fn calls(function: &Function) -> impl Iterator<Item = (Pos, u32, &Inst)> {
    let mut ordinal = 0;
    function
        .blocks
        .iter()
        .enumerate()
        .flat_map(|(b, block)| {
            block.insts.iter().enumerate().map(move |(i, inst)| {
                let at = Pos {
                    block: b as u32,
                    inst: i as u32,
                };
                (at, inst)
            })
        })
        .filter(|(_, inst)| matches!(inst.op, Op::Call { .. } | Op::TaggedTemplate { .. }))
        .map(move |(at, inst)| {
            let n = ordinal;
            ordinal += 1;
            (at, n, inst)
        })
}

/// What models say about the libraries' functions that a call can mean.
pub fn models(cx: &mut Context<'_, '_>, f: FuncId, n: u32) -> SmallVec<[(EntityId, Rc<Call>); 2]> {
    let exts: SmallVec<[EntityId; 4]> = cx.points_to.targets(f, n).1.iter().copied().collect();
    let mut out = SmallVec::new();
    for e in exts {
        let rules = cx.library.calls(e, &mut cx.entities, &mut cx.names);
        out.extend(rules.iter().map(|r| (e, Rc::clone(r))));
    }
    out
}

/// Is one of the words a part of the identifier? `runWithLimit` has `limit`.
pub fn mentions(name: &str, words: &[&str]) -> bool {
    let mut from = 0;
    let mut lower = false;
    let bytes = name.as_bytes();
    for i in 0..=bytes.len() {
        let c = bytes.get(i).copied().unwrap_or(b' ');
        let cut = !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && lower);
        if cut {
            let part = &bytes[from..i];
            if words
                .iter()
                .any(|w| part.eq_ignore_ascii_case(w.as_bytes()))
            {
                return true;
            }
            from = if c.is_ascii_alphanumeric() { i } else { i + 1 };
        }
        lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    false
}

/// A statement's span, up to the end of its first line.
pub fn first_line(cx: &Context<'_, '_>, f: FuncId, span: Span) -> Span {
    let text = cx.program.file_of(f).slice(span);
    let line = text.find('\n').map_or(text.len(), |n| n);
    Span::new(
        span.start,
        span.start + text[..line].trim_end().len() as u32,
    )
}

/// Blocks that run though nothing failed.
pub fn without_failure(function: &Function) -> Vec<bool> {
    let mut seen = vec![false; function.blocks.len()];
    let mut work = vec![0u32];
    while let Some(b) = work.pop() {
        if let Some(slot) = seen.get_mut(b as usize)
            && !std::mem::replace(slot, true)
        {
            let next = function.blocks[b as usize].term.successors();
            work.extend(next.iter().map(|t| t.0));
        }
    }
    seen
}
