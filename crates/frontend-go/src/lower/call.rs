//! Calls, built-in functions and channels.

use toctou_core::Span;
use toctou_core::ir::{Arg, CallKind, Callee, Op, Var, VarInfo, VarKind};
use tree_sitter::Node;

use super::expr::is_dereference;
use super::vars::is_builtin_type;
use super::{Lower, children, field, span};

fn plain(value: Var) -> Arg {
    Arg {
        value,
        spread: false,
        name: None,
    }
}

impl<'t> Lower<'t> {
    pub(super) fn call(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        if let Some(value) = self.builtin(node) {
            return value;
        }
        let Some((callee, args)) = self.call_parts(node) else {
            return self.opaque(at, Vec::new());
        };
        self.emit_call(at, callee, args)
    }

    fn emit_call(&mut self, at: Span, callee: Callee, args: Vec<Arg>) -> Var {
        let dst = self.temp();
        self.emit(
            at,
            Op::Call {
                dst,
                callee,
                args: args.into(),
                kind: CallKind::Plain,
            },
        );
        dst
    }

    /// Callee and arguments, evaluated; not yet called.
    pub(super) fn call_parts(&mut self, node: Node<'_>) -> Option<(Callee, Vec<Arg>)> {
        let mut node = node;
        while node.kind() == "parenthesized_expression" {
            node = *children(node).first()?;
        }
        if node.kind() != "call_expression" {
            return None;
        }
        let mut function = field(node, "function")?;
        while function.kind() == "parenthesized_expression" {
            function = *children(function).first()?;
        }
        // `f[T](x)` looks like an index.
        if function.kind() == "index_expression"
            && let Some(operand) = field(function, "operand")
            && self.is_generic(operand, function)
        {
            function = operand;
        }
        if function.kind() == "type_instantiation_expression"
            && let Some(inner) = field(function, "type")
        {
            function = inner;
        }
        let callee = match function.kind() {
            "selector_expression" | "qualified_type" => {
                let obj = field(function, "operand").or_else(|| field(function, "package"))?;
                let obj = self.expression(obj);
                let name = field(function, "field").or_else(|| field(function, "name"))?;
                let name = self.name(name);
                Callee::Method { obj, name }
            }
            _ => Callee::Value(self.expression(function)),
        };
        let args = self.arguments(node);
        Some((callee, args))
    }

    fn arguments(&mut self, node: Node<'_>) -> Vec<Arg> {
        let Some(list) = field(node, "arguments") else {
            return Vec::new();
        };
        let appends = field(node, "function").is_some_and(|f| self.text(f) == "append");
        children(list)
            .into_iter()
            .map(|argument| {
                let mut value = self.expression(argument);
                // `append(list, *p)`: what is in there is a struct of its own.
                if appends && is_dereference(argument) {
                    value = self.copied(span(argument), value);
                }
                Arg {
                    value,
                    spread: argument.kind() == "variadic_argument",
                    name: None,
                }
            })
            .collect()
    }

    /// Is `f[T]` a function with a type argument, not an entry of a table?
    fn is_generic(&mut self, operand: Node<'_>, index: Node<'_>) -> bool {
        let looks_like_type = field(index, "index").is_some_and(|i| {
            let text = self.text(i);
            let last = text.rsplit('.').next().unwrap_or(text);
            is_builtin_type(text) || i.kind().ends_with("_type") || super::types::is_exported(last)
        });
        match operand.kind() {
            "identifier" => {
                let name = self.name(operand);
                !self.is_local(name) && looks_like_type
            }
            "selector_expression" => {
                let package = field(operand, "operand").is_some_and(|o| {
                    o.kind() == "identifier" && {
                        let name = self.name(o);
                        self.is_import(name)
                    }
                });
                package && looks_like_type
            }
            _ => false,
        }
    }

    /// Functions that are part of the language. `None`: an ordinary call.
    fn builtin(&mut self, node: Node<'_>) -> Option<Var> {
        let function = field(node, "function")?;
        if function.kind() != "identifier" && function.kind() != "type_identifier" {
            return None;
        }
        let name = self.name(function);
        if self.local(name).is_some() {
            return None;
        }
        let at = span(node);
        let text = self.text(function);
        let list: Vec<Node<'_>> = field(node, "arguments").map(children).unwrap_or_default();
        if self.package.contains_key(&name) {
            // A conversion to a type of this file.
            if self.classes.contains_key(&name) {
                let ty = self.type_ref(function);
                let src = self.expression(*list.first()?);
                let dst = self.typed_temp(ty);
                self.emit(at, Op::Copy { dst, src });
                return Some(dst);
            }
            return None;
        }
        if is_builtin_type(text) {
            let src = self.expression(*list.first()?);
            return Some(self.copy(at, src));
        }
        match text {
            "delete" => {
                let [map, key] = list.as_slice() else {
                    return None;
                };
                let obj = self.expression(*map);
                let key = self.expression(*key);
                self.emit(at, Op::Delete { obj, key: Err(key) });
                Some(self.null(at))
            }
            "new" | "make" => {
                let ty = self.type_ref(*list.first()?);
                let channel = list.first()?.kind() == "channel_type";
                let dst = self.typed_temp(ty);
                if channel {
                    // Made by a call, so that its capacity can be asked for.
                    let callee = self.global(at, "chan.make");
                    let args = match list.get(1) {
                        Some(size) => vec![plain(self.expression(*size))],
                        None => Vec::new(),
                    };
                    self.emit(
                        at,
                        Op::Call {
                            dst,
                            callee: Callee::Value(callee),
                            args: args.into(),
                            kind: CallKind::Plain,
                        },
                    );
                } else {
                    let op = Op::Object {
                        dst,
                        fields: Vec::new(),
                    };
                    self.emit(at, op);
                }
                Some(dst)
            }
            _ => None,
        }
    }

    fn typed_temp(&mut self, ty: Option<toctou_core::ir::TypeRef>) -> Var {
        self.f.var(VarInfo {
            name: None,
            kind: VarKind::Temp,
            captured: false,
            lent: false,
            word: false,
            ty: ty.map(Box::new),
        })
    }

    /// `ch <- v`
    pub(super) fn send(&mut self, node: Node<'_>) {
        let at = span(node);
        let channel = self.operand(node, "channel");
        let value = self.operand(node, "value");
        let callee = self.global(at, "chan.send");
        self.emit_call(
            at,
            Callee::Value(callee),
            vec![plain(channel), plain(value)],
        );
    }

    /// `<-ch`
    pub(super) fn receive(&mut self, node: Node<'_>) -> Var {
        let at = span(node);
        let channel = self.operand(node, "operand");
        let callee = self.global(at, "chan.receive");
        self.emit_call(at, Callee::Value(callee), vec![plain(channel)])
    }
}
