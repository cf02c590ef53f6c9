//! Which versions of which packages a project asks for.
//!
//! Lock files say which version it is; where there is none, the lower bound of
//! the requirement does.

use toctou_core::frontend::{Manifest, Requirement};

type Version = (u32, u32);

pub(crate) fn requirements(manifest: &Manifest) -> Vec<Requirement> {
    let name = manifest.path.rsplit('/').next().unwrap_or_default();
    let mut out = Vec::new();
    match name {
        "uv.lock" | "poetry.lock" => {
            // `[[package]]`, `name = "…"`, `version = "…"`, in this order.
            let mut current: Option<&str> = None;
            for line in manifest.text.lines() {
                let line = line.trim();
                if line == "[[package]]" {
                    current = None;
                } else if let Some(name) = value(line, "name") {
                    current = Some(name);
                } else if let Some(version) = value(line, "version")
                    && let (Some(package), Some(version)) = (current.take(), number(version))
                {
                    out.push(Requirement {
                        package: package.to_owned(),
                        version,
                        exact: true,
                    });
                }
            }
        }
        "pyproject.toml" | "Pipfile" => {
            if let Ok(table) = manifest.text.parse::<toml::Table>() {
                in_toml(&table, &mut out);
            }
        }
        _ if super::is_manifest(name) => {
            out.extend(manifest.text.lines().filter_map(requirement));
        }
        _ => {}
    }
    out
}

fn value<'t>(line: &'t str, key: &str) -> Option<&'t str> {
    let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
    rest.trim().strip_prefix('"')?.strip_suffix('"')
}

fn in_toml(table: &toml::Table, out: &mut Vec<Requirement>) {
    let project = table.get("project").and_then(|p| p.as_table());
    let lists = [
        project.and_then(|p| p.get("dependencies")),
        table.get("dependencies"),
    ];
    for list in lists.into_iter().flatten().filter_map(|l| l.as_array()) {
        out.extend(list.iter().filter_map(|i| requirement(i.as_str()?)));
    }
    // Poetry and Pipfile: `mcp = "^1.2"`, `mcp = { version = "^1.2" }`
    let tables = [
        table
            .get("tool")
            .and_then(|t| t.get("poetry"))
            .and_then(|p| p.get("dependencies")),
        table.get("packages"),
    ];
    for table in tables.into_iter().flatten().filter_map(|t| t.as_table()) {
        for (package, value) in table {
            let version = match value {
                toml::Value::String(text) => Some(text.as_str()),
                toml::Value::Table(t) => t.get("version").and_then(|v| v.as_str()),
                _ => None,
            };
            if let Some((version, exact)) = version.and_then(bound) {
                out.push(Requirement {
                    package: package.clone(),
                    version,
                    exact,
                });
            }
        }
    }
}

/// `mcp[cli]>=1.2,<2 ; python_version > "3.9"`
fn requirement(line: &str) -> Option<Requirement> {
    let line = line.split(['#', ';']).next()?.trim();
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len());
    let (name, mut rest) = line.split_at(end);
    if let Some(extras) = rest.trim_start().strip_prefix('[') {
        rest = extras.split_once(']')?.1;
    }
    let (version, exact) = bound(rest)?;
    Some(Requirement {
        package: name.to_owned(),
        version,
        exact,
    })
}

/// The lowest version that a requirement allows; the one that an upper bound
/// leaves. And whether it can be no other major one.
fn bound(text: &str) -> Option<(Version, bool)> {
    let mut low: Option<(Version, bool)> = None;
    let mut high: Option<Version> = None;
    for part in text.split(',') {
        let part = part.trim().trim_matches(['(', ')']);
        let digits = part.trim_start_matches(['=', '>', '<', '~', '^', '!', ' ']);
        let Some((major, minor)) = number(digits) else {
            continue;
        };
        if part.starts_with('<') {
            let patch = digits.split('.').skip(2).any(|p| p.trim() != "0");
            high = Some(if part.starts_with("<=") || patch {
                (major, minor)
            } else if minor > 0 {
                (major, minor - 1)
            } else {
                (major.saturating_sub(1), 0)
            });
        } else if !part.starts_with('!') {
            let exact = part.starts_with("==") || part.starts_with('~') || part.starts_with('^');
            low = Some(((major, minor), exact));
        }
    }
    match (low, high) {
        (Some((low, exact)), high) => {
            Some((low, exact || high.is_some_and(|high| high.0 <= low.0)))
        }
        (None, Some(high)) => Some((high, true)),
        (None, None) => None,
    }
}

fn number(version: &str) -> Option<Version> {
    let mut parts = version.split('.').map(|part| {
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        part[..end].parse().ok()
    });
    let major = parts.next()??;
    Some((major, parts.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_have_a_lowest_version() {
        let said = |line| requirement(line).map(|r| (r.package, r.version, r.exact));
        let is = |name: &str, version, exact| Some((name.to_owned(), version, exact));
        assert_eq!(said("mcp[cli]>=1.2,<2"), is("mcp", (1, 2), true));
        assert_eq!(said("mcp>=1.2"), is("mcp", (1, 2), false));
        assert_eq!(said("mcp==2.0.1  # pinned"), is("mcp", (2, 0), true));
        assert_eq!(
            said("fastmcp>=3.0.0 ; python_version > '3.10'"),
            is("fastmcp", (3, 0), false)
        );
        assert_eq!(said("mcp<2"), is("mcp", (1, 0), true));
        assert_eq!(said("mcp<2.3"), is("mcp", (2, 2), true));
        assert_eq!(said("mcp"), None);
        assert_eq!(said("mcp-agent>=3"), is("mcp-agent", (3, 0), false));
    }
}
