//! Parameters whose values nobody passes, because the framework makes them for every call:
//! `db: Session = Depends(get_db)`, `db: Annotated[Session, Depends(get_db)]`, and
//! `db: SessionDep` where `SessionDep` stands for the latter. (What a name stands for is known
//! when all files are: `crate::resolve` connects those.)

use ruff_python_ast::{self as ast, Expr};
use toctou_core::ir::{CallKind, Callee, Cell, FuncId, Op, TypeDef, Var, VarInfo, VarKind};

use super::call::is_class_name;
use super::{Lower, at};
use crate::types;

/// Under this name a module has what makes the values of an alias.
pub(crate) fn maker_of(alias: &str) -> String {
    format!("{alias}()")
}

impl<'a> Lower<'a> {
    /// The register that the body knows a parameter by, if the caller does not set it.
    pub(super) fn given(
        &mut self,
        param: &'a ast::Parameter,
        default: Option<&'a Expr>,
        raw: Var,
    ) -> Option<Var> {
        let annotation = param.annotation.as_deref();
        let maker = default
            .and_then(dependency)
            .or_else(|| annotation.and_then(annotated_dependency))?;
        let kind = if is_class_name(maker) {
            CallKind::New
        } else {
            CallKind::Plain
        };
        let callee = match maker {
            Expr::Attribute(attribute) => Callee::Method {
                obj: self.expr(&attribute.value),
                name: self.names.intern(attribute.attr.as_str()),
            },
            other => Callee::Value(self.expr(other)),
        };
        let made = self.call_op(at(maker), callee, &[], kind);
        // What is not asynchronous is waited for as well: it has a thread.
        let src = self.awaited(at(maker), made);
        let dst = self.instead_of(param, raw);
        self.emit(at(&param.name), Op::Copy { dst, src });
        Some(dst)
    }

    fn instead_of(&mut self, param: &ast::Parameter, raw: Var) -> Var {
        let of = self.f.vars.get(raw.0 as usize);
        let ty = of.and_then(|info| info.ty.clone());
        let name = Some(self.names.intern(param.name.as_str()));
        self.f.var(VarInfo {
            name,
            kind: VarKind::Const,
            captured: false,
            lent: false,
            word: false,
            ty,
        })
    }

    /// `SessionDep = Annotated[Session, Depends(get_db)]`: a name for the type, and who makes it.
    pub(super) fn alias(&mut self, name: &'a str, value: &'a Expr) {
        if self.f.scope != 0 || !self.f.class_names.is_empty() {
            return;
        }
        let Some(maker) = annotated_dependency(value) else {
            return;
        };
        let known = self.names.intern(name);
        if let Some(ty) = types::annotation(&mut self.names, Some(value)) {
            self.module.types.push((known, TypeDef::Alias(ty)));
        }
        let value = self.expr(maker);
        let hidden = self.names.intern(&maker_of(name));
        let var = self.f.var(VarInfo {
            name: Some(hidden),
            kind: VarKind::Const,
            captured: true,
            lent: false,
            word: false,
            ty: None,
        });
        let cell = Cell {
            owner: FuncId(0),
            var,
        };
        self.emit(at(maker), Op::StoreVar { cell, value });
        self.makers.push((known, var));
    }
}

/// What `Depends(f)` calls.
fn dependency(marker: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = marker else {
        return None;
    };
    let text = types::dotted(&call.func)?;
    if !matches!(text.rsplit('.').next(), Some("Depends" | "Security")) {
        return None;
    }
    let named = |k: &&ast::Keyword| k.arg.as_ref().is_some_and(|a| a.as_str() == "dependency");
    let by_name = || call.arguments.keywords.iter().find(named);
    call.arguments
        .args
        .first()
        .or_else(|| by_name().map(|k| &k.value))
}

fn annotated_dependency(annotation: &Expr) -> Option<&Expr> {
    let Expr::Subscript(subscript) = annotation else {
        return None;
    };
    let text = types::dotted(&subscript.value)?;
    let Expr::Tuple(parts) = subscript.slice.as_ref() else {
        return None;
    };
    let is_annotated = text.rsplit('.').next() == Some("Annotated");
    let mut markers = parts.elts.iter().skip(1).filter(|_| is_annotated);
    markers.find_map(dependency)
}
