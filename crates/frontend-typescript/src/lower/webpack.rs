//! What webpack and its kin write round a module: `x_default = __webpack_require__.n(x)`, and
//! `x_default()` where its default export is used. Both are the module.

use oxc_ast::ast::{BindingPattern, CallExpression, Expression, Program, VariableDeclarator};
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::symbol::SymbolId;
use rustc_hash::FxHashSet;

use super::{Lower, peel};

const REQUIRE: &str = "__webpack_require__";

/// Variables that hold a function which gives a module's default export.
#[derive(Default)]
pub(super) struct Getters(FxHashSet<SymbolId>);

impl Getters {
    /// Those of a bundle of webpack's.
    pub(super) fn of(text: &str, program: &Program<'_>) -> Option<Self> {
        if !text.contains(REQUIRE) {
            return None;
        }
        let mut getters = Self::default();
        getters.visit_program(program);
        Some(getters)
    }
}

impl<'a> Visit<'a> for Getters {
    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let BindingPattern::BindingIdentifier(id) = &declarator.id
            && let Some(Expression::CallExpression(call)) = declarator.init.as_ref().map(peel)
            && wrapped(call).is_some()
            && let Some(symbol) = id.symbol_id.get()
        {
            self.0.insert(symbol);
        }
        walk::walk_variable_declarator(self, declarator);
    }
}

impl<'a> Lower<'a, '_> {
    /// The module that a call only hands on.
    pub(super) fn handed_on(&self, call: &'a CallExpression<'a>) -> Option<&'a Expression<'a>> {
        let getters = self.webpack.as_ref()?;
        match peel(&call.callee) {
            Expression::Identifier(id) if call.arguments.is_empty() => {
                let symbol = self.symbol_of(id)?;
                getters.0.contains(&symbol).then_some(&call.callee)
            }
            _ => wrapped(call),
        }
    }
}

/// The module in `__webpack_require__.n(module)`.
fn wrapped<'e, 'a>(call: &'e CallExpression<'a>) -> Option<&'e Expression<'a>> {
    match peel(&call.callee) {
        Expression::StaticMemberExpression(e)
            if e.property.name == "n" && is_require(&e.object) =>
        {
            call.arguments.first()?.as_expression()
        }
        _ => None,
    }
}

/// Is it what loads a module in a bundle?
pub(super) fn is_require(expression: &Expression<'_>) -> bool {
    matches!(peel(expression), Expression::Identifier(id) if id.name == REQUIRE)
}
