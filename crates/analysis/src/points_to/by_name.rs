//! Methods of things that nothing is known about: known by their names, or not at all.

use toctou_core::ir::{CallKind, FuncKind};

use super::{BY_NAME, Env, Solver};

impl Solver {
    /// Calls of a method on a value that nothing is known about: if few classes
    /// have a method of that name, and no library does, they are meant.
    pub(super) fn resolve_by_name(&mut self, env: &mut Env<'_, '_>) -> bool {
        let mut changed = false;
        for call in 0..self.calls.len() {
            let site = &self.calls[call];
            let Some(method) = site.method else { continue };
            if !site.funcs.is_empty() || !site.exts.is_empty() {
                continue;
            }
            let Some(recv) = site.recv else { continue };
            let data = &self.nodes[recv.0 as usize];
            if !data.pts.is_empty() || data.foreign {
                continue;
            }
            let Some(candidates) = self.methods_by_name.get(&method) else {
                continue;
            };
            if candidates.len() > BY_NAME
                || env
                    .library
                    .methods(method, env.entities, env.names)
                    .iter()
                    .any(|rule| !rule.is_of_rows())
                || is_common(env.names.text(method))
            {
                continue;
            }
            for f in candidates.clone() {
                if env.program.function(f).kind == FuncKind::StaticMethod {
                    continue;
                }
                self.calls[call].ducked = true;
                self.invoke(call as u32, f);
                changed = true;
            }
        }
        for call in 0..self.calls.len() {
            let site = &self.calls[call];
            if site.kind == CallKind::Decorate && site.funcs.is_empty() && site.exts.is_empty() {
                self.stands_for_argument(call as u32);
                changed = true;
            }
        }
        // What no class has may still be known to a model by name.
        for call in 0..self.calls.len() {
            let site = &self.calls[call];
            if site.method.is_some() && site.funcs.is_empty() && site.exts.is_empty() {
                self.duck(env, call as u32, None);
                changed = true;
            }
        }
        changed
    }
}

/// Names that half the world's objects have, whether written `get` or `Get`: they say
/// nothing about the class.
fn is_common(name: &str) -> bool {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    matches!(
        name.as_str(),
        "get"
            | "set"
            | "has"
            | "add"
            | "delete"
            | "push"
            | "pop"
            | "map"
            | "filter"
            | "forEach"
            | "then"
            | "catch"
            | "toString"
            | "on"
            | "once"
            | "emit"
            | "call"
            | "apply"
            | "eq"
            | "ne"
            | "lt"
            | "le"
            | "lte"
            | "gt"
            | "ge"
            | "gte"
            | "cmp"
            | "bind"
            | "close"
            | "open"
            | "start"
            | "stop"
            | "send"
            | "write"
            | "read"
            | "end"
            | "next"
            | "run"
            | "log"
            | "info"
            | "warn"
            | "error"
            | "debug"
            | "trim"
            | "split"
            | "join"
            | "find"
            | "keys"
            | "values"
            | "entries"
            | "clear"
            | "slice"
            | "includes"
            | "test"
            | "exec"
            | "parse"
            | "stringify"
            | "query"
            | "connect"
            | "update"
            | "create"
            | "remove"
            | "list"
            | "load"
            | "save"
            | "init"
            | "handle"
            | "execute"
            | "request"
            | "fetch"
            | "isDirectory"
            | "isFile"
            | "isSymbolicLink"
            | "toISOString"
            | "getTime"
            | "toJSON"
            | "json"
            | "text"
            | "status"
            | "header"
            | "append"
            | "replace"
            | "match"
            | "sort"
            | "reduce"
            | "some"
            | "every"
            | "concat"
            | "abort"
            | "destroy"
            | "kill"
            | "pipe"
            | "use"
            | "all"
            | "first"
            | "release"
            | "dispose"
            | "validate"
            | "commit"
            | "rollback"
            | "flush"
            | "begin"
            | "refresh"
            | "cursor"
            | "wait"
            | "cancel"
            | "submit"
            | "put"
            | "copy"
            | "exists"
            | "count"
            | "items"
            | "reset"
    )
}
