//! By which dispatch each module runs: that depends on the version of the SDK.
//!
//! Manifests say which version it is, models what follows from it. Where no
//! manifest says it, what the front end assumes is kept.

use rustc_hash::FxHashSet;
use toctou_core::frontend::Requirement;
use toctou_core::ir::{Dispatch, Module, Target};

use crate::load::Models;
use crate::schema::RunsModel;

/// What the manifests of a folder ask for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The folder of the manifest, `""` for the root.
    pub folder: String,
    pub requirements: Vec<Requirement>,
}

impl Models {
    /// Sets the dispatch of modules; `paths[i]` is the file of `modules[i]`.
    /// Returns what the reader of a report should know.
    pub fn set_dispatch(
        &self,
        paths: &[String],
        modules: &mut [Module],
        asked: &[Asked],
    ) -> Vec<String> {
        let mut packages: Vec<&str> = Vec::new();
        for runs in self.runs() {
            if !packages.contains(&runs.package.as_str()) {
                packages.push(&runs.package);
            }
        }
        let uses: Vec<Option<&str>> = modules
            .iter()
            .map(|module| uses(module, &packages))
            .collect();
        // Which SDK a project is on is often said by one module only.
        let main = uses.iter().flatten().next().copied();
        let mut named: FxHashSet<&str> = FxHashSet::default();
        let other = self.runs().flat_map(|runs| &runs.unless_named);
        named.extend(other.map(String::as_str).filter(|name| {
            modules
                .iter()
                .any(|module| module.names.find(name).is_some())
        }));
        let mut unknown: Vec<&str> = Vec::new();
        for ((path, module), uses) in paths.iter().zip(modules).zip(uses) {
            let Some(package) = uses.or(main) else {
                continue;
            };
            let said = nearest(asked, path, package);
            let runs = said.and_then(|said| self.runs_at(package, said.version));
            match runs {
                Some(runs) => {
                    if let Some(dispatch) = dispatch(runs, &named) {
                        module.dispatch = dispatch;
                    }
                }
                None if self.decides_about_threads(package) => {
                    if !unknown.contains(&package) {
                        unknown.push(package);
                    }
                    module.dispatch = Dispatch::Threads { handlers: None };
                }
                None => {}
            }
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

    /// What holds for a version: the last that begins at or before it.
    fn runs_at(&self, package: &str, version: (u32, u32)) -> Option<&RunsModel> {
        self.runs()
            .filter(|runs| runs.package == package)
            .filter_map(|runs| Some((version_of(&runs.from)?, runs)))
            .filter(|(from, _)| *from <= version)
            .max_by_key(|(from, _)| *from)
            .map(|(_, runs)| runs)
    }

    fn decides_about_threads(&self, package: &str) -> bool {
        self.runs()
            .any(|runs| runs.package == package && runs.threads.is_some())
    }
}

fn dispatch(runs: &RunsModel, named: &FxHashSet<&str>) -> Option<Dispatch> {
    if let Some(handlers) = runs.threads {
        return Some(Dispatch::Threads {
            handlers: Some(handlers),
        });
    }
    let elsewhere = runs
        .unless_named
        .iter()
        .any(|name| named.contains(name.as_str()));
    let handlers = runs.at_once.filter(|_| !elsewhere)?;
    Some(Dispatch::Bounded { handlers })
}

/// `0.33`, `2`
pub(crate) fn version_of(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The package that a module imports.
fn uses<'p>(module: &Module, packages: &[&'p str]) -> Option<&'p str> {
    module.imports.iter().find_map(|import| {
        let Some(Target::External(name)) = import.target else {
            return None;
        };
        let name = module.names.text(name);
        packages.iter().copied().find(|package| {
            name.strip_prefix(package)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/']))
        })
    })
}

/// What the manifests nearest above a file say.
fn nearest<'a>(asked: &'a [Asked], path: &str, package: &str) -> Option<&'a Requirement> {
    let mut best: Option<(usize, &Requirement)> = None;
    for Asked {
        folder,
        requirements,
    } in asked
    {
        let above = folder.is_empty()
            || path
                .strip_prefix(folder.as_str())
                .is_some_and(|rest| rest.starts_with('/'));
        for said in requirements
            .iter()
            .filter(|r| above && r.package == package)
        {
            let better = match best {
                None => true,
                Some((len, old)) => (said.exact, folder.len()) > (old.exact, len),
            };
            if better {
                best = Some((folder.len(), said));
            }
        }
    }
    best.map(|(_, said)| said)
}

#[cfg(test)]
mod tests {
    use toctou_core::FileId;
    use toctou_core::ir::{Import, ImportedName, Var};

    use super::*;

    /// By which dispatch a module that imports `path` runs, and how many notes there are.
    fn dispatch_of(
        language: &str,
        path: &str,
        named: &[&str],
        asked: &[(&str, (u32, u32))],
    ) -> (Dispatch, usize) {
        let mut module = Module::new(FileId(0), Dispatch::Anywhere);
        let name = module.names.intern(path);
        for name in named {
            module.names.intern(name);
        }
        module.imports.push(Import {
            var: Var(0),
            specifier: name,
            name: ImportedName::Namespace,
            target: Some(Target::External(name)),
        });
        let requirements = asked
            .iter()
            .map(|(package, version)| Requirement {
                package: (*package).to_owned(),
                version: *version,
                exact: true,
            })
            .collect();
        let asked = [Asked {
            folder: String::new(),
            requirements,
        }];
        let mut modules = [module];
        let notes =
            Models::builtin(language).set_dispatch(&["src/a".to_owned()], &mut modules, &asked);
        (modules[0].dispatch, notes.len())
    }

    #[test]
    fn the_version_decides_about_threads() {
        let of = |asked: &[_]| dispatch_of("python", "mcp.server.fastmcp", &[], asked);
        let threads = |handlers| Dispatch::Threads { handlers };
        assert_eq!(of(&[("mcp", (1, 9))]), (threads(Some(false)), 0));
        assert_eq!(of(&[("mcp", (2, 0))]), (threads(Some(true)), 0));
        assert_eq!(of(&[("other", (2, 0))]), (threads(None), 1));
    }

    #[test]
    fn the_version_decides_how_many_handlers_run_at_once() {
        let go = "github.com/mark3labs/mcp-go";
        let of = |named: &[&str], minor| {
            let import = format!("{go}/server");
            dispatch_of("go", &import, named, &[(go, (0, minor))]).0
        };
        assert_eq!(of(&[], 32), Dispatch::Bounded { handlers: 1 });
        assert_eq!(of(&[], 33), Dispatch::Anywhere);
        assert_eq!(of(&[], 44), Dispatch::Bounded { handlers: 5 });
        assert_eq!(of(&["NewSSEServer"], 32), Dispatch::Anywhere);
        let unknown = dispatch_of("go", "github.com/mark3labs/mcp-go/server", &[], &[]);
        assert_eq!(unknown, (Dispatch::Anywhere, 0));
        // A package whose name only begins alike is another one.
        let other = dispatch_of("go", "github.com/mark3labs/mcp-gone", &[], &[(go, (0, 1))]);
        assert_eq!(other, (Dispatch::Anywhere, 0));
    }
}
