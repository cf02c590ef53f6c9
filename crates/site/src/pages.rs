//! Which files are pages, where they stand in the navigation, where they go.

use std::collections::BTreeMap;
use std::path::Path;

/// Folders without pages for readers of the product.
const NOT_HERE: &[&str] = &["target", "node_modules", "venv", "crates", "fuzz"];

/// The guides in the order in which one needs them; others follow by name.
const GUIDES: &[&str] = &[
    "docs/scan.md",
    "docs/sources.md",
    "docs/report.md",
    "docs/serve.md",
    "docs/prove.md",
    "docs/guard.md",
    "docs/ci.md",
    "docs/suppressions-and-baseline.md",
    "docs/config.md",
    "docs/models.md",
    "docs/languages.md",
];

pub(crate) const SECTIONS: &[&str] = &["Start", "Guides", "Rules", "Reference", "Project"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// In the repository, with `/`.
    pub(crate) path: String,
    /// On the site, with `/`.
    pub(crate) address: String,
    pub(crate) title: String,
    pub(crate) text: String,
    /// Index into [`SECTIONS`].
    pub(crate) section: usize,
}

/// Pages by their path in the repository.
pub(crate) fn find(root: &Path) -> std::io::Result<BTreeMap<String, Page>> {
    let mut pages = BTreeMap::new();
    walk(root, "", &mut pages)?;
    Ok(pages)
}

fn walk(folder: &Path, prefix: &str, pages: &mut BTreeMap<String, Page>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && !NOT_HERE.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{path}/"), pages)?;
        } else if kind.is_file() && name.ends_with(".md") {
            let text = std::fs::read_to_string(entry.path())?;
            pages.insert(path.clone(), page(path, text));
        }
    }
    Ok(())
}

fn page(path: String, text: String) -> Page {
    let title = text
        .lines()
        .find_map(|line| line.strip_prefix("# "))
        .unwrap_or(&path)
        .replace('`', "");
    Page {
        address: address(&path),
        section: section(&path),
        title: if path == "README.md" {
            "Overview".to_owned()
        } else {
            title
        },
        path,
        text,
    }
}

/// `docs/rules/README.md` is the index of its folder.
fn address(path: &str) -> String {
    let stem = path.strip_suffix(".md").unwrap_or(path);
    match stem.strip_suffix("README") {
        Some(folder) if folder.is_empty() || folder.ends_with('/') => format!("{folder}index.html"),
        _ => format!("{stem}.html"),
    }
}

fn section(path: &str) -> usize {
    match path {
        "README.md" | "docs/concepts.md" => 0,
        "docs/scoring.md" | "docs/evaluation.md" | "docs/performance.md" => 3,
        _ if path.starts_with("docs/rules/") => 2,
        _ if path.starts_with("docs/reference/") => 3,
        _ if path.starts_with("docs/") => 1,
        _ => 4,
    }
}

/// The pages of a section, in order.
pub(crate) fn in_section(pages: &BTreeMap<String, Page>, section: usize) -> Vec<&Page> {
    let mut found: Vec<&Page> = pages
        .values()
        .filter(|page| page.section == section)
        .collect();
    found.sort_by_key(|page| {
        let guide = GUIDES.iter().position(|path| *path == page.path);
        let index = !page.path.ends_with("README.md");
        (index, guide.unwrap_or(GUIDES.len()), page.path.clone())
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(address("README.md"), "index.html");
        assert_eq!(address("docs/rules/README.md"), "docs/rules/index.html");
        assert_eq!(address("docs/guard.md"), "docs/guard.html");
    }

    #[test]
    fn guides_in_the_order_of_need_and_unknown_ones_at_the_end() {
        let pages: BTreeMap<String, Page> = ["docs/zebra.md", "docs/guard.md", "docs/scan.md"]
            .iter()
            .map(|path| {
                (
                    (*path).to_owned(),
                    page((*path).to_owned(), "# `t`\n".to_owned()),
                )
            })
            .collect();
        let order: Vec<&str> = in_section(&pages, 1)
            .iter()
            .map(|page| page.path.as_str())
            .collect();
        assert_eq!(order, ["docs/scan.md", "docs/guard.md", "docs/zebra.md"]);
        assert_eq!(pages["docs/scan.md"].title, "t");
    }
}
