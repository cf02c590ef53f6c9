//! What was made before anybody called, and is found by everybody who calls.
//!
//! A request has an object of its own, and a field of that leads to something that was made when
//! the process started: copied structs, builders and lists lie between, and no function sees both
//! ends. Which object is written to is asked of `points_to`: if all that it can be were made by
//! functions that run at the start and for no client, every client writes to the same one.

use rustc_hash::FxHashSet;
use toctou_core::ir::{FuncId, FuncKind, Var};

use crate::context::Context;
use crate::order;
use crate::points_to::Obj;

pub(super) struct AtStart {
    /// Functions that run when the process starts, and never for a client.
    only: Vec<bool>,
}

impl AtStart {
    /// `served`: where clients and threads begin.
    pub(super) fn new(cx: &Context<'_, '_>, edges: &[Vec<u32>], served: &[FuncId]) -> Self {
        let later = order::reachable(edges, served.iter().copied());
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
        let mut calls: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
        for (f, plain) in cx.plain.iter().enumerate() {
            for call in plain.calls.iter().filter(|c| !c.spawned) {
                calls[f].push(call.callee.0);
                callers[call.callee.0 as usize].push(f as u32);
            }
        }
        // Who registers a handler runs at the start, and so do those who call it.
        let registered = cx.entries.iter().map(|e| e.func);
        let inits = cx.program.functions.iter().enumerate();
        let inits = inits.filter(|(_, f)| f.kind == FuncKind::ModuleInit);
        let first = registered.chain(inits.map(|(f, _)| FuncId(f as u32)));
        let first = order::reachable(&callers, first.collect::<FxHashSet<_>>());
        let first = (0..edges.len()).filter(|f| first[*f] && !later[*f]);
        let mut only = order::reachable(&calls, first.map(|f| FuncId(f as u32)));
        for (f, only) in only.iter_mut().enumerate() {
            *only &= !later[f];
        }
        Self { only }
    }

    /// Is whatever a register can hold made at the start?
    pub(super) fn made(&self, cx: &Context<'_, '_>, f: FuncId, var: Var) -> bool {
        let mut any = false;
        for object in cx.points_to.objects(cx.points_to.node(f, var)) {
            let site = match object {
                Obj::Literal(site) | Obj::Array(site) | Obj::Container(site, _) => site,
                // Of which one of its class, nobody knows.
                Obj::Instance(_) => return false,
                _ => continue,
            };
            match cx.points_to.made_in(cx.program, site) {
                Some(maker) if self.only[maker.0 as usize] => any = true,
                // A declared type alone says nothing of who made it.
                None => {}
                Some(_) => return false,
            }
        }
        any
    }
}
