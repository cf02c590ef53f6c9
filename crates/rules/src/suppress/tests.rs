use jiff::civil::date;
use std::sync::Arc;
use toctou_core::FileRole;

use super::*;
use crate::testing::finding;

const RULE: &str = "file-read-modify-write";

fn comment(covers: u32) -> CommentIgnore {
    CommentIgnore {
        file: "a.ts".to_owned(),
        line: covers.saturating_sub(1),
        covers,
        rules: vec![RULE],
        reason: "one writer".to_owned(),
    }
}

fn in_config(path: &str, expires: Option<Date>) -> ConfigIgnore {
    ConfigIgnore {
        rule: RULE,
        path: Some(globset::Glob::new(path).expect("glob").compile_matcher()),
        reason: "known".to_owned(),
        expires,
        source: "toctou.toml".to_owned(),
        line: 7,
    }
}

fn reason(finding: &Finding) -> Option<&str> {
    finding.suppressed.as_ref().map(|s| s.reason.as_str())
}

#[test]
fn reads_rules_and_reason() {
    assert_eq!(
        parse("toctou: ignore[file-read-modify-write, db-lost-update] one writer"),
        Ok((vec![RULE, "db-lost-update"], "one writer".to_owned()))
    );
    assert_eq!(
        parse("toctou: ignore[data-race]: guarded by the actor */"),
        Ok((vec!["data-race"], "guarded by the actor".to_owned()))
    );
}

#[test]
fn refuses_what_would_hide_too_much() {
    assert_eq!(parse("toctou: ignore because"), Err(Fault::NoRules));
    assert_eq!(parse("toctou: ignore[*] all of it"), Err(Fault::NoRules));
    assert_eq!(parse("toctou: ignore[] all of it"), Err(Fault::NoRules));
    assert_eq!(
        parse("toctou: disable"),
        Err(Fault::UnknownDirective("toctou: disable".to_owned()))
    );
    assert_eq!(
        parse("toctou: ignore[data-race]"),
        Err(Fault::MissingReason {
            rules: "data-race".to_owned()
        })
    );
    assert_eq!(
        parse("toctou: ignore[file-read-modify-writes] why"),
        Err(Fault::UnknownRule {
            rule: "file-read-modify-writes".to_owned(),
            closest: Some(RULE)
        })
    );
}

#[test]
fn comments_alone_cover_the_code_below_them() {
    let text = "// toctou: ignore[a] x\n// toctou: ignore[b] y\n  // and a remark\nsave();\n";
    let file = SourceFile::new(Arc::from("a.ts"), Arc::from(text), FileRole::Product);
    assert_eq!(line_below(&file, 1), 4);
    assert_eq!(line_below(&file, 2), 4);
}

#[test]
fn code_that_looks_like_a_comment_is_code() {
    for (line, comment) in [
        ("/* why */ await save(notes);", false),
        ("*count += 1;", false),
        ("/* why */", true),
        ("/* begins here", true),
        ("* goes on", true),
        ("*/", true),
        ("// why", true),
        ("# why", true),
        ("#[allow(x)]", true),
        ("await save(notes);", false),
    ] {
        assert_eq!(is_comment(line), comment, "{line}");
    }
}

#[test]
fn matches_the_write_or_the_read() {
    let mut findings = [
        finding(RULE, "a.ts", 10),
        finding(RULE, "a.ts", 20),
        finding(RULE, "b.ts", 10),
    ];
    findings[1].read = Some(Location {
        line: 18,
        ..findings[1].location.clone()
    });
    let notes = apply(
        &mut findings,
        &[comment(10), comment(18)],
        &[],
        "",
        date(2026, 1, 1),
    );
    assert_eq!(
        findings.iter().map(reason).collect::<Vec<_>>(),
        [Some("one writer"), Some("one writer"), None]
    );
    assert!(notes.is_empty());
}

#[test]
fn reports_what_matches_nothing() {
    let mut findings = [finding("data-race", "a.ts", 10)];
    let notes = apply(
        &mut findings,
        &[comment(10)],
        &[in_config("**", None)],
        "",
        date(2026, 1, 1),
    );
    let texts: Vec<_> = notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "nothing to ignore here: `file-read-modify-write` does not fire on line 10",
            "nothing to ignore: no `file-read-modify-write` finding matches this entry",
        ]
    );
    assert_eq!(findings.iter().map(reason).collect::<Vec<_>>(), [None]);
}

#[test]
fn config_globs_are_relative_to_the_config() {
    let mut findings = [finding(RULE, "src/a.ts", 10)];
    let ignores = [in_config("packages/memory/src/*.ts", None)];
    apply(
        &mut findings,
        &[],
        &ignores,
        "packages/memory/",
        date(2026, 1, 1),
    );
    assert_eq!(reason(&findings[0]), Some("known"));
}

#[test]
fn an_expired_ignore_counts_again_and_says_so() {
    let ignores = [in_config("**", Some(date(2027, 1, 31)))];
    let mut findings = [finding(RULE, "a.ts", 10)];
    assert!(apply(&mut findings, &[], &ignores, "", date(2027, 1, 31)).is_empty());
    assert_eq!(reason(&findings[0]), Some("known"));

    let mut findings = [finding(RULE, "a.ts", 10)];
    let notes = apply(&mut findings, &[], &ignores, "", date(2027, 2, 1));
    assert_eq!(reason(&findings[0]), None);
    assert_eq!(
        notes[0].text,
        "the ignore of `file-read-modify-write` expired on 2027-01-31: 1 finding counts again"
    );
}
