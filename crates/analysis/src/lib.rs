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
mod takes;
mod texts;
mod turns;
mod waits;
mod walk;
mod windows;

use toctou_core::ir::{FuncId, Program};
use toctou_models::Models;

use context::Context;

pub use context::DefectKind;
pub use effect::Act;
pub use reach::{Analysis, Defect, LockFacts, Reach, ReachedWindow, RowFacts, Spot};
pub use toctou_models::Mode;

/// Components of mutually recursive functions larger than this are looked at once only.
const MAX_REPEATED: usize = 40;

/// Finds the windows of a program.
pub fn analyze(program: &Program, models: &Models) -> Analysis {
    let mut cx = Context::new(program, models);
    for schema in &program.schemas {
        for (table, columns) in toctou_models::sql::unique_columns(schema) {
            cx.unique.entry(table).or_default().push(columns);
        }
        cx.defined
            .extend(toctou_models::sql::defined_tables(schema));
    }
    for (table, columns) in records::unique_columns(&mut cx) {
        cx.unique.entry(table).or_default().push(columns);
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
