//! `--diff` and `--fix`: changes that findings bring along.
//!
//! A change is shown or made only if a scan of the changed text says that its
//! finding is gone and that nothing new has come. Files are replaced whole,
//! and only while they are what was scanned.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toctou_core::finding::Finding;
use toctou_core::mend::apply;
use toctou_core::source::Span;

use crate::cli::InputArgs;
use crate::commands::scan::Input;
use crate::errors::Error;
use crate::git;
use crate::pipeline::{Overlay, Scan};

/// Each round leaves out at least one change, or is the last.
const ROUNDS: usize = 8;

/// The changes of all files, by path from the root.
pub(crate) struct Plan {
    pub(crate) files: BTreeMap<String, Changed>,
    /// How many findings they close.
    pub(crate) closed: usize,
}

pub(crate) struct Changed {
    before: Arc<str>,
    after: Arc<str>,
}

/// What can be changed for these findings. The whole is scanned again with it.
pub(crate) fn plan(
    input: &Input,
    args: &InputArgs,
    scan: &Scan,
    findings: &[&Finding],
) -> Result<Plan, Error> {
    let mut wanted: Vec<&Finding> = findings.to_vec();
    for _ in 0..ROUNDS {
        let (files, taken) = changed(scan, &wanted);
        if taken.is_empty() {
            break;
        }
        let overlay: Overlay = files
            .iter()
            .map(|(path, file)| (input.root.folder.join(path), Arc::clone(&file.after)))
            .collect();
        let after = input.scan_text(args, None, &overlay, &AtomicBool::new(false))?;
        let bad = spoilt(scan, &after, &taken);
        if bad.is_empty() {
            return Ok(Plan {
                files,
                closed: taken.len(),
            });
        }
        wanted.retain(|finding| {
            taken.iter().any(|t| t.fingerprint == finding.fingerprint)
                && !bad.contains(&finding.fingerprint)
        });
    }
    Ok(Plan {
        files: BTreeMap::new(),
        closed: 0,
    })
}

/// The texts with the changes of these findings, and those whose changes fit
/// in: of two that overlap, the first.
fn changed<'f>(
    scan: &Scan,
    findings: &[&'f Finding],
) -> (BTreeMap<String, Changed>, Vec<&'f Finding>) {
    let mut spans: BTreeMap<&str, Vec<(Span, String)>> = BTreeMap::new();
    let mut taken = Vec::new();
    for finding in findings {
        let Some(edit) = &finding.edit else {
            continue;
        };
        let free = edit.changes.iter().all(|new| {
            let there = spans.get(new.file.as_str());
            there.is_none_or(|there| {
                there
                    .iter()
                    .all(|(old, _)| new.end < old.start || old.end < new.start)
            })
        });
        if free {
            for change in &edit.changes {
                let span = Span::new(change.start, change.end);
                let all = spans.entry(&change.file).or_default();
                all.push((span, change.text.clone()));
            }
            taken.push(*finding);
        }
    }
    let files = spans
        .into_iter()
        .filter_map(|(path, spans)| {
            let index = scan
                .sources
                .binary_search_by(|source| (*source.path).cmp(path))
                .ok()?;
            let before = Arc::clone(&scan.sources[index].text);
            let after = Arc::from(apply(&before, &spans)?);
            Some((path.to_owned(), Changed { before, after }))
        })
        .collect();
    (files, taken)
}

/// Findings whose change did not close them, or brought something new.
fn spoilt(before: &Scan, after: &Scan, taken: &[&Finding]) -> BTreeSet<String> {
    let prints = |scan: &Scan| -> BTreeMap<String, String> {
        scan.findings
            .iter()
            .map(|f| (f.fingerprint.clone(), f.location.file.clone()))
            .collect()
    };
    let (old, new) = (prints(before), prints(after));
    let fresh: BTreeSet<&String> = new
        .iter()
        .filter(|(print, _)| !old.contains_key(*print))
        .map(|(_, file)| file)
        .collect();
    let lost = after.sources.len() < before.sources.len();
    taken
        .iter()
        .filter(|finding| {
            let touches = |file: &&String| {
                let edit = finding.edit.as_ref();
                edit.is_some_and(|edit| edit.changes.iter().any(|c| c.file == **file))
            };
            new.contains_key(&finding.fingerprint) || lost || fresh.iter().any(touches)
        })
        .map(|finding| finding.fingerprint.clone())
        .collect()
}

impl Plan {
    /// For `patch` and for people; paths are those of the working directory.
    pub(crate) fn diff(&self, base: &str) -> String {
        let mut out = String::new();
        for (path, file) in &self.files {
            let name = toctou_report::clean::line(&format!("{base}{path}"));
            out += &similar::TextDiff::from_lines(&*file.before, &*file.after)
                .unified_diff()
                .context_radius(3)
                .header(&format!("a/{name}"), &format!("b/{name}"))
                .to_string();
        }
        out
    }

    /// Replaces the files. None is touched if one of them cannot be undone.
    pub(crate) fn write(&self, root: &Path, allow_dirty: bool) -> Result<(), Error> {
        let paths: Vec<_> = self.files.keys().map(|path| root.join(path)).collect();
        if !allow_dirty && !paths.is_empty() {
            let dirty = git::dirty(root, &paths)?;
            if !dirty.is_empty() {
                return Err(Error::Dirty { files: dirty });
            }
        }
        for (path, file) in paths.iter().zip(self.files.values()) {
            replace(path, file)?;
        }
        Ok(())
    }
}

/// Beside it, with its permissions, and then over it. Whoever saves the file
/// in the instant between the last look and the rename is overwritten; no file
/// system offers more.
fn replace(path: &Path, file: &Changed) -> Result<(), Error> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let fail = |error| Error::Write {
        path: path.to_owned(),
        error,
    };
    let changed = || Error::ChangedMeanwhile {
        path: path.to_owned(),
    };
    let now = std::fs::read(path).map_err(fail)?;
    let mark = if now.starts_with(MARK) { MARK } else { &[] };
    if now[mark.len()..] != *file.before.as_bytes() {
        return Err(changed());
    }
    let permissions = std::fs::metadata(path).map_err(fail)?.permissions();
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new()
        .prefix(".toctou-")
        .tempfile_in(folder)
        .map_err(fail)?;
    new.write_all(mark).map_err(fail)?;
    new.write_all(file.after.as_bytes()).map_err(fail)?;
    new.as_file().set_permissions(permissions).map_err(fail)?;
    new.as_file().sync_all().map_err(fail)?;
    if std::fs::read(path).map_err(fail)? != now {
        return Err(changed());
    }
    new.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
