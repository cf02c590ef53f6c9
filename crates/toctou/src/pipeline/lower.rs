//! One file at a time: read, lower, and if that fails say why and go on.

use std::sync::Arc;

use toctou_core::finding::{Note, Skipped};
use toctou_core::ir::Module;
use toctou_core::source::{FileId, SourceFile};

use super::panics::caught;
use super::{Request, Scan, read};
use crate::discover::Candidate;
use crate::errors::Error;
use crate::languages::FRONTENDS;
use crate::roles::is_minified;

/// What became of one file.
pub(super) enum Outcome {
    Module {
        source: SourceFile,
        module: Box<Module>,
        notes: Vec<Note>,
    },
    /// Not lowered: it takes long, and nobody can read what would be found.
    Minified,
    Fault(String),
}

/// `even_minified`: there is nothing else.
pub(super) fn lower(candidate: &Candidate, request: &Request<'_>, even_minified: bool) -> Outcome {
    let (max_size, overlay) = (request.max_file_size, request.overlay);
    if request.is_stopped() {
        return Outcome::Fault("stopped".to_owned());
    }
    let read = match read::text(&candidate.absolute, max_size, overlay) {
        Ok(read) => read,
        Err(reason) => return Outcome::Fault(reason),
    };
    if !even_minified && !candidate.explicit && is_minified(&read.text) {
        return Outcome::Minified;
    }
    let text: Arc<str> = Arc::from(read.text);
    let frontend = &FRONTENDS[candidate.language];
    // The id is given again when it is known which files are left.
    let lowered = match caught(|| (frontend.lower)(FileId(0), &candidate.path, &text)) {
        Ok(Ok(lowered)) => lowered,
        Ok(Err(error)) => return Outcome::Fault(error.to_string()),
        Err(message) => return Outcome::Fault(format!("toctou failed on it: {message}")),
    };
    let mut notes: Vec<Note> = lowered
        .warnings
        .iter()
        .map(|warning| Note {
            file: Some(candidate.path.clone()),
            line: None,
            text: warning.to_string(),
        })
        .collect();
    if read.lossy {
        notes.push(Note {
            file: Some(candidate.path.clone()),
            line: None,
            text: "not valid UTF-8: the wrong bytes were replaced".to_owned(),
        });
    }
    Outcome::Module {
        source: SourceFile::new(Arc::from(candidate.path.as_str()), text, candidate.role),
        module: Box::new(lowered.module),
        notes,
    }
}

/// The files of one language that were lowered, in path order.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) files: Vec<SourceFile>,
    pub(super) modules: Vec<Module>,
}

/// Takes the modules, by language and in path order, and reports the rest.
pub(super) fn keep(
    outcomes: Vec<Outcome>,
    candidates: &[Candidate],
    scan: &mut Scan,
) -> Result<Vec<Sources>, Error> {
    let mut sources: Vec<Sources> = FRONTENDS.iter().map(|_| Sources::default()).collect();
    let mut faults = Vec::new();
    for (outcome, candidate) in outcomes.into_iter().zip(candidates) {
        let (reason, fault) = match outcome {
            Outcome::Minified => ("minified".to_owned(), false),
            Outcome::Module {
                source,
                module,
                notes,
            } => {
                let of_language = &mut sources[candidate.language];
                of_language.files.push(source);
                of_language.modules.push(*module);
                scan.notes.extend(notes);
                continue;
            }
            Outcome::Fault(reason) => {
                faults.push(format!("{}: {reason}", candidate.path));
                (reason, true)
            }
        };
        scan.skipped_files += 1;
        scan.skipped.push(Skipped {
            file: candidate.path.clone(),
            reason,
            fault,
        });
    }
    if sources.iter().all(|language| language.files.is_empty()) {
        return Err(Error::NothingReadable { faults });
    }
    Ok(sources)
}
