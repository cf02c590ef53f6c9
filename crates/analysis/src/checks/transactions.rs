//! Transactions that no model knows, by their words.
//!
//! A wrapper of somebody's own, a method called `begin`, a text that starts
//! with BEGIN in a helper: what stands near them is taken to be held together.
//! A miss costs less here than a false alarm.

use rustc_hash::FxHashMap;
use toctou_core::ir::{Callee, FuncId, FuncKind, Function, Literal, Op};

use crate::context::Context;

/// Functions that have to do with transactions, in a way that no model knows:
/// they call something of that name, or are handed to it.
#[derive(Default)]
pub struct Speaks {
    known: FxHashMap<FuncId, bool>,
}

impl Speaks {
    pub fn of_transactions(&mut self, cx: &Context<'_, '_>, f: FuncId) -> bool {
        if let Some(&known) = self.known.get(&f) {
            return known;
        }
        let mut said = false;
        // A callback's own function says what it is called back by.
        let mut at = Some(f);
        for _ in 0..3 {
            let Some(g) = at else { break };
            let function = cx.program.function(g);
            if function.kind != FuncKind::ModuleInit {
                said |= names_transaction(cx, function);
            } else {
                said |= is_handed_over(cx, g, f);
            }
            at = function.parent;
        }
        self.known.insert(f, said);
        said
    }
}

fn is_transaction_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["transaction", "commit", "batch", "atomic"]
        .iter()
        .any(|w| name.contains(w))
        || name == "begin"
        || name == "tx"
}

fn names_transaction(cx: &Context<'_, '_>, function: &Function) -> bool {
    function
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .any(|inst| match &inst.op {
            Op::Call {
                callee: Callee::Method { name, .. },
                ..
            } => is_transaction_word(cx.names.text(*name)),
            Op::LoadVar { cell, .. } => {
                let var = &cx.program.function(cell.owner).vars[cell.var.0 as usize];
                var.name
                    .is_some_and(|n| is_transaction_word(cx.names.text(n)))
            }
            Op::Const {
                value: Literal::Str(text),
                ..
            } => {
                let text = cx.names.text(*text).trim_start();
                text.get(..5)
                    .is_some_and(|t| t.eq_ignore_ascii_case("begin"))
                    || text
                        .get(..5)
                        .is_some_and(|t| t.eq_ignore_ascii_case("start"))
            }
            _ => false,
        })
}

/// Does top-level code hand a function to something that runs transactions?
fn is_handed_over(cx: &Context<'_, '_>, module: FuncId, f: FuncId) -> bool {
    let function = cx.program.function(module);
    function
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .any(|inst| match &inst.op {
            Op::Call {
                callee: Callee::Method { name, .. },
                args,
                ..
            } => {
                is_transaction_word(cx.names.text(*name))
                    && args
                        .iter()
                        .any(|a| cx.points_to.functions(module, a.value).any(|g| g == f))
            }
            _ => false,
        })
}
