//! Type annotations, as far as they name something.
//!
//! No type checker: `Promise<Store>` becomes `Store`, `Store[]` an array with
//! element `Store`, and everything that names no class is dropped. That is
//! enough to find the method behind `this.store.save()`.

use oxc_ast::ast::{
    Expression, TSType, TSTypeAnnotation, TSTypeName, TSTypeOperatorOperator,
    TSTypeParameterInstantiation, TSTypeQueryExprName,
};
use toctou_core::ir::TypeRef;
use toctou_core::{Name, Names};

/// `Map<string, Map<string, …>>`: deeper elements help nobody.
const MAX_DEPTH: u32 = 16;

pub(crate) fn annotation(
    names: &mut Names,
    annotation: Option<&TSTypeAnnotation<'_>>,
) -> Option<TypeRef> {
    type_ref(names, &annotation?.type_annotation)
}

pub(crate) fn type_ref(names: &mut Names, ty: &TSType<'_>) -> Option<TypeRef> {
    convert(names, ty, 0)
}

/// The type that an initialiser states: `new Map<string, Session>()`, `x as Store`.
pub(crate) fn of_initialiser(names: &mut Names, init: &Expression<'_>) -> Option<TypeRef> {
    match init {
        Expression::NewExpression(new) => {
            let mut text = String::new();
            dotted_expression(&new.callee, &mut text, 0)?;
            let name = names.intern(&text);
            let element = element_of(names, &text, new.type_arguments.as_deref(), 0);
            Some(TypeRef { name, element })
        }
        Expression::TSAsExpression(e) => type_ref(names, &e.type_annotation),
        Expression::TSSatisfiesExpression(e) => type_ref(names, &e.type_annotation),
        Expression::TSTypeAssertion(e) => type_ref(names, &e.type_annotation),
        Expression::ParenthesizedExpression(e) => of_initialiser(names, &e.expression),
        Expression::AwaitExpression(e) => match &e.argument {
            Expression::NewExpression(_) => None,
            other => of_initialiser(names, other),
        },
        _ => None,
    }
}

/// The dotted name of an identifier or member expression, as written.
pub(crate) fn dotted(names: &mut Names, expression: &Expression<'_>) -> Option<Name> {
    if let Expression::Identifier(id) = expression {
        return Some(names.intern(id.name.as_str()));
    }
    let mut text = String::new();
    dotted_expression(expression, &mut text, 0)?;
    Some(names.intern(&text))
}

fn dotted_expression(expression: &Expression<'_>, out: &mut String, depth: u32) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match expression {
        Expression::Identifier(id) => out.push_str(id.name.as_str()),
        Expression::ThisExpression(_) => out.push_str("this"),
        Expression::StaticMemberExpression(member) => {
            dotted_expression(&member.object, out, depth + 1)?;
            out.push('.');
            out.push_str(member.property.name.as_str());
        }
        Expression::ParenthesizedExpression(e) => {
            dotted_expression(&e.expression, out, depth + 1)?;
        }
        Expression::TSNonNullExpression(e) => dotted_expression(&e.expression, out, depth + 1)?,
        Expression::TSInstantiationExpression(e) => {
            dotted_expression(&e.expression, out, depth + 1)?;
        }
        _ => return None,
    }
    Some(())
}

pub(crate) fn type_name(names: &mut Names, name: &TSTypeName<'_>) -> Option<Name> {
    if let TSTypeName::IdentifierReference(id) = name {
        return Some(names.intern(id.name.as_str()));
    }
    let mut text = String::new();
    qualified(name, &mut text, 0)?;
    Some(names.intern(&text))
}

fn qualified(name: &TSTypeName<'_>, out: &mut String, depth: u32) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match name {
        TSTypeName::IdentifierReference(id) => out.push_str(id.name.as_str()),
        TSTypeName::QualifiedName(name) => {
            qualified(&name.left, out, depth + 1)?;
            out.push('.');
            out.push_str(name.right.name.as_str());
        }
        TSTypeName::ThisExpression(_) => out.push_str("this"),
    }
    Some(())
}

fn convert(names: &mut Names, ty: &TSType<'_>, depth: u32) -> Option<TypeRef> {
    if depth > MAX_DEPTH {
        return None;
    }
    match ty {
        TSType::TSTypeReference(reference) => {
            let args = reference.type_arguments.as_deref();
            if let TSTypeName::IdentifierReference(id) = &reference.type_name {
                match id.name.as_str() {
                    "Promise" | "PromiseLike" | "Awaited" | "Readonly" | "Partial" | "Required"
                    | "NonNullable" => {
                        return convert(names, args?.params.first()?, depth + 1);
                    }
                    "InstanceType" => return instance_type(names, args?, depth),
                    text => {
                        let name = names.intern(canonical(text));
                        let element = element_of(names, text, args, depth);
                        return Some(TypeRef { name, element });
                    }
                }
            }
            Some(TypeRef {
                name: type_name(names, &reference.type_name)?,
                element: None,
            })
        }
        TSType::TSArrayType(array) => {
            let element = convert(names, &array.element_type, depth + 1).map(Box::new);
            Some(TypeRef {
                name: names.intern("Array"),
                element,
            })
        }
        TSType::TSParenthesizedType(inner) => convert(names, &inner.type_annotation, depth + 1),
        TSType::TSTypeOperatorType(op) => match op.operator {
            TSTypeOperatorOperator::Readonly => convert(names, &op.type_annotation, depth + 1),
            TSTypeOperatorOperator::Keyof | TSTypeOperatorOperator::Unique => None,
        },
        TSType::TSUnionType(union) => union
            .types
            .iter()
            .find_map(|ty| convert(names, ty, depth + 1)),
        TSType::TSIntersectionType(both) => both
            .types
            .iter()
            .find_map(|ty| convert(names, ty, depth + 1)),
        TSType::JSDocNullableType(inner) => convert(names, &inner.type_annotation, depth + 1),
        TSType::JSDocNonNullableType(inner) => convert(names, &inner.type_annotation, depth + 1),
        TSType::TSTypeQuery(query) => {
            let mut text = String::from("typeof ");
            query_name(&query.expr_name, &mut text)?;
            Some(TypeRef {
                name: names.intern(&text),
                element: None,
            })
        }
        // Primitive keywords, literals, object and function types name no class.
        _ => None,
    }
}

fn query_name(name: &TSTypeQueryExprName<'_>, out: &mut String) -> Option<()> {
    match name {
        TSTypeQueryExprName::IdentifierReference(id) => out.push_str(id.name.as_str()),
        TSTypeQueryExprName::QualifiedName(name) => {
            qualified(&name.left, out, 0)?;
            out.push('.');
            out.push_str(name.right.name.as_str());
        }
        TSTypeQueryExprName::ThisExpression(_) => out.push_str("this"),
        TSTypeQueryExprName::TSImportType(_) => return None,
    }
    Some(())
}

/// `InstanceType<typeof Store>` is `Store`.
fn instance_type(
    names: &mut Names,
    args: &TSTypeParameterInstantiation<'_>,
    depth: u32,
) -> Option<TypeRef> {
    match args.params.first()? {
        TSType::TSTypeQuery(query) => {
            let mut text = String::new();
            query_name(&query.expr_name, &mut text)?;
            Some(TypeRef {
                name: names.intern(&text),
                element: None,
            })
        }
        other => convert(names, other, depth + 1),
    }
}

fn canonical(name: &str) -> &str {
    match name {
        "ReadonlyArray" => "Array",
        "ReadonlySet" => "Set",
        "ReadonlyMap" => "Map",
        other => other,
    }
}

fn element_of(
    names: &mut Names,
    name: &str,
    args: Option<&TSTypeParameterInstantiation<'_>>,
    depth: u32,
) -> Option<Box<TypeRef>> {
    let index = match canonical(name) {
        "Array"
        | "Set"
        | "WeakSet"
        | "Iterable"
        | "AsyncIterable"
        | "IterableIterator"
        | "AsyncIterableIterator"
        | "Generator"
        | "AsyncGenerator"
        | "Iterator"
        | "AsyncIterator" => 0,
        "Map" | "WeakMap" | "Record" => 1,
        _ => return None,
    };
    convert(names, args?.params.get(index)?, depth + 1).map(Box::new)
}
