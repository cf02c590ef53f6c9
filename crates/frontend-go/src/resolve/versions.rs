//! Which versions of which modules `go.mod` asks for. They are exact.

use toctou_core::frontend::{Manifest, Requirement};

pub(crate) fn requirements(manifest: &Manifest) -> Vec<Requirement> {
    let name = manifest.path.rsplit('/').next().unwrap_or_default();
    if name != "go.mod" {
        return Vec::new();
    }
    let mut out: Vec<Requirement> = Vec::new();
    let mut replaced: Vec<(&str, Option<(u32, u32)>)> = Vec::new();
    let mut block = "";
    for line in manifest.text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let mut words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [word, "("] => {
                block = word;
                continue;
            }
            [")"] => {
                block = "";
                continue;
            }
            _ => {}
        }
        let directive = if block.is_empty() && !words.is_empty() {
            words.remove(0)
        } else {
            block
        };
        match (directive, words.as_slice()) {
            ("require", [package, version]) => {
                out.extend(number(version).map(|version| Requirement {
                    package: unquoted(package).to_owned(),
                    version,
                    exact: true,
                }));
            }
            // `a [v1.2.3] => b v1.2.3`, or a folder: then nobody knows.
            ("replace", [package, rest @ ..]) => {
                let version = match rest {
                    ["=>", _, version] | [_, "=>", _, version] => number(version),
                    _ => None,
                };
                replaced.push((unquoted(package), version));
            }
            _ => {}
        }
    }
    for (package, version) in replaced {
        match version {
            Some(version) => {
                for said in out.iter_mut().filter(|r| r.package == package) {
                    said.version = version;
                }
            }
            None => out.retain(|r| r.package != package),
        }
    }
    out
}

fn unquoted(path: &str) -> &str {
    path.trim_matches('"')
}

fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v')?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_go_mod() {
        let text = "module example.com/x\n\ngo 1.23\n\nrequire example.com/one v1.2.3\n\n\
            require (\n\texample.com/two v0.32.0\n\texample.com/three v0.1.0 // indirect\n\t\
            example.com/four v2.0.0+incompatible\n)\n\n\
            replace example.com/three => ../three\nreplace example.com/two v0.32.0 => example.com/fork v0.40.1\n";
        let manifest = Manifest {
            path: "sub/go.mod".to_owned(),
            text: text.to_owned(),
        };
        let said: Vec<(String, (u32, u32))> = requirements(&manifest)
            .into_iter()
            .map(|r| (r.package, r.version))
            .collect();
        let is = |name: &str, version| (format!("example.com/{name}"), version);
        assert_eq!(
            said,
            [is("one", (1, 2)), is("two", (0, 40)), is("four", (2, 0))]
        );
    }
}
