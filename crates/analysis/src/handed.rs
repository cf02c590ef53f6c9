//! Functions of a library that are handed to somebody who calls them:
//! `asyncio.to_thread(path.read_text)`, `loop.run_in_executor(None, os.remove, path)`.

use toctou_core::ir::{CallKind, Var};

use crate::calls::CallView;
use crate::entity::EntityId;
use crate::interp::Interp;
use crate::points_to::Obj;
use crate::sym::{Sym, SymKind};

impl Interp<'_, '_, '_> {
    /// What the call of such a function gives back, if it is one.
    pub(crate) fn call_library_back(
        &mut self,
        callee: Sym,
        var: Option<Var>,
        args: &[Sym],
        view: &CallView<'_>,
    ) -> Option<Sym> {
        let node = self.cx.points_to.node(self.id, var?);
        let mut exts: Vec<EntityId> = Vec::new();
        for obj in self.cx.points_to.objects(node) {
            match obj {
                Obj::Ext(e) => exts.push(e),
                // The program has one of its own.
                _ => return None,
            }
        }
        let (recv, method) = match *self.cx.syms.kind(callee) {
            SymKind::Field(base, name) => (Some(base), Some(name)),
            _ => (None, None),
        };
        let first = view.arg_vars.len().saturating_sub(args.len());
        let handed = CallView {
            dst: view.dst,
            recv,
            method,
            args,
            arg_vars: view.arg_vars[first..].to_vec(),
            named: view.named,
            entity: None,
            number: view.number,
            kind: CallKind::Plain,
        };
        let fallback = self.call_sym(&handed, Some(callee));
        for e in exts {
            let handed = CallView {
                entity: Some(e),
                arg_vars: handed.arg_vars.clone(),
                ..handed
            };
            if let Some(result) = self.external(&handed, fallback) {
                return Some(result);
            }
        }
        let rules = self
            .cx
            .library
            .methods(method?, &mut self.cx.entities, &mut self.cx.names);
        let rule = rules.iter().find(|r| self.rule_holds(r, &handed))?;
        Some(self.use_rule(rule, &handed, fallback))
    }
}
