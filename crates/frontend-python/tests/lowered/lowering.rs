//! What the source becomes: looked at through the dump of the IR.

use toctou_core::ir::{CallKind, Callee, FuncKind, Module, Op, dump};

fn text(source: &str) -> String {
    dump(&crate::common::module("file.py", source))
}

fn ops(module: &Module) -> impl Iterator<Item = &Op> {
    module
        .functions
        .iter()
        .flat_map(|f| &f.blocks)
        .flat_map(|b| &b.insts)
        .map(|i| &i.op)
}

fn function<'m>(module: &'m Module, name: &str) -> &'m toctou_core::ir::Function {
    module
        .functions
        .iter()
        .find(|f| module.names.text(f.name) == name)
        .unwrap_or_else(|| panic!("no function {name}"))
}

fn methods_called(module: &Module) -> Vec<&str> {
    ops(module)
        .filter_map(|op| match op {
            Op::Call {
                callee: Callee::Method { name, .. },
                ..
            } => Some(module.names.text(*name)),
            _ => None,
        })
        .collect()
}

#[test]
fn every_construct_gives_valid_code() {
    let module = crate::common::module(
        "file.py",
        r#"
from __future__ import annotations
import os, os.path as p, a.b
from . import c as d
from ..e import *

x: int = 1
y, (z, *w) = 1, (2, 3, 4)
total = 0

@decorated(1)
async def f(a, /, b: "Store | None" = None, *args: int, k=x, **kw) -> list[str]:
    global total
    total += 1
    async with a as q, b:
        async for i in q:
            if i in kw and not (i not in args or i is None):
                continue
            elif i == 1:
                break
            else:
                return await i
        else:
            pass
    try:
        yield f"{a!r:>{b}} and {i}"
    except (ValueError, KeyError) as e:
        raise
    except Exception:
        raise RuntimeError("x") from None
    else:
        del a.b, a["c"], a[b]
    finally:
        assert x, "message"
    while True:
        if (n := a.get(1)) > 2 > b:
            break

class Base(Generic[T], metaclass=M):
    field: dict[str, list[Store]] = field(default_factory=dict)
    shared = []
    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store: Store = store
        def inner():
            nonlocal store
            store = self.store
        inner()
    @property
    def size(self): return len(self.shared)
    @classmethod
    def make(cls): return cls(None)
    @staticmethod
    def helper(v): return v
    async def __aenter__(self): return self

def g(command):
    match command:
        case "a" | "b": return 1
        case {"k": v, **rest}: return v
        case [first, *more]: return first
        case Point(x=0, y=yy) if yy: return yy
        case None: return None
        case _: pass
    return [v for v in command if v], {v: 1 for v in command}, {*command}, (lambda q, r=1: q + r)

def h(*, key): yield from key
"#,
    );
    assert!(module.functions.len() > 9);
    assert_eq!(module.opaque, 0);
}

#[test]
fn a_decorator_is_a_call_with_the_function() {
    let module = crate::common::module("file.py", "@mcp.tool()\ndef f(): pass\n");
    let decorated: Vec<&Op> = ops(&module)
        .filter(
            |op| matches!(op, Op::Call { kind: CallKind::Decorate, args, .. } if args.len() == 1),
        )
        .collect();
    assert_eq!(decorated.len(), 1, "{}", dump(&module));
    assert_eq!(methods_called(&module), ["tool"]);
}

#[test]
fn with_enters_and_leaves_on_every_way_out() {
    let module = crate::common::module(
        "file.py",
        "async def f(lock):\n    async with lock:\n        return 1\n",
    );
    let mut called = methods_called(&module);
    called.sort_unstable();
    assert_eq!(called, ["__aenter__", "__aexit__"]);
    let f = function(&module, "f");
    let exits = f.blocks.iter().flat_map(|b| &b.insts);
    let exits = exits.filter(|i| matches!(i.op, Op::Exit { .. })).count();
    assert_eq!(exits, 1, "the body of the exit stands once");
    assert!(f.blocks.iter().any(|b| b.handler.is_some()));
}

#[test]
fn membership_is_a_question_to_the_container() {
    let module = crate::common::module("file.py", "d = {}\ndef f(k):\n    return k not in d\n");
    assert_eq!(methods_called(&module), ["__contains__"]);
}

#[test]
fn self_is_this_also_in_inner_functions() {
    let module = crate::common::module(
        "file.py",
        "class A:\n    def m(self):\n        def inner():\n            return self.x\n        return inner\n",
    );
    let inner = function(&module, "inner");
    assert_eq!(inner.kind, FuncKind::Arrow);
    let insts: Vec<&Op> = inner
        .blocks
        .iter()
        .flat_map(|b| &b.insts)
        .map(|i| &i.op)
        .collect();
    assert!(insts.iter().any(|op| matches!(op, Op::This { .. })));
    assert_eq!(function(&module, "m").params.len(), 0);
}

#[test]
fn keyword_arguments_keep_their_names() {
    let module = crate::common::module("file.py", "open(p, mode='w', **more)\n");
    let args = ops(&module)
        .find_map(|op| match op {
            Op::Call { args, .. } => Some(args),
            _ => None,
        })
        .expect("a call");
    let names: Vec<Option<&str>> = args
        .iter()
        .map(|a| a.name.map(|n| module.names.text(n)))
        .collect();
    assert_eq!(names, [None, Some("mode"), Some("**")]);
    assert!(args[2].spread);
}

#[test]
fn names_with_a_capital_are_classes() {
    let kinds = |source| -> Vec<CallKind> {
        ops(&crate::common::module("file.py", source))
            .filter_map(|op| match op {
                Op::Call { kind, .. } => Some(*kind),
                _ => None,
            })
            .collect()
    };
    assert_eq!(kinds("Store(1)\n"), [CallKind::New]);
    assert_eq!(kinds("db._Pool(1)\n"), [CallKind::New]);
    assert_eq!(kinds("store(1)\n"), [CallKind::Plain]);
    assert_eq!(kinds("MAX(1)\n"), [CallKind::Plain]);
}

#[test]
fn globals_are_variables_of_the_module() {
    let out = text("count = 0\ndef f():\n    global count\n    count = count + 1\n");
    assert!(out.contains("count"), "{out}");
    let module = crate::common::module("file.py", "def f():\n    global fresh\n    fresh = 1\n");
    assert!(ops(&module).any(|op| matches!(op, Op::StoreVar { cell, .. } if cell.owner.0 == 0)));
}

#[test]
fn dataclasses_have_a_constructor() {
    let module = crate::common::module(
        "file.py",
        "@dataclass\nclass P:\n    name: str\n    tags: list = field(default_factory=list)\n",
    );
    let class = &module.classes[0];
    let init = class.constructor.expect("a constructor");
    assert_eq!(module.functions[init.0 as usize].params.len(), 2);
    assert_eq!(class.fields.len(), 2);
}

#[test]
fn directives_are_comments_only() {
    let module = crate::common::module(
        "file.py",
        "x = '# toctou: ignore[a]'\n# toctou: ignore[b] why\ny = 1  # toctou: ignore[c]\n",
    );
    let seen: Vec<(&str, bool)> = module
        .directives
        .iter()
        .map(|d| (d.text.as_str(), d.alone))
        .collect();
    assert_eq!(
        seen,
        [
            ("toctou: ignore[b] why", true),
            ("toctou: ignore[c]", false)
        ]
    );
}
