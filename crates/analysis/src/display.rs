//! Symbols as the source would write them, for people.

use toctou_core::ir::FuncId;

use crate::context::Context;
use crate::sym::{CalleeSym, Sym, SymKind};

impl Context<'_, '_> {
    /// A short text for a value, seen from a function. Never longer than a line.
    pub fn display(&self, sym: Sym, from: FuncId) -> String {
        let mut out = String::new();
        self.write_sym(sym, from, &mut out, 0);
        if out.chars().count() > 80 {
            out = out.chars().take(77).collect::<String>() + "…";
        }
        out
    }

    fn var_name(&self, f: FuncId, var: u32) -> Option<&str> {
        let info = self.program.function(f).vars.get(var as usize)?;
        info.name.map(|n| self.names.text(n))
    }

    fn write_sym(&self, sym: Sym, from: FuncId, out: &mut String, depth: u32) {
        if depth > 6 || out.len() > 120 {
            out.push('…');
            return;
        }
        match self.syms.kind(sym) {
            SymKind::Str(n) => {
                out.push('"');
                out.push_str(self.names.text(*n));
                out.push('"');
            }
            SymKind::Num(n) => out.push_str(self.names.text(*n)),
            SymKind::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            SymKind::Null => out.push_str("null"),
            SymKind::Param(i) => {
                let var = self.program.function(from).params.get(*i as usize);
                match var.and_then(|v| self.var_name(from, v.0)) {
                    Some(name) => out.push_str(name),
                    None => out.push_str("args"),
                }
            }
            SymKind::This => out.push_str("this"),
            SymKind::Cell(c) | SymKind::VarLoc(c) => {
                out.push_str(self.var_name(c.owner, c.var.0).unwrap_or("…"));
            }
            SymKind::Field(base, name) => {
                // Destructured parameters have no name of their own: `args.x` is `x`.
                let nameless = matches!(self.syms.kind(*base), SymKind::Param(i)
                    if self.program.function(from).params.get(*i as usize)
                        .and_then(|v| self.var_name(from, v.0)).is_none());
                if *name == self.words.published {
                    self.write_sym(*base, from, out, depth + 1);
                    return;
                }
                if !nameless {
                    self.write_sym(*base, from, out, depth + 1);
                    out.push('.');
                }
                out.push_str(self.names.text(*name));
            }
            SymKind::Index(base, index) => {
                self.write_sym(*base, from, out, depth + 1);
                out.push('[');
                self.write_sym(*index, from, out, depth + 1);
                out.push(']');
            }
            SymKind::Element(base) => {
                self.write_sym(*base, from, out, depth + 1);
                out.push_str("[…]");
            }
            SymKind::Ext(e) => {
                let path = self.names.text(self.entities.get(*e).path);
                out.push_str(if path.is_empty() { "…" } else { path });
            }
            SymKind::Func(f) | SymKind::Bound(f, _) => {
                out.push_str(&self.program.qualified_name(*f));
            }
            SymKind::Class(c) => {
                out.push_str(self.names.text(self.program.classes[c.0 as usize].name));
            }
            SymKind::Concat(parts) => {
                for p in parts.iter() {
                    match self.syms.kind(*p) {
                        SymKind::Str(n) => out.push_str(self.names.text(*n)),
                        _ => {
                            out.push_str("${");
                            self.write_sym(*p, from, out, depth + 1);
                            out.push('}');
                        }
                    }
                }
            }
            SymKind::Join(parts) => {
                for (i, p) in parts.iter().enumerate() {
                    if i > 0 {
                        out.push('/');
                    }
                    match self.syms.kind(*p) {
                        SymKind::Str(n) => out.push_str(self.names.text(*n)),
                        _ => self.write_sym(*p, from, out, depth + 1),
                    }
                }
            }
            SymKind::Call(call) => {
                match call.callee {
                    CalleeSym::Method(n) => {
                        let name = self.names.text(n);
                        if name == "<op>" {
                            out.push('…');
                            return;
                        }
                        if n == self.words.either
                            && let [first, second] = *call.args
                        {
                            out.push('(');
                            self.write_sym(first, from, out, depth + 1);
                            out.push_str(" or ");
                            self.write_sym(second, from, out, depth + 1);
                            out.push(')');
                            return;
                        }
                        if let Some(recv) = call.recv
                            && depth < 2
                        {
                            self.write_sym(recv, from, out, depth + 1);
                            out.push('.');
                        }
                        out.push_str(name);
                    }
                    CalleeSym::Func(f) => out.push_str(&self.program.qualified_name(f)),
                    CalleeSym::Value(v) => self.write_sym(v, from, out, depth + 1),
                }
                out.push('(');
                for (i, a) in call.args.iter().take(2).enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.write_sym(*a, from, out, depth + 2);
                }
                if call.args.len() > 2 {
                    out.push_str(", …");
                }
                out.push(')');
            }
            SymKind::Object(_) => out.push_str("{…}"),
            SymKind::Array(_) => out.push_str("[…]"),
            SymKind::Eq(..) | SymKind::Not(_) => out.push_str("condition"),
            SymKind::Namespace(_)
            | SymKind::New(..)
            | SymKind::Fresh(_)
            | SymKind::Handle(_)
            | SymKind::Unknown(_) => out.push('…'),
        }
    }
}
