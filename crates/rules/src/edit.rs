//! From what a rule wants changed to a change that leaves the file whole.

use std::cell::Cell;

use toctou_core::finding::{Change, Edit};
use toctou_core::frontend::Frontend;
use toctou_core::ir::Program;
use toctou_core::mend::apply;
use toctou_core::source::FileId;

use crate::case::{How, Mend};

/// Each change reads its file again: a file with a thousand findings must not
/// be read a thousand times.
const BUDGET: usize = 16 << 20;

pub(crate) struct Mender<'a> {
    program: &'a Program,
    frontend: &'a Frontend,
    left: Cell<usize>,
}

impl<'a> Mender<'a> {
    pub(crate) fn new(program: &'a Program, frontend: &'a Frontend) -> Self {
        Self {
            program,
            frontend,
            left: Cell::new(BUDGET),
        }
    }

    /// Nothing unless the language is sure, and the file parses as well as before.
    pub(crate) fn edit(&self, mend: Option<Mend>) -> Option<Edit> {
        let mend = mend?;
        let file = self.program.file_of(mend.func);
        self.left.set(self.left.get().checked_sub(file.text.len())?);
        let changes = match mend.how {
            How::Ask(remedy) => (self.frontend.mend)(&file.path, &file.text, &remedy)?,
            How::Change(changes) => changes,
        };
        let warnings = |text: &str| {
            let lowered = (self.frontend.lower)(FileId(0), &file.path, text).ok()?;
            Some(lowered.warnings.len())
        };
        let after = apply(&file.text, &changes)?;
        if after == *file.text || warnings(&after)? > warnings(&file.text)? {
            return None;
        }
        Some(Edit {
            title: mend.title.to_owned(),
            changes: changes
                .into_iter()
                .map(|(span, text)| Change {
                    file: file.path.to_string(),
                    start: span.start,
                    end: span.end,
                    text,
                })
                .collect(),
        })
    }
}
