//! From text to tree, on a stack that is large enough.

use std::cell::Cell;

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::{SemanticBuilder, Stats};
use oxc_span::{LabeledSpan, SourceType};
use toctou_core::FileId;

use crate::depth::{self, Stack};
use crate::{LowerError, Lowered};

/// Enough to say what is wrong with a file; the rest would be noise.
const MAX_WARNINGS: usize = 10;

/// One file to lower.
#[derive(Clone, Copy)]
pub(crate) struct Job<'t> {
    pub(crate) file: FileId,
    pub(crate) path: &'t str,
    pub(crate) text: &'t str,
    /// There are classes inside functions or expressions.
    pub(crate) inner_classes: bool,
}

pub(crate) fn lower(file: FileId, path: &str, text: &str) -> Result<Lowered, LowerError> {
    let plan = depth::plan(path, text)?;
    let job = Job {
        file,
        path,
        text,
        inner_classes: plan.inner_classes,
    };
    match plan.stack {
        Stack::Here => guarded(job),
        Stack::Own { wanted, least } => on_own_stack(wanted, job)
            .or_else(|| on_own_stack(least, job))
            .unwrap_or_else(|| {
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
    std::panic::catch_unwind(|| lower_here(job)).unwrap_or_else(|_| Err(broken()))
}

thread_local! {
    /// One file's tree is thrown away as a whole: its memory serves the next.
    static ARENA: Cell<Option<Allocator>> = const { Cell::new(None) };
}

/// More than this is given back: one huge file must not cost memory for ever.
const MAX_KEPT: usize = 64 << 20;

fn lower_here(job: Job<'_>) -> Result<Lowered, LowerError> {
    let mut allocator = ARENA.take().unwrap_or_default();
    let lowered = lower_in(&allocator, job);
    if allocator.capacity() <= MAX_KEPT {
        allocator.reset();
        ARENA.set(Some(allocator));
    }
    lowered
}

fn lower_in(allocator: &Allocator, job: Job<'_>) -> Result<Lowered, LowerError> {
    let Job { path, text, .. } = job;
    let parsed = parse(allocator, path, text)?;
    let mut warnings: Vec<String> = parsed
        .diagnostics
        .iter()
        .take(MAX_WARNINGS)
        .map(|diagnostic| {
            let line = line_of(text, offset(&diagnostic.labels));
            format!("line {line}: {}", diagnostic.message)
        })
        .collect();
    let program: &Program<'_> = allocator.alloc(parsed.program);
    let semantic = SemanticBuilder::new()
        .with_stats(estimate(text))
        .build(program)
        .semantic;
    let module = crate::lower::lower(job, program, semantic.scoping());
    if module.opaque > 0 {
        warnings.push(format!(
            "{} constructs nested deeper than {} levels were left out",
            module.opaque,
            crate::lower::MAX_DEPTH
        ));
    }
    Ok(Lowered { module, warnings })
}

/// Roughly how many scopes, symbols and references there will be. Counting them
/// exactly would take another walk over the tree.
fn estimate(text: &str) -> Stats {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    Stats::new(0, length / 160 + 16, length / 70 + 16, length / 28 + 16)
}

/// Parses as what the extension says, and as a script where that fails:
/// old code is not strict.
fn parse<'a>(
    allocator: &'a Allocator,
    path: &str,
    text: &'a str,
) -> Result<ParserReturn<'a>, LowerError> {
    let source_type = source_type(path);
    let parsed = parse_as(allocator, text, source_type);
    if !parsed.panicked {
        return Ok(parsed);
    }
    let error = match parsed.diagnostics.first() {
        Some(diagnostic) => LowerError {
            message: diagnostic.message.to_string(),
            line: line_of(text, offset(&diagnostic.labels)),
        },
        None => broken(),
    };
    if source_type.is_javascript() {
        let script = parse_as(allocator, text, source_type.with_script(true));
        if !script.panicked {
            return Ok(script);
        }
    }
    Err(error)
}

fn parse_as<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    source_type: SourceType,
) -> ParserReturn<'a> {
    let options = ParseOptions {
        // CommonJS modules are function bodies.
        allow_return_outside_function: true,
        preserve_parens: false,
        ..ParseOptions::default()
    };
    Parser::new(allocator, text, source_type)
        .with_options(options)
        .parse()
}

fn source_type(path: &str) -> SourceType {
    SourceType::from_path(path).unwrap_or_else(|_| SourceType::mjs().with_jsx(true))
}

fn offset(labels: &[LabeledSpan]) -> usize {
    labels.first().map_or(0, |label| label.offset() as usize)
}

fn line_of(text: &str, offset: usize) -> u32 {
    let end = offset.min(text.len());
    let before = text.as_bytes().get(..end).unwrap_or_default();
    before.iter().filter(|&&b| b == b'\n').count() as u32 + 1
}
