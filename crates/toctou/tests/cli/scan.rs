//! `toctou scan`: exit codes, outputs, what is skipped, and that nothing depends on chance.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::common::{Project, QUIET, RACY};
use insta::assert_snapshot;

#[test]
fn nothing_found() {
    assert_snapshot!(Project::new(&[("src/a.ts", QUIET)]).run("scan").seen(), @r"
    exit 0
    --- stdout
    No findings for the regular persona.
    Score: 100 of 100, grade A
    Scanned 1 file in .
    --- stderr
    ");
}

#[test]
fn exit_codes() {
    let project = Project::new(&[("a.ts", RACY)]);
    assert_eq!(project.run("scan").code, Some(1));
    assert_eq!(project.run("scan --exit-zero").code, Some(0));
    assert_eq!(project.run("scan --fail-on critical").code, Some(0));
    assert_eq!(project.run("scan --fail-on high").code, Some(1));
    assert_eq!(project.run("scan --min-severity critical").code, Some(0));
    assert_eq!(project.run("scan --rule data-race").code, Some(0));
    assert_eq!(
        project.run("scan --rule file-read-modify-write").code,
        Some(1)
    );
    for format in ["text", "json", "sarif", "github", "markdown"] {
        assert_eq!(
            project.run(&format!("scan --output {format}")).code,
            Some(1),
            "{format}"
        );
    }
}

#[test]
fn tests_are_left_out_unless_there_is_nothing_else() {
    let mixed = Project::new(&[("src/a.ts", QUIET), ("src/a.test.ts", RACY)]);
    let report = mixed.run("scan --output json").json();
    assert_eq!(report["findings"], serde_json::json!([]));
    assert_eq!(report["summary"]["files"], 1);
    assert_eq!(report["summary"]["skipped"], 1);
    assert_eq!(report["skipped"][0]["reason"], "tests, 1 file");

    let alone = Project::new(&[("tests/a.ts", RACY)]);
    let report = alone.run("scan --output json").json();
    assert_eq!(report["findings"][0]["location"]["file"], "tests/a.ts");
}

#[test]
fn examples_are_shown_and_do_not_fail() {
    let run =
        Project::new(&[("src/a.ts", QUIET), ("examples/b.ts", RACY)]).run("scan --output json");
    assert_eq!(run.code, Some(0));
    assert_eq!(run.json()["findings"][0]["non_product"], true);
    assert_eq!(run.json()["summary"]["score"], 100);
}

#[test]
fn several_outputs_at_once() {
    let project = Project::new(&[("a.ts", RACY)]);
    let run = project.run("scan --output text --output sarif=r.sarif --output json=r.json");
    assert_eq!(run.code, Some(1));
    assert!(
        run.stdout.contains("high[file-read-modify-write]"),
        "{}",
        run.stdout
    );
    assert_eq!(run.stderr, "1 finding, written to r.sarif, r.json\n");
    assert!(project.read("r.sarif").contains("\"2.1.0\""));
    assert!(project.read("r.json").contains("toctou.scan/1"));
    assert_eq!(project.run("scan --quiet --output json=r.json").stderr, "");
    assert_eq!(
        project.run("scan --output json=no/such/folder/r.json").code,
        Some(2)
    );
}

#[test]
fn same_bytes_whatever_the_threads_and_the_order() {
    let project = Project::new(&[
        ("x/a.ts", RACY),
        ("x/b.ts", RACY),
        ("y/c.ts", RACY),
        ("y/d.ts", QUIET),
    ]);
    let first = project.run("scan x y --output json --threads 1").stdout;
    for args in [
        "scan y x --output json --threads 2",
        "scan x y x/a.ts --output json --threads 7",
    ] {
        assert_eq!(project.run(args).stdout, first, "{args}");
    }
}

#[test]
fn paths_are_relative_to_what_is_scanned() {
    let project = Project::new(&[("p/src/a.ts", RACY)]);
    let file = |args: &str| project.run(args).json()["findings"][0]["location"]["file"].clone();
    assert_eq!(file("scan --output json"), "p/src/a.ts");
    assert_eq!(file("scan p --output json"), "src/a.ts");
    assert_eq!(file("scan p/src/a.ts --output json"), "p/src/a.ts");
    // Formats whose readers start from the repository name the whole path.
    assert!(
        project
            .run("scan p --output github")
            .stdout
            .contains("file=p/src/a.ts,")
    );
    assert!(
        project
            .run("scan p --output sarif")
            .stdout
            .contains("\"uri\": \"p/src/a.ts\"")
    );
}

#[test]
fn faults_are_reported_and_the_rest_is_scanned() {
    let project = Project::new(&[("ok.ts", QUIET)]);
    project.write("binary.ts", b"\x00\x01\x02");
    project.write("latin.ts", b"// caf\xe9\nexport const a = 1;\n");
    project.write("broken.ts", "export const = ((( <<<< 1;\n");
    project.write("big.ts", "x;\n".repeat(400_000));
    let run = project.run("scan --max-file-size 1 --output json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let json = run.json();
    assert_eq!(json["summary"]["files"], 2);
    assert_eq!(json["summary"]["skipped"], 3);
    let faults: Vec<&str> = json["skipped"]
        .as_array()
        .expect("list")
        .iter()
        .filter_map(|s| s["file"].as_str())
        .collect();
    assert_eq!(faults, ["big.ts", "binary.ts", "broken.ts"]);
    assert_eq!(json["notes"][0]["file"], "latin.ts");
    let text = project.run("scan --max-file-size 1").stdout;
    assert!(text.contains("warning: binary.ts: not text"), "{text}");
}

#[test]
fn only_faults_is_a_failure() {
    let project = Project::new(&[]);
    project.write("a.ts", b"\x00");
    assert_snapshot!(project.run("scan").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: no file could be analysed
      a.ts: not text
    hint: is this the server's source?
    ");
}

#[test]
fn colour_only_when_wanted() {
    let project = Project::new(&[("a.ts", RACY)]);
    let coloured =
        |args: &str, env: &[(&str, &str)]| project.run_with(args, env).stdout.contains('\u{1b}');
    assert!(!coloured("scan", &[]));
    assert!(coloured("scan --color always", &[]));
    assert!(coloured("scan", &[("FORCE_COLOR", "1")]));
    assert!(coloured("scan", &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured("scan", &[("FORCE_COLOR", "0")]));
    assert!(!coloured(
        "scan",
        &[("FORCE_COLOR", "1"), ("NO_COLOR", "1")]
    ));
    assert!(!coloured("scan --color never", &[("FORCE_COLOR", "1")]));
    assert!(!coloured("scan --output json --color always", &[]));
}

#[test]
fn ascii_when_the_locale_is() {
    let project = Project::new(&[("a.ts", RACY)]);
    assert!(project.run_with("scan", &[("LANG", "C")]).stdout.is_ascii());
    assert!(
        !project
            .run_with("scan", &[("LANG", "C"), ("LC_ALL", "en_GB.UTF-8")])
            .stdout
            .is_ascii()
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let project = Project::new(&[]);
    for n in 0..200 {
        project.write(&format!("{n}.ts"), RACY);
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_toctou"))
        .args(["scan", "--output", "json"])
        .current_dir(project.path())
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("toctou runs");
    let mut first = [0; 10];
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_exact(&mut first)
        .expect("some output");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn minified_code_is_left_out_unless_it_is_all_there_is() {
    let minified = "f();".repeat(3000);
    let both = Project::new(&[("a.ts", QUIET), ("b.js", &minified)])
        .run("scan --output json")
        .json();
    assert_eq!(both["summary"]["files"], 1);
    assert_eq!(both["skipped"][0]["reason"], "minified");
    let alone = Project::new(&[("b.js", &minified)])
        .run("scan --output json")
        .json();
    assert_eq!(alone["summary"]["files"], 1);
    assert_eq!(alone["summary"]["skipped"], 0);
}
