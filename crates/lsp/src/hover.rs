//! The page of a rule, where its name or its finding is under the pointer.

use toctou_core::Finding;
use toctou_core::rule::RuleMeta;
use toctou_rules::registry;

/// The rules of an ignore comment's line, or of findings that are marked here.
pub(crate) fn rules(line: &str, findings: &[&Finding]) -> Vec<&'static RuleMeta> {
    let mut rules: Vec<&'static RuleMeta> = named(line)
        .into_iter()
        .chain(findings.iter().map(|finding| finding.rule.as_str()))
        .filter_map(registry::find)
        .collect();
    rules.sort_by_key(|rule| rule.id);
    rules.dedup_by_key(|rule| rule.id);
    rules
}

/// The names in `toctou: ignore[a, b] reason`.
fn named(line: &str) -> Vec<&str> {
    let list = line
        .split_once("toctou:")
        .and_then(|(_, rest)| rest.split_once('['))
        .and_then(|(_, rest)| rest.split_once(']'));
    match list {
        Some((names, _)) => names.split(',').map(str::trim).collect(),
        None => Vec::new(),
    }
}

pub(crate) fn markdown(rules: &[&RuleMeta]) -> String {
    let pages: Vec<String> = rules.iter().map(|rule| page(rule.page)).collect();
    pages.join("\n---\n\n")
}

/// The page, with the fences of its examples as editors know them.
fn page(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| match line.strip_prefix("```") {
            // "```ts bad persona=regular" is TypeScript.
            Some(fence) => {
                let language = fence.split(' ').next().unwrap_or(fence);
                &line[..3 + language.len()]
            }
            None => line.split("//~").next().unwrap_or(line).trim_end(),
        })
        .collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_rules_by_name() {
        let line = "  // toctou: ignore[data-race, file-check-then-act] one writer";
        let ids: Vec<&str> = rules(line, &[]).iter().map(|rule| rule.id).collect();
        assert_eq!(ids, ["data-race", "file-check-then-act"]);
        assert!(rules("// toctou: ignore[", &[]).is_empty());
        assert!(rules("a[0] = data-race", &[]).is_empty());
    }

    #[test]
    fn pages_are_markdown_that_editors_colour() {
        for rule in registry::all() {
            let text = markdown(&[rule]);
            assert!(text.starts_with(&format!("# {}\n", rule.id)));
            assert!(!text.contains("//~"), "{}", rule.id);
            assert!(!text.contains("```ts bad"), "{}", rule.id);
        }
    }
}
