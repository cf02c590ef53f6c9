//! `toctou.toml`, ignore comments and the baseline, as the binary reads them.

use crate::common::{Project, QUIET, RACY};
use insta::assert_snapshot;

fn with_config(config: &str) -> Project {
    Project::new(&[("src/a.ts", QUIET), ("toctou.toml", config)])
}

#[test]
fn unknown_key() {
    assert_snapshot!(with_config("persona = \"regular\"\nexlude = [\"x\"]\n").run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: the config is not valid
      [FOLDER]/toctou.toml:2:1: there is no key `exlude` here
    hint: did you mean `exclude`?
    ");
}

#[test]
fn unknown_value() {
    assert_snapshot!(with_config("fail-on = \"hgih\"\n").run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: the config is not valid
      [FOLDER]/toctou.toml:1:11: `hgih` is not a value of this key
    hint: use one of: info, low, medium, high, critical
    ");
}

#[test]
fn unknown_rule() {
    assert_snapshot!(with_config("[rules]\nfile-rmw = \"off\"\ndata-rac = \"low\"\n").run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: the config is not valid
      [FOLDER]/toctou.toml:3:12: there is no rule `data-rac`
    hint: did you mean `data-race`?
    ");
}

#[test]
fn ignore_without_reason() {
    assert_snapshot!(with_config("[[ignore]]\nrule = \"data-race\"\n").run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: the config is not valid
      [FOLDER]/toctou.toml:1:1: missing field `reason`
    ");
}

#[test]
fn not_toml() {
    assert_snapshot!(with_config("persona: regular\n").run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: the config is not valid
      [FOLDER]/toctou.toml:1:10: key with no value, expected `=`
    ");
}

#[test]
fn missing_model() {
    assert_snapshot!(with_config("models = [\"ours.toml\"]\n").run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: cannot read a file
      [FOLDER]/ours.toml: No such file or directory (os error 2)
    ");
}

#[test]
fn is_found_above_the_scanned_folder_and_can_be_left_out() {
    let project = with_config("nonsense = 1\n");
    assert_eq!(project.run("scan src").code, Some(2));
    assert_eq!(project.run("scan src --no-config").code, Some(0));
    project.write("other.toml", "");
    assert_eq!(project.run("scan src --config other.toml").code, Some(0));
}

#[test]
fn is_not_looked_for_outside_the_repository() {
    let project = with_config("nonsense = 1\n");
    project.write("inner/.git/HEAD", "");
    project.write("inner/a.ts", QUIET);
    assert_eq!(project.run("scan inner").code, Some(0));
}

#[test]
fn stale_entries_are_noted() {
    let config = "[[ignore]]\nrule = \"data-race\"\nreason = \"one thread\"\n";
    assert_snapshot!(with_config(config).run("scan").seen(), @r"
    exit 0
    --- stdout
    note: toctou.toml:2: nothing to ignore: no `data-race` finding matches this entry

    No findings for the regular persona.
    Score: 100 of 100, grade A
    Scanned 1 file in .
    --- stderr
    ");
}

#[test]
fn ignore_comments_that_are_wrong() {
    for (comment, said) in [
        (
            "// toctou: ignore[file-read-modify-wrte] because",
            "did you mean `file-read-modify-write`?",
        ),
        (
            "// toctou: ignore[file-read-modify-write]",
            "write why it is safe",
        ),
        ("// toctou: ignore[*] because", "must name the rules"),
        ("// toctou: ignore because", "must name the rules"),
    ] {
        let project = Project::new(&[("a.ts", &format!("{QUIET}{comment}\n"))]);
        let run = project.run("scan");
        assert_eq!(run.code, Some(2), "{comment}");
        assert!(run.stderr.contains(said), "{comment}: {}", run.stderr);
        assert!(run.stderr.contains("a.ts:4"), "{}", run.stderr);
    }
}

#[test]
fn an_unused_ignore_comment_is_noted() {
    let text = format!("// toctou: ignore[data-race] one thread\n{QUIET}");
    let run = Project::new(&[("a.ts", &text)]).run("scan");
    assert_eq!(run.code, Some(0));
    assert!(
        run.stdout.contains("note: a.ts:1: nothing to ignore here"),
        "{}",
        run.stdout
    );
}

#[test]
fn an_ignore_comment_suppresses_and_is_kept_apart() {
    let above =
        "  // toctou: ignore[file-read-modify-write] one client only\n  await save(notes);\n";
    let text = RACY.replace("  await save(notes);\n", above);
    let run = Project::new(&[("a.ts", &text)]).run("scan --output json");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    assert_eq!(
        run.json()["suppressed"][0]["suppressed"]["reason"],
        "one client only"
    );
    assert_eq!(run.json()["summary"]["suppressed"], 1);
}

#[test]
fn levels_and_config_ignores_apply() {
    let project = Project::new(&[("src/a.ts", RACY)]);
    project.write("toctou.toml", "[rules]\nfile-read-modify-write = \"low\"\n");
    let run = project.run("scan --output json");
    assert_eq!(
        (run.code, &run.json()["findings"][0]["severity"]),
        (Some(1), &"low".into())
    );
    project.write("toctou.toml", "[rules]\nfile-read-modify-write = \"off\"\n");
    assert_eq!(project.run("scan --output json").code, Some(0));
    project.write(
        "toctou.toml",
        "[[ignore]]\nrule = \"file-read-modify-write\"\npath = \"src/*.ts\"\nreason = \"demo\"\n",
    );
    assert_eq!(project.run("scan").code, Some(0));
    // The glob is relative to the config, wherever the scan starts.
    assert_eq!(project.run("scan src").code, Some(0));
    project.write(
        "toctou.toml",
        "[[ignore]]\nrule = \"file-read-modify-write\"\nreason = \"demo\"\nexpires = \"2020-01-01\"\n",
    );
    let run = project.run("scan");
    assert_eq!(run.code, Some(1));
    assert!(
        run.stdout.contains("expired on 2020-01-01"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_baseline_lets_only_new_findings_count() {
    let project = Project::new(&[("a.ts", RACY)]);
    assert_eq!(project.run("baseline prune").code, Some(2));
    assert_eq!(project.run("baseline write").code, Some(0));
    let baseline = project.read("toctou-baseline.txt");
    assert_eq!(
        baseline
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count(),
        1,
        "{baseline}"
    );
    assert_eq!(project.run("scan").code, Some(0));
    assert_eq!(project.run("scan --no-config").code, Some(1));

    // Lines above it do not matter; a new file does.
    project.write("a.ts", format!("// one more line\n{RACY}"));
    assert_eq!(project.run("scan").code, Some(0));
    project.write("b.ts", RACY);
    assert_eq!(project.run("scan").code, Some(1));

    project.write("a.ts", QUIET);
    assert_eq!(project.run("baseline prune").code, Some(0));
    let baseline = project.read("toctou-baseline.txt");
    assert!(
        baseline.lines().all(|line| line.starts_with('#')),
        "{baseline}"
    );

    project.write("toctou-baseline.txt", "{}");
    assert_eq!(project.run("scan").code, Some(2));
}
