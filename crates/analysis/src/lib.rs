//! From code IR and library models to windows.
//!
//! One analysis, not one per rule: resolve who calls whom ([`points_to`]),
//! look at every function once, callees first ([`interp`]), keep what matters
//! to its callers ([`summary`]), pair the reads with the writes that trust
//! them ([`windows`]), and see which pairs a client can reach ([`reach`]).

mod alike;
mod apply;
mod calls;
mod cfg;
mod checks;
mod context;
mod deps;
mod display;
mod drains;
mod early;
mod effect;
mod entity;
mod entries;
mod handed;
mod held;
mod instance;
mod interp;
mod judged;
mod kept;
mod latch;
mod later;
mod library;
mod linkage;
mod lock_models;
mod made;
mod memo;
mod named;
mod normal;
mod order;
mod place;
mod points_to;
mod reach;
mod records;
mod requests;
mod room;
mod roots;
mod rows;
mod settled;
mod started;
mod summarise;
mod summary;
mod sym;
mod tables;
mod takes;
mod texts;
mod turns;
mod waits;
mod walk;
mod windows;

use toctou_core::ir::{FuncId, Literal, Op, Program};
use toctou_models::Models;

use context::Context;

pub use context::DefectKind;
pub use effect::Act;
pub use reach::{Analysis, Defect, LockFacts, Reach, ReachedWindow, RowFacts, Spot};
pub use toctou_models::Mode;

/// Components of mutually recursive functions larger than this are looked at once only.
const MAX_REPEATED: usize = 40;

/// Texts in the code that define tables, or what may not be in one twice.
fn written_schemas(program: &Program) -> Vec<&str> {
    // Nearly all texts are words, and most of the rest have no such letter at such a place.
    let is_definition = |rest: &[u8]| {
        let begins = |words: &[u8]| {
            let start = rest.get(..words.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(words))
        };
        begins(b"create table") || begins(b"create unique index")
    };
    let defines = |text: &&str| {
        let bytes = text.as_bytes();
        let mut starts = bytes
            .iter()
            .enumerate()
            .filter(|(_, b)| matches!(b, b'c' | b'C'));
        bytes.len() > 12 && starts.any(|(at, _)| is_definition(&bytes[at..]))
    };
    let functions = program.functions.iter().enumerate();
    let product = functions
        .filter(|(f, _)| program.file_of(FuncId(*f as u32)).role == toctou_core::FileRole::Product);
    let insts = product.flat_map(|(_, f)| f.blocks.iter().flat_map(|b| &b.insts));
    let mut names: Vec<toctou_core::Name> = insts
        .filter_map(|inst| match inst.op {
            Op::Const {
                value: Literal::Str(text),
                ..
            } => Some(text),
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let texts = names.into_iter().map(|n| program.names.text(n));
    texts.filter(defines).collect()
}

/// Finds the windows of a program.
pub fn analyze(program: &Program, models: &Models) -> Analysis {
    let mut cx = Context::new(program, models);
    for schema in &program.schemas {
        use toctou_models::{prisma, sql};
        let unique = sql::unique_columns(schema);
        for (table, columns) in unique.into_iter().chain(prisma::unique_columns(schema)) {
            cx.unique.entry(table).or_default().push(columns);
        }
        cx.defined.extend(sql::defined_tables(schema));
        cx.defined.extend(prisma::defined_tables(schema));
    }
    for (table, columns) in records::unique_columns(&mut cx) {
        cx.unique.entry(table).or_default().push(columns);
    }
    for (table, columns) in tables::unique_columns(program) {
        cx.unique.entry(table).or_default().push(columns);
    }
    // Statements in a list are run one by one, by a loop that does not say which.
    for text in written_schemas(program) {
        for (table, columns) in toctou_models::sql::unique_columns(text) {
            cx.unique.entry(table).or_default().push(columns);
        }
    }
    let edges = order::edges(program, &cx.points_to);
    for component in order::components(&edges) {
        let recursive = component.len() > 1 || edges[component[0] as usize].contains(&component[0]);
        let rounds = if recursive && component.len() <= MAX_REPEATED {
            2
        } else {
            1
        };
        for round in 0..rounds {
            for (i, &f) in component.iter().enumerate() {
                // Whom it calls was known the first time.
                let late = |g: &u32| component[i + 1..].contains(g);
                if round > 0 && !edges[f as usize].iter().any(late) {
                    continue;
                }
                let summary = interp::Interp::run(&mut cx, FuncId(f));
                cx.summaries[f as usize] = Some(std::rc::Rc::new(summary));
            }
        }
    }
    checks::run(&mut cx, &edges);
    reach::report(cx, &edges)
}
