//! Type annotations, as far as they name something.
//!
//! No type checker: `Optional[Store]` and `Store | None` become `Store`,
//! `list[Store]` an array with element `Store`, and everything that names no
//! class is dropped. Python's containers have the IR's names: `Map`, `Array`, `Set`.

use ruff_python_ast::{Expr, Operator};
use toctou_core::ir::TypeRef;
use toctou_core::{Name, Names};

/// `dict[str, dict[str, …]]`: deeper elements help nobody.
const MAX_DEPTH: u32 = 12;

pub(crate) fn annotation(names: &mut Names, annotation: Option<&Expr>) -> Option<TypeRef> {
    convert(names, annotation?, 0)
}

/// The dotted name of a name or attribute, as written.
pub(crate) fn dotted(expression: &Expr) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = expression;
    loop {
        match at {
            Expr::Attribute(attribute) if parts.len() < MAX_DEPTH as usize => {
                parts.push(attribute.attr.as_str());
                at = &attribute.value;
            }
            Expr::Name(name) => {
                parts.push(name.id.as_str());
                parts.reverse();
                return Some(parts.join("."));
            }
            _ => return None,
        }
    }
}

pub(crate) fn dotted_name(names: &mut Names, expression: &Expr) -> Option<Name> {
    // `Base[T]` is `Base`.
    let expression = match expression {
        Expr::Subscript(subscript) => &subscript.value,
        other => other,
    };
    dotted(expression).map(|text| names.intern(&text))
}

fn named(names: &mut Names, text: &str, element: Option<TypeRef>) -> Option<TypeRef> {
    Some(TypeRef {
        name: names.intern(text),
        element: element.map(Box::new),
    })
}

fn convert(names: &mut Names, ty: &Expr, depth: u32) -> Option<TypeRef> {
    if depth > MAX_DEPTH {
        return None;
    }
    match ty {
        Expr::Name(_) | Expr::Attribute(_) => {
            let text = dotted(ty)?;
            match last(&text) {
                "Any" | "object" | "None" | "str" | "bytes" | "int" | "float" | "bool" => None,
                _ => named(names, canonical(&text), None),
            }
        }
        Expr::StringLiteral(text) => {
            let text = text.value.to_str();
            if text.len() > 200 {
                return None;
            }
            let parsed = ruff_python_parser::parse_expression(text).ok()?;
            convert(names, parsed.expr(), depth + 1)
        }
        Expr::BinOp(op) if op.op == Operator::BitOr => {
            convert(names, &op.left, depth + 1).or_else(|| convert(names, &op.right, depth + 1))
        }
        Expr::Subscript(subscript) => {
            let text = dotted(&subscript.value)?;
            let args: &[Expr] = match subscript.slice.as_ref() {
                Expr::Tuple(tuple) => &tuple.elts,
                one => std::slice::from_ref(one),
            };
            let first = args.first();
            match last(&text) {
                "Optional" | "Annotated" | "Awaitable" | "Final" | "ClassVar" | "Required"
                | "NotRequired" | "ContextVar" => convert(names, first?, depth + 1),
                "Coroutine" => convert(names, args.get(2)?, depth + 1),
                "Union" => args.iter().find_map(|a| convert(names, a, depth + 1)),
                "Literal" | "Callable" | "type" | "Type" => None,
                _ => {
                    let name = canonical(&text);
                    let element = match name {
                        "Map" => args.get(1),
                        "Array" | "Set" => first,
                        _ => None,
                    };
                    let element = element.and_then(|e| convert(names, e, depth + 1));
                    named(names, name, element)
                }
            }
        }
        _ => None,
    }
}

fn last(text: &str) -> &str {
    text.rsplit('.').next().unwrap_or(text)
}

/// The containers of Python by the names that the IR has for them.
fn canonical(text: &str) -> &str {
    match last(text) {
        "dict"
        | "Dict"
        | "defaultdict"
        | "DefaultDict"
        | "OrderedDict"
        | "Mapping"
        | "MutableMapping"
        | "Counter"
        | "WeakValueDictionary" => "Map",
        "list" | "List" | "Sequence" | "Iterable" | "Iterator" | "AsyncIterator"
        | "AsyncIterable" | "Generator" | "AsyncGenerator" | "Collection" | "deque" | "Deque"
        | "tuple" | "Tuple" => "Array",
        "set" | "Set" | "frozenset" | "FrozenSet" | "WeakSet" | "MutableSet" => "Set",
        _ => text,
    }
}
