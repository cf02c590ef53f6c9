//! `use` declarations.

use syn::UseTree;
use toctou_core::ir::{ExportTarget, TypeDef};

use super::paths::{join, parent};
use super::{Item, Lower};

impl Lower<'_> {
    /// At item level, or (`local`) in a block. What is private is exported too:
    /// whoever could not use it does not.
    pub(super) fn use_item(&mut self, item: &syn::ItemUse, local: bool) {
        // `{a, {b, {c}}}` nests; the list of what is left to do does not.
        let mut work: Vec<(Vec<String>, &UseTree)> = vec![(Vec::new(), &item.tree)];
        while let Some((prefix, tree)) = work.pop() {
            match tree {
                UseTree::Path(p) => {
                    let mut prefix = prefix;
                    prefix.push(p.ident.to_string());
                    work.push((prefix, &p.tree));
                }
                UseTree::Group(group) => {
                    for tree in group.items.iter().rev() {
                        work.push((prefix.clone(), tree));
                    }
                }
                UseTree::Glob(_) => {
                    if let Some(path) = self.outwards(&prefix) {
                        let specifier = self.names.intern(&path.join("::"));
                        self.star_exports.push((specifier, None));
                    }
                }
                UseTree::Name(name) => {
                    let name = name.ident.to_string();
                    if name == "self" {
                        let alias = prefix.last().cloned().unwrap_or_default();
                        self.use_as(&prefix, &alias, local);
                    } else {
                        let mut path = prefix;
                        path.push(name.clone());
                        self.use_as(&path, &name, local);
                    }
                }
                UseTree::Rename(rename) => {
                    let mut path = prefix;
                    if rename.ident != "self" {
                        path.push(rename.ident.to_string());
                    }
                    let alias = rename.rename.to_string();
                    if alias != "_" {
                        self.use_as(&path, &alias, local);
                    }
                }
            }
        }
    }

    fn use_as(&mut self, path: &[String], alias: &str, local: bool) {
        let Some(path) = self.outwards(path) else {
            return;
        };
        let text = path.join("::");
        let var = self.import(&text);
        let ty = self.names.intern(&text);
        self.add_type(ty, TypeDef::Import(var));
        let item = Item {
            var: Some(var),
            ty: Some(ty),
            class: None,
        };
        let name = self.names.intern(alias);
        if local {
            if let Some(scope) = self.f.scopes.last_mut() {
                scope.items.push((name, item));
            }
            return;
        }
        let within = self.names.intern(&self.within);
        self.items.entry((within, name)).or_insert(item);
        let exported = self.names.intern(&join(&self.within, alias));
        self.exports.push((exported, ExportTarget::Local(var)));
        if exported != ty {
            // Others ask for the type by the name that it has here.
            self.add_type(exported, TypeDef::Import(var));
        }
    }

    /// A path as the file's own module sees it: `self` and `super` of an inline
    /// module are taken off.
    fn outwards(&self, path: &[String]) -> Option<Vec<String>> {
        let mut within = self.within.clone();
        let mut at = 0;
        let mut above = 0;
        let mut relative = false;
        while let Some(first) = path.get(at) {
            match first.as_str() {
                "self" => relative = true,
                "super" => {
                    relative = true;
                    if within.is_empty() {
                        above += 1;
                    }
                    within = parent(&within).to_owned();
                }
                _ => break,
            }
            at += 1;
        }
        let rest = path.get(at..)?;
        if !relative {
            return Some(path.to_vec());
        }
        let mut out = if above > 0 {
            vec!["super".to_owned(); above]
        } else {
            vec!["self".to_owned()]
        };
        out.extend(
            within
                .split("::")
                .filter(|s| !s.is_empty())
                .map(str::to_owned),
        );
        out.extend(rest.iter().cloned());
        Some(out)
    }
}
