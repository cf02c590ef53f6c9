//! `--since`: in real repositories, with the `git` on PATH.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Project, RACY, Run};

/// Another tool that loses updates, with a file of its own.
const SECOND: &str = r#"
server.registerTool("add_tag", { inputSchema: { text: z.string() } }, async ({ text }) => {
  const tags = JSON.parse(await readFile("tags.json", "utf8"));
  tags.push(text);
  await writeFile("tags.json", JSON.stringify(tags));
  return { content: [] };
});
"#;

fn git(project: &Project, args: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(project.path())
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .env("HOME", project.path())
        .output()
        .expect("git");
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn commit(project: &Project) {
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "-m", "x", "--allow-empty"]);
}

fn repository(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    git(&project, &["init", "-q"]);
    commit(&project);
    project
}

fn scan(project: &Project, args: &str) -> Run {
    let path = std::env::var("PATH").expect("PATH");
    project.run_with(
        &format!("scan --output json {args}"),
        &[
            ("PATH", &path),
            ("HOME", &project.path().display().to_string()),
        ],
    )
}

/// Rules and functions of what is reported.
fn found(run: &Run) -> Vec<(String, u64)> {
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.stderr);
    let json = run.json();
    let mut all: Vec<(String, u64)> = json["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| {
            (
                finding["resource"]["key"].as_str().expect("key").to_owned(),
                finding["location"]["line"].as_u64().expect("line"),
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn only_what_is_new() {
    let project = repository(&[("src/notes.ts", RACY)]);
    assert_eq!(scan(&project, "").code, Some(1));
    let run = scan(&project, "--since HEAD");
    assert_eq!((run.code, found(&run)), (Some(0), vec![]));
    // The score is still that of the whole.
    assert_eq!(run.json()["summary"]["score"], 82);

    // Above what was there: its lines move.
    let (imports, rest) = RACY.split_at(RACY.find("async function load").expect("a function"));
    project.write("src/notes.ts", format!("{imports}{SECOND}\n{rest}"));
    let run = scan(&project, "--since HEAD");
    let all = found(&run);
    assert_eq!(run.code, Some(1));
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].0.contains("tags.json"), "{all:?}");
    let notes = run.json()["notes"].to_string();
    assert!(notes.contains("1 finding was there before"), "{notes}");
}

#[test]
fn the_same_race_once_more_is_new() {
    let project = repository(&[("notes.ts", RACY)]);
    let again =
        "  await save(notes);\n  const more = await load();\n  await save(more.concat(text));\n";
    project.write("notes.ts", RACY.replace("  await save(notes);\n", again));
    assert_eq!(found(&scan(&project, "")).len(), 2);
    assert_eq!(found(&scan(&project, "--since HEAD")).len(), 1);
}

#[test]
fn a_renamed_file_is_not_new_and_another_one_is() {
    let project = repository(&[("src/notes.ts", RACY)]);
    std::fs::create_dir(project.at("lib")).expect("a folder");
    std::fs::rename(project.at("src/notes.ts"), project.at("lib/store.ts")).expect("renamed");
    assert_eq!(found(&scan(&project, "--since HEAD")), []);
    // Edited on the way.
    project.write("lib/store.ts", format!("// moved\n\n{RACY}{SECOND}"));
    assert_eq!(found(&scan(&project, "--since HEAD")).len(), 1);
    project.write("lib/store.ts", RACY);
    project.write("lib/copy.ts", RACY.replace("notes.json", "copied.json"));
    let all = found(&scan(&project, "--since HEAD"));
    assert_eq!(all.len(), 1, "one of two was there: {all:?}");
}

#[test]
fn what_others_did_on_the_branch_is_no_news() {
    let project = repository(&[("notes.ts", RACY), ("other.ts", "export {};\n")]);
    git(&project, &["checkout", "-q", "-b", "work"]);
    git(&project, &["checkout", "-q", "main"]);
    project.write("notes.ts", "export {};\n");
    commit(&project);
    git(&project, &["checkout", "-q", "work"]);
    // Mended on main, and not here: not this branch's doing.
    assert_eq!(found(&scan(&project, "--since main")), []);
}

#[test]
fn a_finding_that_is_no_longer_ignored_is_new() {
    let comment = "  // toctou: ignore[file-read-modify-write] one writer\n  await save(notes);";
    let ignored = RACY.replace("  await save(notes);", comment);
    let project = repository(&[("notes.ts", &ignored)]);
    assert_eq!(found(&scan(&project, "--since HEAD")), []);
    project.write("notes.ts", RACY);
    assert_eq!(found(&scan(&project, "--since HEAD")).len(), 1);
}

#[test]
fn folders_and_files_of_a_repository() {
    let project = repository(&[
        ("packages/a/notes.ts", RACY),
        ("packages/b/notes.ts", RACY),
        ("toctou.toml", "exclude = [\"packages/b/**\"]\n"),
    ]);
    project.write(
        "packages/a/tags.ts",
        RACY.replace("notes.json", "tags.json"),
    );
    let all = found(&scan(&project, "--since HEAD packages/a"));
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(found(&scan(&project, "--since HEAD packages")).len(), 1);
    assert_eq!(
        found(&scan(&project, "--since HEAD packages/a/notes.ts")),
        []
    );
    assert_eq!(
        found(&scan(&project, "--since HEAD packages/a/tags.ts")).len(),
        1
    );
}

#[test]
fn bad_comments_of_the_past_do_not_stop_it() {
    let bad = RACY.replace(
        "  await save",
        "  // toctou: ignore[no-such-rule] x\n  await save",
    );
    let project = repository(&[("notes.ts", &bad)]);
    assert_eq!(scan(&project, "--since HEAD").code, Some(2));
    project.write("notes.ts", RACY);
    assert_eq!(found(&scan(&project, "--since HEAD")), []);
}

#[test]
fn says_what_it_cannot_compare_with() {
    let project = repository(&[("notes.ts", RACY)]);
    for (name, word) in [
        ("nowhere", "there is no commit `nowhere`"),
        ("--output=x", "there is no commit"),
        ("HEAD:notes.ts", "there is no commit"),
    ] {
        let run = scan(&project, &format!("--since={name}"));
        assert_eq!(run.code, Some(2), "{name}");
        assert!(run.stderr.contains(word), "{}", run.stderr);
        assert!(run.stderr.contains("hint: "), "{}", run.stderr);
    }
    let plain = Project::new(&[("notes.ts", RACY)]);
    let run = scan(&plain, "--since HEAD");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("not a git repository"),
        "{}",
        run.stderr
    );
    let run = plain.run_with("scan --since HEAD", &[("PATH", "/nowhere")]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("git was not found"), "{}", run.stderr);
}

/// A repository can name programs to run in its config and attributes.
#[cfg(unix)]
#[test]
fn runs_nothing_of_the_repository() {
    let project = repository(&[
        ("src/notes.ts", RACY),
        (
            ".gitattributes",
            "*.ts filter=evil diff=evil export-ignore\n",
        ),
    ]);
    std::os::unix::fs::symlink("/etc", project.at("src/link.ts")).expect("a link");
    commit(&project);
    let witness = project.at("witness").display().to_string();
    let touch = format!("touch {witness}; cat");
    for key in [
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
    ] {
        git(&project, &["config", key, &touch]);
    }
    let hook = project.at(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder");
    std::fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).expect("a hook");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).expect("a mode");
    let before = std::fs::metadata(project.at(".git/index"))
        .expect("index")
        .modified()
        .ok();

    project.write("src/tags.ts", RACY.replace("notes.json", "tags.json"));
    assert_eq!(found(&scan(&project, "--since HEAD")).len(), 1);
    assert!(!project.at("witness").exists());
    let after = std::fs::metadata(project.at(".git/index"))
        .expect("index")
        .modified()
        .ok();
    assert_eq!(before, after, "the index is left alone");
}

#[test]
fn job_summary_is_added_to() {
    let project = Project::new(&[("notes.ts", RACY), ("summary.md", "# before\n")]);
    let path = project.at("summary.md").display().to_string();
    let run = project.run_with("scan --job-summary", &[("GITHUB_STEP_SUMMARY", &path)]);
    assert_eq!(run.code, Some(1));
    let text = project.read("summary.md");
    assert!(text.starts_with("# before\n## toctou"), "{text}");
    assert!(
        run.stderr.contains("written to the job summary"),
        "{}",
        run.stderr
    );
    let run = project.run("scan --job-summary");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("GITHUB_STEP_SUMMARY is not set"),
        "{}",
        run.stderr
    );
}

/// Ctrl-C while the past is being written: the folder for it is gone.
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let project = repository(&[("notes.ts", RACY)]);
    // The real one, but for the content of files, which never comes.
    let path = std::env::var("PATH").expect("PATH");
    let slow = format!("case \"$*\" in *cat-file*) sleep 60;; *) PATH='{path}' git \"$@\";; esac");
    project.write("bin/git", format!("#!/bin/sh\n{slow}\n"));
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.at("bin/git"), executable).expect("permissions");
    let tmp = project.at("tmp");
    std::fs::create_dir(&tmp).expect("a folder");
    let left = || std::fs::read_dir(&tmp).expect("a folder").count();
    let mut child = Command::new(env!("CARGO_BIN_EXE_toctou"))
        .args(["scan", "--since", "HEAD", "notes.ts"])
        .current_dir(project.path())
        .env("PATH", format!("{}:{path}", project.at("bin").display()))
        .env("TMPDIR", &tmp)
        .env("HOME", project.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("toctou runs");
    let start = Instant::now();
    while left() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no folder");
        assert!(child.try_wait().expect("a child").is_none(), "it is over");
        std::thread::sleep(Duration::from_millis(5));
    }
    // As a terminal does: to all of them.
    let all = format!("-{}", child.id());
    let killed = Command::new("kill").args(["-INT", "--", &all]).status();
    assert!(killed.expect("kill").success());
    let status = child.wait().expect("an end");
    assert_eq!(status.signal(), Some(2), "{status:?}");
    assert_eq!(left(), 0, "the folder is left");
}
