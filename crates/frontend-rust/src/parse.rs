//! From text to tree, on a stack that is large enough.
//!
//! One syntax error loses the file: the parser does not recover.

use toctou_core::FileId;
use toctou_core::frontend::{LowerError, Lowered};

use crate::depth::{self, Stack};
use crate::product::product;
use crate::spans::{Lines, Places};

#[derive(Clone, Copy)]
struct Job<'t> {
    file: FileId,
    path: &'t str,
    text: &'t str,
}

pub(crate) fn lower(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError> {
    let job = Job { file, path, text };
    match depth::stack(text)? {
        Stack::Here => guarded(job),
        Stack::Own(size) => on_own_stack(size, job).unwrap_or_else(|| {
            Err(LowerError {
                message: "no memory for the stack that code nested this deep needs".to_owned(),
                line: 1,
            })
        }),
    }
}

/// `None` where the system does not give us such a stack.
fn on_own_stack(size: usize, job: Job<'_>) -> Option<Result<Lowered, LowerError>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("toctou-parse".to_owned())
            .stack_size(size)
            .spawn_scoped(scope, move || guarded(job))
            .ok()?;
        Some(thread.join().unwrap_or_else(|_| Err(broken())))
    })
}

fn broken() -> LowerError {
    LowerError {
        message: "the parser failed on this file".to_owned(),
        line: 1,
    }
}

/// The parser is not ours: should it panic, that costs one file, not the run.
fn guarded(job: Job<'_>) -> Result<Lowered, LowerError> {
    let result = std::panic::catch_unwind(|| lower_here(job)).unwrap_or_else(|_| Err(broken()));
    // The table of texts behind the places grows with every file that is parsed.
    proc_macro2::extra::invalidate_current_thread_spans();
    result
}

fn lower_here(job: Job<'_>) -> Result<Lowered, LowerError> {
    let (text, base) = without_head(job.text);
    let parsed = product(text);
    let file = syn::parse_file(&parsed).map_err(|error| {
        let first_line = job.text.get(..base).unwrap_or_default();
        let before = first_line.bytes().filter(|&b| b == b'\n').count();
        LowerError {
            message: error.to_string(),
            line: (error.span().start().line + before).max(1) as u32,
        }
    })?;
    let lines = Lines::new(&parsed);
    let places = Places {
        base: base as u32,
        lines: &lines,
    };
    let module = crate::lower::lower(job.file, job.path, job.text, places, &file);
    let mut warnings = Vec::new();
    if module.opaque > 0 {
        warnings.push(format!(
            "{} constructs nested deeper than {} levels were left out",
            module.opaque,
            crate::lower::MAX_DEPTH
        ));
    }
    Ok(Lowered { module, warnings })
}

/// The parser cuts off a byte order mark and a `#!` line, and counts places
/// from behind them; so we do it ourselves.
fn without_head(text: &str) -> (&str, usize) {
    let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut start = text.len() - rest.len();
    if rest.starts_with("#!") && !rest[2..].trim_start().starts_with('[') {
        start += rest.find('\n').unwrap_or(rest.len());
    }
    (text.get(start..).unwrap_or_default(), start)
}
