//! What a user sees who asks for help, or who mistypes something.

use crate::common::{Project, QUIET};
use insta::assert_snapshot;

fn empty() -> Project {
    Project::new(&[("src/a.ts", QUIET)])
}

#[test]
fn help() {
    assert_snapshot!(empty().run("--help").seen(), @r"
    exit 0
    --- stdout
    Find race conditions in MCP servers

    Usage: toctou [OPTIONS] <COMMAND>

    Commands:
      scan         Find races in the source of a server
      explain      Show what a rule means and how to fix what it finds
      rules        List the rules
      init         Write a commented toctou.toml
      baseline     Keep a list of known findings, so that only new ones count
      prove        Run a server and drive its calls into each other, to show that a race is
                   real
      guard        Stand in front of a server and close its windows while it runs
      lsp          Show findings in an editor: a language server on standard input and output
      mcp          Let an agent check the server it is writing: an MCP server on standard
                   input and output
      serve        Serve a web page that scans repositories and archives
      completions  Print a completion script for a shell

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Global options:
          --color <WHEN>
              When to use colour

              `auto` uses it on a terminal, unless NO_COLOR is set; FORCE_COLOR and
              CLICOLOR_FORCE turn it on everywhere.

              [default: auto]
              [possible values: auto, always, never]

    Exit codes, the same for every command and format:
      0  nothing found
      1  findings
      2  toctou or its usage failed
      3  nothing to analyse
    --- stderr
    ");
}

#[test]
fn short_help_of_scan() {
    assert_snapshot!(empty().run("scan -h").seen(), @r"
    exit 0
    --- stdout
    Find races in the source of a server

    Usage: toctou scan [OPTIONS] [PATH]...

    Arguments:
      [PATH]...  Folders and files to scan, or one source: a Git address, owner/name,
                 npm:name@version, pypi:name==version, an archive [default: .]

    Options:
      -h, --help  Print help (see more with '--help')

    Selection:
          --persona <PERSONA>        Whose findings to show [possible values: regular,
                                     pedantic, auditor]
          --rule <RULE>              Show findings of these rules only (can be repeated)
          --min-severity <SEVERITY>  Hide findings below this severity [possible values: info,
                                     low, medium, high, critical]
          --since <REF>              Show only what is new since this commit, branch or tag

    Input:
          --config <FILE>       Read this config file [default: the nearest toctou.toml above
                                the scanned path]
          --no-config           Look for no toctou.toml and no baseline
          --baseline <FILE>     Known findings, which do not count [default:
                                toctou-baseline.txt beside the config or in the scanned
                                folder]
          --max-file-size <MB>  Skip files that are larger, in megabytes [default: 10]
          --threads <N>         Threads to use [default: one per core]
          --proofs <FILE>       The JSON of `toctou prove --from … --output json`: what it
                                proved is of high confidence, and the html report shows the
                                real runs

    Output:
          --no-progress             Show no progress bar
      -o, --output <FORMAT[=PATH]>  Write the report in this format, to standard output or to
                                    a file (can be repeated)
          --job-summary             Add a Markdown report to the job's summary page, in GitHub
                                    Actions
      -v, --verbose                 Draw every timeline and name everything that was skipped
      -q, --quiet                   Write the report and nothing else
          --stats                   Show counts, and the calls that no library model knows

    Sources:
          --max-fetch <MB>           Fetch no more than this, packed or unpacked, in megabytes
                                     [default: 512]
          --fetch-timeout <SECONDS>  Fetch no longer than this [default: 300]
          --allow-http <HOST>        Host whose repositories may come by plain http (can be
                                     repeated) [default: this machine]

    Changes:
          --diff         Show changes that close findings, as a unified diff; change nothing
          --fix          Make these changes, then report what is left
          --allow-dirty  Change files that Git could not bring back

    Result:
          --fail-on <SEVERITY>  Exit with 1 only for findings of this severity or worse
                                [possible values: info, low, medium, high, critical]
          --exit-zero           Exit with 0 even if there are findings

    Global options:
          --color <WHEN>  When to use colour [default: auto] [possible values: auto, always,
                          never]
    --- stderr
    ");
}

#[test]
fn no_command() {
    assert_eq!(empty().run("").code, Some(2));
}

#[test]
fn misspelt_command() {
    assert_snapshot!(empty().run("scna").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: unrecognized subcommand 'scna'

      tip: a similar subcommand exists: 'scan'

    Usage: toctou [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn misspelt_flag() {
    assert_snapshot!(empty().run("scan --personna regular").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: unexpected argument '--personna' found

      tip: a similar argument exists: '--persona'

    Usage: toctou scan --persona <PERSONA> [PATH]...

    For more information, try '--help'.
    ");
}

#[test]
fn unknown_rule_in_a_flag() {
    assert_snapshot!(empty().run("scan --rule file-read-modify-writes").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: invalid value 'file-read-modify-writes' for '--rule <RULE>': there is no such rule; did you mean `file-read-modify-write`?

    For more information, try '--help'.
    ");
}

#[test]
fn unknown_format() {
    assert_snapshot!(empty().run("scan --output jsn").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: invalid value 'jsn' for '--output <FORMAT[=PATH]>': there is no format `jsn`; did you mean `json`?

    For more information, try '--help'.
    ");
}

#[test]
fn two_formats_in_one_place() {
    assert_snapshot!(empty().run("scan --output json --output text").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: two outputs go to one place
      `json` and `text` would both be written to standard output
    hint: send one of them to a file: `--output sarif=toctou.sarif`
    ");
}

#[test]
fn no_such_path() {
    assert_snapshot!(empty().run("scan nowhere").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: no such file or folder
      nowhere
    ");
}

#[test]
fn nothing_to_analyse() {
    let project = Project::new(&[("README.md", "hello"), ("Server.java", "class Server {}")]);
    assert_snapshot!(project.run("scan").seen(), @r"
    exit 3
    --- stdout

    --- stderr
    error: nothing to analyse
      no TypeScript, JavaScript, Python, Go or Rust source in [FOLDER]; there is Java, which toctou does not know yet
    hint: give the folder that holds the server's source
    ");
}

#[test]
fn explain_a_misspelt_rule() {
    assert_snapshot!(empty().run("explain file-read-modify").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: there is no rule `file-read-modify`
    hint: did you mean `file-read-modify-write`?
    ");
}

#[test]
fn explain_shows_every_page() {
    let project = empty();
    let rules = project.run("rules --output json").json();
    for rule in rules["rules"].as_array().expect("rules") {
        let id = rule["id"].as_str().expect("id");
        let run = project.run(&format!("explain {id}"));
        assert_eq!(run.code, Some(0), "{id}");
        assert!(run.stdout.starts_with(id), "{id}");
        assert!(
            !run.stdout.contains("```"),
            "{id}: a code block is left open"
        );
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn rules_fit_the_terminal() {
    for columns in ["40", "60", "90", "160"] {
        let run = empty().run_with("rules", &[("COLUMNS", columns)]);
        let widest = run
            .stdout
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        assert!(
            widest <= columns.parse::<usize>().expect("number").max(52),
            "{columns}: {widest}"
        );
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = empty().run(&format!("completions {shell}"));
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("baseline"), "{shell}");
    }
}

#[test]
fn init_writes_once() {
    let project = empty();
    assert_eq!(project.run("init").code, Some(0));
    assert!(
        project
            .read("toctou.toml")
            .contains("#: persona = \"regular\"")
    );
    assert_eq!(project.run("scan").code, Some(0));
    assert_snapshot!(project.run("init").seen(), @r"
    exit 2
    --- stdout

    --- stderr
    error: there is a toctou.toml already
      ./toctou.toml
    hint: `--force` replaces it
    ");
    assert_eq!(project.run("init --force").code, Some(0));
}
