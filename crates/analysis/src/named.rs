//! What a tool is called, by what stands beside its function: the `name` of the object literal
//! that it is a field of, or of the class that it is a method of.

use rustc_hash::FxHashMap;
use toctou_core::Name;
use toctou_core::ir::{Class, FuncId, Literal, Op, Program, Term, Var};

use crate::points_to::PointsTo;

pub(crate) fn names(
    program: &Program,
    points_to: &PointsTo,
    field: Name,
) -> FxHashMap<FuncId, Name> {
    let mut out = points_to.literal_names(program, field);
    for class in &program.classes {
        if let Some(name) = class_name(program, class, field) {
            out.extend(class.methods.iter().map(|(_, method)| (*method, name)));
        }
    }
    out
}

/// `name = "add_note"` in the class, or a getter that gives nothing else.
fn class_name(program: &Program, class: &Class, field: Name) -> Option<Name> {
    let set = class
        .constructor
        .and_then(|f| texts_of_this(program, f).remove(&field));
    set.or_else(|| {
        let (_, getter) = class.methods.iter().find(|(name, _)| *name == field)?;
        let function = program.function(*getter);
        let [block] = function.blocks.as_slice() else {
            return None;
        };
        let Term::Return(Some(given)) = block.term else {
            return None;
        };
        texts(program, *getter).remove(&given)
    })
}

fn texts(program: &Program, f: FuncId) -> FxHashMap<Var, Name> {
    let insts = program.function(f).blocks.iter().flat_map(|b| &b.insts);
    let text = |op: &Op| match op {
        Op::Const {
            dst,
            value: Literal::Str(text),
        } => Some((*dst, *text)),
        _ => None,
    };
    insts.filter_map(|inst| text(&inst.op)).collect()
}

/// Fields of the object itself that a constructor sets to a text.
fn texts_of_this(program: &Program, f: FuncId) -> FxHashMap<Name, Name> {
    let texts = texts(program, f);
    let mut this: Vec<Var> = Vec::new();
    let mut out = FxHashMap::default();
    for inst in program.function(f).blocks.iter().flat_map(|b| &b.insts) {
        match &inst.op {
            Op::This { dst } => this.push(*dst),
            Op::SetField { obj, field, value } if this.contains(obj) => {
                if let Some(text) = texts.get(value) {
                    out.insert(*field, *text);
                }
            }
            _ => {}
        }
    }
    out
}
