//! From the repository to a folder with the site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::markdown;
use crate::pages::{self, Page, SECTIONS};

const SHELL: &str = include_str!("page.html");
const STYLE: &str = include_str!("site.css");
const SCRIPT: &str = include_str!("site.js");
/// Where source lives that is no page.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

#[derive(Debug, Error)]
pub(crate) enum SiteError {
    #[error("{path}: {error}")]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("links that lead nowhere:\n{}", .0.join("\n"))]
    Broken(Vec<String>),
    #[error("no page in {0}; is it the root of the repository?")]
    Empty(PathBuf),
}

/// Writes everything, and gives the number of pages.
pub(crate) fn build(root: &Path, folder: &Path) -> Result<usize, SiteError> {
    let pages = pages::find(root).map_err(|error| SiteError::File {
        path: root.to_owned(),
        error,
    })?;
    if !pages.contains_key("README.md") {
        return Err(SiteError::Empty(root.to_owned()));
    }
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .values()
        .map(|page| (page.path.as_str(), markdown::anchors(&page.text)))
        .collect();
    let mut broken = Vec::new();
    let mut files = BTreeSet::new();
    let mut written = Vec::new();
    for page in pages.values() {
        let mut resolve = |url: &str| -> Result<String, String> {
            let target = resolve(root, &pages, &anchors, page, url)?;
            if let Target::File(path) = &target {
                files.insert(path.clone());
            }
            Ok(target.address(page))
        };
        let (body, faults) = markdown::render(&page.text, &mut resolve);
        broken.extend(
            faults
                .into_iter()
                .map(|fault| format!("  {}: {fault}", page.path)),
        );
        written.push((page.address.clone(), shell(&pages, page, &body)));
    }
    if !broken.is_empty() {
        return Err(SiteError::Broken(broken));
    }
    let style = format!("{}{STYLE}", toctou_report::HTML_COLOURS);
    let script = format!(
        "\"use strict\";\n(() => {{\n{}{SCRIPT}}})();\n",
        toctou_report::HTML_THEME
    );
    written.push(("site.css".to_owned(), style));
    written.push(("site.js".to_owned(), script));
    for (address, text) in &written {
        write(&folder.join(address), text.as_bytes())?;
    }
    for path in files {
        let source = root.join(&path);
        let bytes = std::fs::read(&source).map_err(|error| SiteError::File {
            path: source,
            error,
        })?;
        write(&folder.join(&path), &bytes)?;
    }
    Ok(pages.len())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), SiteError> {
    let fail = |error| SiteError::File {
        path: path.to_owned(),
        error,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    std::fs::write(path, bytes).map_err(fail)
}

/// Where a link leads.
enum Target {
    /// To another host; not looked at.
    Elsewhere(String),
    Page {
        address: String,
        anchor: String,
    },
    /// A picture or a schema, which goes with the site.
    File(String),
    Source(String),
}

impl Target {
    fn address(&self, from: &Page) -> String {
        match self {
            Self::Elsewhere(url) => url.clone(),
            Self::Page { address, anchor } if *address == from.address => anchor.clone(),
            Self::Page { address, anchor } => format!("{}{address}{anchor}", up(from)),
            Self::File(path) => format!("{}{path}", up(from)),
            Self::Source(path) => format!("{REPOSITORY}{path}"),
        }
    }
}

fn resolve(
    root: &Path,
    pages: &BTreeMap<String, Page>,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    from: &Page,
    url: &str,
) -> Result<Target, String> {
    if url.contains("://") || url.starts_with("mailto:") {
        return Ok(Target::Elsewhere(url.to_owned()));
    }
    let (path, anchor) = match url.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (url, None),
    };
    let path = if path.is_empty() {
        from.path.clone()
    } else {
        join(&from.path, path).ok_or_else(|| format!("`{url}` leads out of the repository"))?
    };
    if let Some(page) = pages.get(&path) {
        let known = &anchors[page.path.as_str()];
        return match anchor {
            Some(anchor) if !known.contains(anchor) => {
                Err(format!("`{url}`: {path} has no heading `{anchor}`"))
            }
            anchor => Ok(Target::Page {
                address: page.address.clone(),
                anchor: anchor.map(|name| format!("#{name}")).unwrap_or_default(),
            }),
        };
    }
    let full = root.join(&path);
    if full.is_file() && path.starts_with("docs/") {
        Ok(Target::File(path))
    } else if full.exists() {
        Ok(Target::Source(path))
    } else {
        Err(format!("`{url}` is not there"))
    }
}

/// `docs/a.md` and `../b.md` are `b.md`.
fn join(from: &str, to: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.trim_end_matches('/').split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The way from a page to the root of the site.
fn up(page: &Page) -> String {
    "../".repeat(page.address.matches('/').count())
}

fn shell(pages: &BTreeMap<String, Page>, page: &Page, body: &str) -> String {
    let mut navigation = String::new();
    for (index, section) in SECTIONS.iter().enumerate() {
        navigation += &format!("<h2>{section}</h2>\n<ul>\n");
        for other in pages::in_section(pages, index) {
            let current = if other.path == page.path {
                " aria-current=\"page\""
            } else {
                ""
            };
            navigation += &format!(
                "<li><a href=\"{}{}\"{current}>{}</a></li>\n",
                up(page),
                other.address,
                escape(&other.title)
            );
        }
        navigation += "</ul>\n";
    }
    let mut out = String::new();
    let mut rest = SHELL;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out += before;
        out += &match name {
            "title" => escape(&page.title),
            "up" => up(page),
            "navigation" => navigation.clone(),
            _ => body.to_owned(),
        };
        rest = after;
    }
    out + rest
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<usize, SiteError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("repository");
        for (path, text) in files {
            write(&root.join(path), text.as_bytes()).expect("written");
        }
        let built = build(&root, &folder.path().join("site"));
        (folder, built)
    }

    #[test]
    fn links_between_pages_to_files_and_to_source() {
        let (folder, built) = site(&[
            (
                "README.md",
                "# x\n\n[a](docs/a.md#deep-down) [s](src/main.rs) [o](https://example.org)\n",
            ),
            (
                "docs/a.md",
                "# A\n\n## Deep down\n\n[home](../README.md) [up](#a) ![p](images/p.png)\n",
            ),
            ("docs/images/p.png", "picture"),
            ("src/main.rs", ""),
        ]);
        assert_eq!(built.expect("no broken link"), 2);
        let read = |path: &str| {
            std::fs::read_to_string(folder.path().join("site").join(path)).expect("a page")
        };
        let home = read("index.html");
        assert!(home.contains("href=\"docs/a.html#deep-down\""), "{home}");
        assert!(home.contains("/blob/main/src/main.rs\""), "{home}");
        let page = read("docs/a.html");
        assert!(
            page.contains("<a href=\"../index.html\">home</a>"),
            "{page}"
        );
        assert!(page.contains("<a href=\"#a\">up</a>"), "{page}");
        assert!(page.contains("src=\"../docs/images/p.png\""), "{page}");
        assert_eq!(read("docs/images/p.png"), "picture");
    }

    #[test]
    fn broken_links_fail_and_are_all_named() {
        let (_folder, built) = site(&[
            (
                "README.md",
                "# x\n\n[a](docs/gone.md) [b](docs/a.md#no) [c](../../etc/passwd)\n",
            ),
            ("docs/a.md", "# A\n"),
        ]);
        let Err(SiteError::Broken(faults)) = built else {
            panic!("{built:?}");
        };
        assert_eq!(faults.len(), 3, "{faults:#?}");
        assert!(faults[1].contains("docs/a.md has no heading `no`"));
    }

    /// The real pages: this is what keeps their links whole.
    #[test]
    fn the_documentation_has_no_broken_links() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = tempfile::tempdir().expect("a folder");
        match build(&root, folder.path()) {
            Ok(count) => assert!(count > 30, "{count} pages"),
            Err(error) => panic!("{error}"),
        }
    }
}
