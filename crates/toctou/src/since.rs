//! `--since REF`: what a change brings.
//!
//! The state at the commit is scanned like the present one, as a whole: a
//! change in one file can open a window in another. What was found there is a
//! baseline, and the fingerprints decide, as they do for the baseline that a
//! project keeps. A file that was renamed takes its findings along.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toctou_core::finding::{Finding, Note};
use toctou_rules::baseline::{Baseline, is_eligible};
use toctou_source::Scratch;

use crate::cli::InputArgs;
use crate::commands::scan::Input;
use crate::discover::Root;
use crate::errors::Error;
use crate::git::{Blob, Repo};
use crate::languages;
use crate::pipeline::Scan;

/// Fingerprints of present findings that are no news; says so in a note.
pub(crate) fn known(
    input: &Input,
    args: &InputArgs,
    name: &str,
    now: &mut Scan,
) -> Result<BTreeSet<String>, Error> {
    let repo = Repo::of(&input.root.folder)?;
    let commit = repo.commit(name)?;
    let past = past(input, args, &repo, &commit)?;
    let known = compare(&past, now);
    let noun = if known.len() == 1 {
        "finding was"
    } else {
        "findings were"
    };
    let short: String = commit.chars().take(10).collect();
    now.notes.push(Note {
        file: None,
        line: None,
        text: format!(
            "compared with {short} (--since {name}): {} {noun} there before, and not shown",
            known.len()
        ),
    });
    Ok(known)
}

/// The scan of the same paths, as they were.
fn past(input: &Input, args: &InputArgs, repo: &Repo, commit: &str) -> Result<Scan, Error> {
    let outside = || Error::Since {
        message: format!(
            "{} is not in the repository {}",
            input.root.folder.display(),
            repo.top.display()
        ),
        hint: Some("scan one repository at a time"),
    };
    let below = |path: &Path| {
        path.strip_prefix(&repo.top)
            .map(Path::to_owned)
            .map_err(|_| outside())
    };
    let folder = below(&input.root.folder)?;
    let paths = input
        .root
        .paths
        .iter()
        .map(|path| below(path))
        .collect::<Result<Vec<_>, _>>()?;
    toctou_source::clean_up_on_signals();
    let scratch = Scratch::new("toctou-since-").map_err(|error| Error::Write {
        path: std::env::temp_dir(),
        error,
    })?;
    // Canonical, like every root.
    let top = scratch.path().canonicalize().map_err(|error| Error::Read {
        path: scratch.path().to_owned(),
        error,
    })?;
    let mut files = repo.files(commit)?;
    files.retain(|file| is_needed(file, &paths));
    repo.write(&files, args.max_file_size.saturating_mul(1 << 20), &scratch)?;
    let paths: Vec<_> = paths
        .iter()
        .map(|path| top.join(path))
        .filter(|path| path.exists())
        .collect();
    if paths.is_empty() {
        return Ok(Scan::default());
    }
    let root = Root {
        folder: top.join(folder),
        base: input.root.base.clone(),
        paths,
        origin: None,
    };
    match input.scan_past(args, &root) {
        Err(Error::NothingToAnalyse { .. } | Error::NothingReadable { .. }) => Ok(Scan::default()),
        other => other,
    }
}

/// Sources and manifests below the scanned paths, and what says that they are ignored.
fn is_needed(file: &Blob, paths: &[std::path::PathBuf]) -> bool {
    let Some(name) = file.path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    if matches!(name, ".gitignore" | ".ignore") {
        return true;
    }
    let is_source = languages::of(name).is_some() || languages::is_manifest(name);
    paths
        .iter()
        .any(|path| file.path == *path || is_source && file.path.starts_with(path))
}

fn compare(past: &Scan, now: &Scan) -> BTreeSet<String> {
    let baseline = Baseline::of(&past.findings);
    let files = |scan: &Scan| -> BTreeSet<String> {
        scan.sources
            .iter()
            .map(|file| file.path.to_string())
            .collect()
    };
    let (before, after) = (files(past), files(now));
    // What files that are gone have left behind, for files that were not there.
    let mut left: BTreeMap<&str, u32> = BTreeMap::new();
    for finding in past.findings.iter().filter(|finding| is_eligible(finding)) {
        if !after.contains(&finding.location.file) {
            *left.entry(&finding.anchor).or_default() += 1;
        }
    }
    let mut moved = |finding: &Finding| {
        if before.contains(&finding.location.file) {
            return false;
        }
        match left.get_mut(finding.anchor.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    };
    now.findings
        .iter()
        .filter(|finding| baseline.contains(finding) || moved(finding))
        .map(|finding| finding.fingerprint.clone())
        .collect()
}
