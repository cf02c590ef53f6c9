//! One build, written twice: packages come as ES modules and as CommonJS. What is found in one is
//! in the other, too, and is to be read once: where the program is started, if that is told.

use std::collections::{BTreeMap, BTreeSet};

use super::Candidate;

/// Parts that several files share, by the names that bundlers give them.
const SHARED: &str = "chunk-";
/// A manifest that is larger than this is none.
const MAX_MANIFEST: u64 = 1 << 20;

/// A module format, by the names of its files.
struct Format {
    extensions: &'static [&'static str],
    folder: &'static str,
}

const COMMON: Format = Format {
    extensions: &["cjs"],
    folder: "/cjs/",
};
const MODULES: Format = Format {
    extensions: &["js", "mjs"],
    folder: "/esm/",
};

/// Takes out of generated files those that say in another module format what others say.
pub(super) fn take(
    files: &mut Vec<(String, Candidate)>,
    manifests: &[Candidate],
) -> Vec<Candidate> {
    let sizes: BTreeMap<String, u64> = files
        .iter()
        .map(|(_, file)| (file.path.clone(), file.size()))
        .collect();
    let started: Vec<String> = manifests.iter().flat_map(started).collect();
    let is_common = |name: &String| name.ends_with(".cjs") || name.contains(COMMON.folder);
    let (kept, other) = match started.iter().any(is_common) {
        true => (COMMON, MODULES),
        false => (MODULES, COMMON),
    };
    let alike = |path: &str, twin: &str| match (sizes.get(path), sizes.get(twin)) {
        (Some(a), Some(b)) => a / 2 <= *b && b / 2 <= *a,
        _ => false,
    };
    let is_twin = |path: &str| twins(path, &other, &kept).any(|twin| alike(path, &twin));
    // Folders that are written in both formats: their shared parts have no names in common.
    let in_both: BTreeSet<&str> = sizes
        .keys()
        .filter(|path| is_twin(path))
        .map(|path| split(path).0)
        .collect();
    let is_shared_part = |path: &str| {
        let (folder, name) = split(path);
        let is_other = other.extensions.contains(&extension(name));
        is_other && name.starts_with(SHARED) && in_both.contains(folder)
    };
    let is_left_out = |file: &Candidate| is_twin(&file.path) || is_shared_part(&file.path);
    let (out, rest) = std::mem::take(files)
        .into_iter()
        .partition(|(_, file)| is_left_out(file));
    *files = rest;
    out.into_iter().map(|(_, file)| file).collect()
}

/// What a file would be called in the format that is kept.
fn twins<'p>(path: &'p str, other: &Format, kept: &Format) -> impl Iterator<Item = String> + 'p {
    let ending = extension(path);
    let stem = path.strip_suffix(ending).unwrap_or(path);
    // Of `.js` and `.mjs` the second is the other format, whichever the first is.
    let beside: &[&str] = match (other.extensions.contains(&ending), ending) {
        (true, _) => kept.extensions,
        (false, "mjs") => &["js"],
        (false, _) => &[],
    };
    let folder = path
        .contains(other.folder)
        .then(|| path.replacen(other.folder, kept.folder, 1));
    let beside = beside.iter().map(move |twin| format!("{stem}{twin}"));
    beside.chain(folder)
}

/// The files that a package says it is started by.
fn started(manifest: &Candidate) -> Vec<String> {
    use serde_json::Value;
    let is_small = manifest.size() <= MAX_MANIFEST;
    if !manifest.path.ends_with("package.json") || !is_small {
        return Vec::new();
    }
    let text = std::fs::read_to_string(&manifest.absolute).unwrap_or_default();
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    match package.get("bin") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Object(many)) => many
            .values()
            .filter_map(|file| Some(file.as_str()?.to_owned()))
            .collect(),
        _ => Vec::new(),
    }
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
