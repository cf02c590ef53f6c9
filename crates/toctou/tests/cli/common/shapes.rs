//! A shape is a few lines of TypeScript: what is said of it, and to whom.

#![allow(unreachable_pub)]

use super::Project;

pub fn scan(source: &str, persona: &str) -> Vec<String> {
    let project = Project::new(&[("shape.ts", source)]);
    let run = project.run(&format!(
        "scan shape.ts --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

/// One of `names` is reported, and nothing but those and `also`.
#[track_caller]
pub fn dangerous(persona: &str, names: &[&str], also: &[&str], source: &str) {
    let rules = scan(source, persona);
    assert!(
        rules.iter().any(|rule| names.contains(&rule.as_str())),
        "none of {names:?}: {rules:?}"
    );
    only(&rules, &[names, also].concat());
}

/// What is not for everybody is not shown to everybody.
#[track_caller]
pub fn quiet_for(personas: &[&str], source: &str) {
    for persona in personas {
        assert_eq!(scan(source, persona), Vec::<String>::new(), "{persona}");
    }
}

#[track_caller]
pub fn safe(also: &[&str], source: &str) {
    only(&scan(source, "regular"), also);
}

#[track_caller]
pub fn only(rules: &[String], allowed: &[&str]) {
    let more: Vec<&String> = rules
        .iter()
        .filter(|rule| !allowed.contains(&rule.as_str()))
        .collect();
    assert!(more.is_empty(), "too much: {more:?}");
}
