//! Looking rules up by id, and what to say when there is none.

use toctou_core::rule::RuleMeta;

use crate::rules;

/// Facts about every rule, in the order of their ids.
pub fn all() -> &'static [RuleMeta] {
    rules::ALL
}

pub fn find(id: &str) -> Option<&'static RuleMeta> {
    all().iter().find(|rule| rule.id == id)
}

/// The rule that somebody who typed `id` most likely meant.
pub fn closest(id: &str) -> Option<&'static str> {
    closest_of(id, all().iter().map(|rule| rule.id))
}

/// The candidate nearest to `word`, if it is near at all.
pub fn closest_of<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .map(|candidate| {
            let near = strsim::jaro_winkler(&word, &candidate.replace('_', "-"));
            // "rate-limit" is far from "non-atomic-rate-limit" by letters, and yet meant.
            let inside = word.len() >= 4 && candidate.contains(word.as_str());
            (candidate, if inside { near.max(0.9) } else { near })
        })
        .filter(|&(_, near)| near >= 0.8)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(candidate, _)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sorted_kebab_case_and_unique() {
        let ids: Vec<_> = all().iter().map(|rule| rule.id).collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(ids, sorted);
        for id in ids {
            assert!(
                id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{id}"
            );
        }
    }

    #[test]
    fn every_rule_folder_is_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
        for entry in std::fs::read_dir(folder).expect("src/rules") {
            let name = entry.expect("entry").file_name();
            let id = name.to_string_lossy().replace('_', "-");
            assert!(
                find(&id).is_some(),
                "{id} has a folder but is not in rules.rs"
            );
        }
    }

    #[test]
    fn summaries_fit_a_sarif_short_description() {
        for rule in all() {
            assert!(
                rule.summary.len() <= 100,
                "{}: {}",
                rule.id,
                rule.summary.len()
            );
            assert!(!rule.summary.ends_with('.'), "{}", rule.id);
        }
    }

    #[test]
    fn suggests_what_was_meant() {
        assert_eq!(
            closest("file-read-modify-writ"),
            Some("file-read-modify-write")
        );
        assert_eq!(closest("rate-limit"), Some("non-atomic-rate-limit"));
        assert_eq!(closest("db_lost_update"), Some("db-lost-update"));
        assert_eq!(closest("xyzzy"), None);
    }
}
