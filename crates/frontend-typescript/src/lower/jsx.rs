//! JSX: what it renders to is unknown, what goes into it is not.

use oxc_ast::ast::{
    JSXAttributeItem, JSXAttributeValue, JSXChild, JSXElement, JSXElementName, JSXExpression,
    JSXFragment,
};
use toctou_core::ir::Var;

use super::{Lower, MAX_DEPTH, span};

impl<'a> Lower<'a, '_> {
    pub(super) fn jsx_element(&mut self, element: &'a JSXElement<'a>) -> Var {
        let at = span(element.span);
        if self.depth >= MAX_DEPTH {
            return self.too_deep(at);
        }
        self.depth += 1;
        let mut from = Vec::new();
        if let JSXElementName::IdentifierReference(id) = &element.opening_element.name {
            from.push(self.read(id));
        }
        for attribute in &element.opening_element.attributes {
            match attribute {
                JSXAttributeItem::SpreadAttribute(e) => from.push(self.expr(&e.argument)),
                JSXAttributeItem::Attribute(attribute) => match &attribute.value {
                    Some(JSXAttributeValue::ExpressionContainer(e)) => {
                        self.jsx_expression(&e.expression, &mut from);
                    }
                    Some(JSXAttributeValue::Element(e)) => from.push(self.jsx_element(e)),
                    Some(JSXAttributeValue::Fragment(e)) => from.push(self.jsx_fragment(e)),
                    Some(JSXAttributeValue::StringLiteral(_)) | None => {}
                },
            }
        }
        self.jsx_children(&element.children, &mut from);
        self.depth -= 1;
        self.opaque(at, from)
    }

    pub(super) fn jsx_fragment(&mut self, fragment: &'a JSXFragment<'a>) -> Var {
        let at = span(fragment.span);
        if self.depth >= MAX_DEPTH {
            return self.too_deep(at);
        }
        self.depth += 1;
        let mut from = Vec::new();
        self.jsx_children(&fragment.children, &mut from);
        self.depth -= 1;
        self.opaque(at, from)
    }

    fn jsx_children(&mut self, children: &'a [JSXChild<'a>], from: &mut Vec<Var>) {
        for child in children {
            match child {
                JSXChild::Text(_) => {}
                JSXChild::Element(e) => from.push(self.jsx_element(e)),
                JSXChild::Fragment(e) => from.push(self.jsx_fragment(e)),
                JSXChild::ExpressionContainer(e) => self.jsx_expression(&e.expression, from),
                JSXChild::Spread(e) => from.push(self.expr(&e.expression)),
            }
        }
    }

    fn jsx_expression(&mut self, expression: &'a JSXExpression<'a>, from: &mut Vec<Var>) {
        if let Some(e) = expression.as_expression() {
            from.push(self.expr(e));
        }
    }
}
