//! The rules' pages tell the truth: each code block is scanned as a file of its
//! own, and must give exactly the findings that its `//~ rule` or `#~ rule` marks name.
//!
//! A block opens with three backticks and `ts bad` or `py good`, and
//! `persona=NAME` if it is not for the regular one. [`FILES`] says which
//! languages there are, and as which file a block is scanned.

use std::collections::BTreeSet;

use crate::common::Project;
use toctou_rules::absent::{ABSENT, Absence, LANGUAGES, absence};
use toctou_rules::rules::ALL;

/// Language of a block, and the file it is scanned as.
const FILES: &[(&str, &str)] = &[
    ("ts", "server.ts"),
    ("py", "server.py"),
    ("go", "main.go"),
    ("rs", "src/main.rs"),
];

#[derive(Debug)]
struct Block {
    language: &'static str,
    file: &'static str,
    bad: bool,
    persona: String,
    /// Of the opening backticks, in the page.
    line: usize,
    text: String,
}

type Marks = BTreeSet<(u64, String)>;

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let text: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .collect();
        let mut words = info.split_whitespace();
        let language = words.next();
        let Some(&(language, file)) = FILES.iter().find(|(name, _)| Some(*name) == language) else {
            continue;
        };
        let bad = match words.next() {
            Some("bad") => true,
            Some("good") => false,
            // Shown, and not tested, where there is no front end for it yet.
            None if language != "ts" => continue,
            _ => panic!("line {}: `{language}` is neither bad nor good", index + 1),
        };
        let persona = words
            .map(|word| {
                word.strip_prefix("persona=")
                    .unwrap_or_else(|| panic!("line {}: what is `{word}`?", index + 1))
            })
            .next_back()
            .unwrap_or("regular");
        found.push(Block {
            language,
            file,
            bad,
            persona: persona.to_owned(),
            line: index + 1,
            text: text.join("\n") + "\n",
        });
    }
    found
}

fn marks(text: &str) -> Marks {
    let mut found = Marks::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mark = line.split_once("//~").or_else(|| line.split_once("#~"));
        if let Some((_, rules)) = mark {
            found.extend(
                rules
                    .split_whitespace()
                    .map(|rule| (number, rule.to_owned())),
            );
        }
    }
    found
}

fn scan(block: &Block) -> Result<Marks, String> {
    let project = Project::new(&[(block.file, &block.text)]);
    let run = project.run(&format!(
        "scan {} --no-config --persona {} --output json",
        block.file, block.persona
    ));
    if !matches!(run.code, Some(0 | 1)) {
        return Err(run.seen());
    }
    let json = run.json();
    if let Some(skipped) = json["skipped"].as_array().filter(|list| !list.is_empty()) {
        return Err(format!("{skipped:?}"));
    }
    let findings = json["findings"].as_array().expect("findings");
    Ok(findings
        .iter()
        .map(|finding| {
            (
                finding["location"]["line"].as_u64().expect("line"),
                finding["rule"].as_str().expect("rule").to_owned(),
            )
        })
        .collect())
}

fn shown(marks: &Marks) -> String {
    let list: Vec<String> = marks
        .iter()
        .map(|(line, rule)| format!("{rule} at {line}"))
        .collect();
    if list.is_empty() {
        return "nothing".to_owned();
    }
    list.join(", ")
}

#[test]
fn blocks_fire_exactly_where_they_say() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for rule in ALL {
        for (number, block) in (1..).zip(blocks(rule.page)) {
            count += 1;
            let expected = marks(&block.text);
            let got = match scan(&block) {
                Ok(got) if got == expected => continue,
                Ok(got) => shown(&got),
                Err(message) => message,
            };
            wrong.push(format!(
                "{} block {number} ({} {}, {}, page.md:{})\n  expected {}\n  got      {got}",
                rule.id,
                block.language,
                if block.bad { "bad" } else { "good" },
                block.persona,
                block.line,
                shown(&expected),
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} blocks are not as marked (lines count within the block):\n\n{}\n",
        wrong.len(),
        wrong.join("\n\n"),
    );
}

#[test]
fn every_page_shows_its_own_rule_and_a_repair() {
    let mut wrong = Vec::new();
    for rule in ALL {
        let blocks = blocks(rule.page);
        // What a page shows wrong in a language, it shows repaired in it.
        for (language, _) in FILES {
            let of = |bad| {
                blocks
                    .iter()
                    .any(|block| block.language == *language && block.bad == bad)
            };
            let absent = absence(rule.id, language);
            if of(true) != of(false) && !matches!(absent, Some(Absence::Cannot(_))) {
                wrong.push(format!(
                    "{}: `{language}` has only one of bad and good",
                    rule.id
                ));
            }
            match (of(true), absent) {
                (false, None) => wrong.push(format!(
                    "{}: no `{language} bad` block: say why in crates/rules/src/absent.rs",
                    rule.id
                )),
                (true, Some(why)) => wrong.push(format!(
                    "{}: has a `{language} bad` block, but is listed: {why:?}",
                    rule.id
                )),
                _ => {}
            }
        }
        for block in &blocks {
            let marks = marks(&block.text);
            let own = marks.iter().any(|(_, id)| id == rule.id);
            if block.bad && !own {
                wrong.push(format!(
                    "{}: page.md:{}: a bad block without `//~ {}`",
                    rule.id, block.line, rule.id
                ));
            }
            if !block.bad && !marks.is_empty() {
                wrong.push(format!(
                    "{}: page.md:{}: a good block with a mark",
                    rule.id, block.line
                ));
            }
            for (_, id) in marks {
                if !ALL.iter().any(|other| other.id == id) {
                    wrong.push(format!("{}: a mark for no rule: `{id}`", rule.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Nothing is excused that is not there.
#[test]
fn what_is_absent_is_a_rule_in_a_language() {
    for (index, (rule, language, why)) in ABSENT.iter().enumerate() {
        assert!(ALL.iter().any(|r| r.id == *rule), "{rule}");
        assert!(
            LANGUAGES.iter().any(|(tag, _)| tag == language),
            "{rule} {language}"
        );
        let again = |(r, l, _): &&(&str, &str, Absence)| r == rule && l == language;
        assert_eq!(
            ABSENT.iter().position(|a| again(&a)),
            Some(index),
            "{rule} {language}"
        );
        if let Absence::Cannot(reason) = why {
            assert!(
                !reason.is_empty() && !reason.ends_with('.'),
                "{rule} {language}"
            );
        }
    }
    let tested: Vec<&str> = FILES.iter().map(|(tag, _)| *tag).collect();
    let shown: Vec<&str> = LANGUAGES.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(tested, shown);
}
