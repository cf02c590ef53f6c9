//! One piece of code that stands in several files.
//!
//! A package that was built for two module systems, or into several bundles,
//! has every function of its source more than once. The finding of one copy
//! stands for all; the others are listed with it.

use rustc_hash::FxHashMap;
use toctou_core::Finding;
use toctou_core::finding::EntryKind;

/// The better reachable one stays; then the one whose file comes first.
pub(crate) fn fold(list: &mut Vec<(Finding, String)>) {
    list.sort_by(|(a, _), (b, _)| {
        let tools = |f: &Finding| {
            let tools = f.entry_points.iter().filter(|e| e.kind == EntryKind::Tool);
            std::cmp::Reverse(tools.count())
        };
        (tools(a), &a.location).cmp(&(tools(b), &b.location))
    });
    let mut first: FxHashMap<Vec<String>, usize> = FxHashMap::default();
    let mut kept: Vec<(Finding, String)> = Vec::with_capacity(list.len());
    for (finding, kinds) in list.drain(..) {
        let known = first.get(&shape(&finding)).map(|&i| &mut kept[i].0);
        match known.filter(|f| is_elsewhere(f, &finding)) {
            Some(copy) => copy.copies.push(finding.location),
            None => {
                first.entry(shape(&finding)).or_insert(kept.len());
                kept.push((finding, kinds));
            }
        }
    }
    *list = kept;
}

/// Folders that builds go to, for one module system or for all.
const BUILDS: &[&str] = &[
    "browser", "build", "cjs", "commonjs", "dist", "es", "es6", "esm", "lib", "module", "node",
    "out", "umd",
];

/// Twice in one file is two pieces of code, and so are two sources that began as one.
fn is_elsewhere(kept: &Finding, other: &Finding) -> bool {
    let (a, b) = (&kept.location.file, &other.location.file);
    a != b && !kept.copies.iter().any(|c| c.file == *b) && are_builds(a, b)
}

/// The same module for two systems, or two bundles in a folder for what was built.
fn are_builds(a: &str, b: &str) -> bool {
    let (Some(a), Some(b)) = (Script::of(a), Script::of(b)) else {
        return false;
    };
    let built = a.folders.iter().any(|part| BUILDS.contains(part));
    a.place() == b.place() && (a.stem == b.stem || built && a.folders == b.folders)
}

struct Script<'a> {
    folders: Vec<&'a str>,
    stem: &'a str,
}

impl<'a> Script<'a> {
    fn of(file: &'a str) -> Option<Self> {
        let (stem, extension) = file.rsplit_once('.')?;
        let mut folders: Vec<&str> = stem.split('/').collect();
        let stem = folders.pop()?;
        matches!(extension, "js" | "cjs" | "mjs").then_some(Self { folders, stem })
    }

    /// Where it stands, whatever it was built for.
    fn place(&self) -> Vec<&'a str> {
        let parts = self.folders.iter().copied();
        parts.filter(|part| !BUILDS.contains(part)).collect()
    }
}

/// What copies have in common: all but their places. Bundlers number a name that is taken.
fn shape(finding: &Finding) -> Vec<String> {
    let steps = finding.interleaving.iter();
    let head = [
        format!("{} {:?}", finding.rule, finding.persona),
        format!("{:?} {}", finding.scopes, finding.non_product),
        finding.location.function.clone(),
        finding.resource.key.clone(),
    ];
    head.into_iter()
        .chain(steps.map(|s| format!("{:?} {:?} {} {:?}", s.actor, s.action, s.text, s.function)))
        .map(|mut text| {
            text.retain(|c| !c.is_ascii_digit());
            text
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::fold;
    use crate::testing::finding;

    fn folded(list: &[(&str, u32)]) -> Vec<(String, Vec<String>)> {
        let mut list = list
            .iter()
            .map(|(file, line)| {
                (
                    finding("file-read-modify-write", file, *line),
                    String::new(),
                )
            })
            .collect();
        fold(&mut list);
        let place = |l: toctou_core::finding::Location| format!("{}:{}", l.file, l.line);
        list.into_iter()
            .map(|(f, _)| (place(f.location), f.copies.into_iter().map(place).collect()))
            .collect()
    }

    #[test]
    fn a_copy_in_another_file_is_listed() {
        let found = folded(&[("dist/index.js", 40), ("dist/index.cjs", 52)]);
        let copies = vec!["dist/index.js:40".to_owned()];
        assert_eq!(found, [("dist/index.cjs:52".to_owned(), copies)]);
    }

    #[test]
    fn twice_in_one_file_is_two() {
        let found = folded(&[("a.js", 1), ("a.js", 9), ("a.cjs", 1), ("a.cjs", 9)]);
        assert_eq!(found.iter().map(|f| 1 + f.1.len()).sum::<usize>(), 4);
        assert!(found.len() >= 2, "{found:?}");
    }

    #[test]
    fn bundles_share_code_and_sources_repeat_it() {
        assert_eq!(folded(&[("dist/a.js", 3), ("dist/b.js", 2)]).len(), 1);
        assert_eq!(folded(&[("src/a.js", 3), ("src/b.js", 2)]).len(), 2);
        assert_eq!(folded(&[("a.ts", 3), ("b.ts", 2)]).len(), 2);
    }

    #[test]
    fn two_builds_are_one_and_two_servers_are_two() {
        assert_eq!(folded(&[("lib/cjs/a.js", 3), ("lib/esm/a.js", 2)]).len(), 1);
        assert_eq!(
            folded(&[("one/dist/a.js", 3), ("two/dist/a.js", 3)]).len(),
            2
        );
    }
}
