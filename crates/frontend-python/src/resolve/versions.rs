//! By which dispatch each module runs: that depends on the version of the SDK.
//!
//! A handler that is not asynchronous is run in place by older SDKs, and by
//! newer ones in a thread of its own. Lock files say which version it is;
//! where there is none, the lower bound of the requirement does.

use toctou_core::frontend::Manifest;
use toctou_core::ir::{Dispatch, Module, Target};

use super::files::folder;

/// Packages whose synchronous handlers have threads from a major version on.
const THREADED: &[(&str, u32)] = &[("mcp", 2), ("fastmcp", 3)];

/// What a manifest says about a package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Said {
    major: u32,
    /// By a lock file or an exact pin, and not by a lower bound.
    exact: bool,
}

pub(super) fn dispatch(
    paths: &[String],
    modules: &mut [Module],
    manifests: &[Manifest],
) -> Vec<String> {
    let said: Vec<(&str, Vec<(usize, Said)>)> = manifests
        .iter()
        .map(|m| (folder(&m.path), packages(m)))
        .collect();
    let mut unknown: Vec<&str> = Vec::new();
    let uses: Vec<Option<usize>> = modules.iter().map(uses).collect();
    // Which SDK a project is on is often said by one module only.
    let main = uses.iter().flatten().next().copied();
    for (index, module) in modules.iter_mut().enumerate() {
        let Some(path) = paths.get(index) else { break };
        let Some(package) = uses.get(index).copied().flatten().or(main) else {
            continue;
        };
        module.dispatch = match nearest(&said, path, package) {
            Some(said) => Dispatch::Threads {
                handlers: Some(said.major >= THREADED[package].1),
            },
            None => {
                if !unknown.contains(&THREADED[package].0) {
                    unknown.push(THREADED[package].0);
                }
                Dispatch::Threads { handlers: None }
            }
        };
    }
    unknown
        .into_iter()
        .map(|name| {
            format!(
                "no manifest says which version of {name} is used: whether its synchronous \
                 handlers run in threads is not known, and what rests on that is less certain"
            )
        })
        .collect()
}

/// The SDK that a module imports, as an index into [`THREADED`].
fn uses(module: &Module) -> Option<usize> {
    module.imports.iter().find_map(|import| {
        let Some(Target::External(name)) = import.target else {
            return None;
        };
        let head = module.names.text(name).split('.').next()?;
        THREADED.iter().position(|(package, _)| *package == head)
    })
}

/// What the manifests nearest above a file say.
fn nearest(said: &[(&str, Vec<(usize, Said)>)], path: &str, package: usize) -> Option<Said> {
    let mut best: Option<(usize, Said)> = None;
    for (base, packages) in said {
        let above = base.is_empty()
            || path
                .strip_prefix(base)
                .is_some_and(|rest| rest.starts_with('/'));
        if !above {
            continue;
        }
        for (p, said) in packages {
            let better = match best {
                None => true,
                Some((len, old)) => (said.exact, base.len()) > (old.exact, len),
            };
            if *p == package && better {
                best = Some((base.len(), *said));
            }
        }
    }
    best.map(|(_, said)| said)
}

fn packages(manifest: &Manifest) -> Vec<(usize, Said)> {
    let name = manifest.path.rsplit('/').next().unwrap_or_default();
    let mut out = Vec::new();
    match name {
        "uv.lock" | "poetry.lock" => {
            // `[[package]]`, `name = "…"`, `version = "…"`, in this order.
            let mut current: Option<usize> = None;
            for line in manifest.text.lines() {
                let line = line.trim();
                if line == "[[package]]" {
                    current = None;
                } else if let Some(name) = value(line, "name") {
                    current = THREADED.iter().position(|(p, _)| *p == name);
                } else if let Some(version) = value(line, "version")
                    && let (Some(package), Some(major)) = (current.take(), major(version))
                {
                    out.push((package, Said { major, exact: true }));
                }
            }
        }
        "pyproject.toml" | "Pipfile" => {
            if let Ok(table) = manifest.text.parse::<toml::Table>() {
                in_toml(&table, &mut out);
            }
        }
        _ => {
            for line in manifest.text.lines() {
                out.extend(requirement(line));
            }
        }
    }
    out
}

fn value<'t>(line: &'t str, key: &str) -> Option<&'t str> {
    let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
    rest.trim().strip_prefix('"')?.strip_suffix('"')
}

fn in_toml(table: &toml::Table, out: &mut Vec<(usize, Said)>) {
    let project = table.get("project").and_then(|p| p.as_table());
    let lists = [
        project.and_then(|p| p.get("dependencies")),
        table.get("dependencies"),
    ];
    for list in lists.into_iter().flatten().filter_map(|l| l.as_array()) {
        for item in list.iter().filter_map(|i| i.as_str()) {
            out.extend(requirement(item));
        }
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
        for (index, (package, _)) in THREADED.iter().enumerate() {
            let version = match table.get(*package) {
                Some(toml::Value::String(text)) => Some(text.as_str()),
                Some(toml::Value::Table(t)) => t.get("version").and_then(|v| v.as_str()),
                _ => None,
            };
            if let Some(said) = version.and_then(bound) {
                out.push((index, said));
            }
        }
    }
}

/// `mcp[cli]>=1.2,<2 ; python_version > "3.9"`
fn requirement(line: &str) -> Option<(usize, Said)> {
    let line = line.split(['#', ';']).next()?.trim();
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(line.len());
    let (name, mut rest) = line.split_at(end);
    let index = THREADED.iter().position(|(p, _)| name == *p)?;
    if let Some(extras) = rest.trim_start().strip_prefix('[') {
        rest = extras.split_once(']')?.1;
    }
    bound(rest).map(|said| (index, said))
}

/// The lowest version that a requirement allows; the one that an upper bound leaves.
fn bound(text: &str) -> Option<Said> {
    let mut low: Option<Said> = None;
    let mut high: Option<u32> = None;
    for part in text.split(',') {
        let part = part.trim().trim_matches(['(', ')']);
        let digits = part.trim_start_matches(['=', '>', '<', '~', '^', '!', ' ']);
        let Some(found) = major(digits) else { continue };
        if part.starts_with('<') {
            let inclusive = part.starts_with("<=");
            let minor = digits.split('.').skip(1).any(|p| p.trim() != "0");
            high = Some(if inclusive || minor {
                found
            } else {
                found.saturating_sub(1)
            });
        } else if !part.starts_with('!') {
            let exact = part.starts_with("==") || part.starts_with('~') || part.starts_with('^');
            low = Some(Said {
                major: found,
                exact,
            });
        }
    }
    match (low, high) {
        (Some(low), Some(high)) if high <= low.major => Some(Said { exact: true, ..low }),
        (Some(low), _) => Some(low),
        (None, Some(high)) => Some(Said {
            major: high,
            exact: true,
        }),
        (None, None) => None,
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_have_a_lowest_version() {
        let said = |line| requirement(line).map(|(_, s)| (s.major, s.exact));
        assert_eq!(said("mcp[cli]>=1.2,<2"), Some((1, true)));
        assert_eq!(said("mcp>=1.2"), Some((1, false)));
        assert_eq!(said("mcp==2.0.1  # pinned"), Some((2, true)));
        assert_eq!(
            said("fastmcp>=3.0.0 ; python_version > '3.10'"),
            Some((3, false))
        );
        assert_eq!(said("mcp"), None);
        assert_eq!(said("mcp-agent>=3"), None);
    }
}
