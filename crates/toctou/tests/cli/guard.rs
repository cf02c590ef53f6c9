//! `toctou guard` as it is typed: policies, checks, mistakes.

use crate::common::{Project, RACY};

/// A server in a few lines of shell, with one tool that takes an invoice.
const SERVER: &str = r#"while IFS= read -r line; do
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"id":1,'*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"pay","inputSchema":{"type":"object","properties":{"invoiceId":{"type":"string"}}}},{"name":"show","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}}' ;;
  esac
done
"#;

#[test]
fn a_policy_from_a_scan_names_the_racy_tool() {
    let project = Project::new(&[("server.ts", RACY)]);
    assert_eq!(project.run("scan --output json=scan.json .").code, Some(1));
    let run = project.run("guard init --from scan.json");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout
            .contains("match = [\"add_note\"]\nlock = [\"file:"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout
            .contains("# file-read-modify-write in server.ts:"),
        "{}",
        run.stdout
    );
    // It fits the command that it is for.
    project.write("guard.toml", &run.stdout);
    project.write("server.sh", SERVER);
    let run = project.run("guard check --policy guard.toml -- sh server.sh");
    assert_eq!(run.code, Some(1), "this server has no such tool");
    assert!(
        run.stdout
            .contains("fault: the entry for `add_note` matches no tool"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_policy_is_compared_with_the_tools() {
    let project = Project::new(&[
        ("server.sh", SERVER),
        (
            "good.toml",
            "[[tool]]\nmatch = \"pay\"\nlock = \"invoice:{invoiceId}\"\n",
        ),
        (
            "bad.toml",
            "[[tool]]\nmatch = \"pay\"\nlock = \"invoice:{invoice}\"\n",
        ),
    ]);
    let run = project.run("guard check --policy good.toml -- sh server.sh");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert_eq!(
        run.stdout,
        "pay   exclusive  invoice:{invoiceId}\nshow  shared     the whole server  (default)\n\n2 tools, 0 faults\n"
    );
    let run = project.run("guard check --policy bad.toml -- sh server.sh");
    assert_eq!(run.code, Some(1));
    assert!(
        run.stdout.contains("`pay` has no argument `invoice`"),
        "{}",
        run.stdout
    );
}

#[test]
fn mistakes_are_named() {
    let project = Project::new(&[
        ("typo.toml", "[[tool]]\nmatch = \"pay\"\nlok = \"x\"\n"),
        ("key.toml", "[[tool]]\nmatch = \"pay\"\nlock = \"x:{\"\n"),
        (
            "mcp.json",
            r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#,
        ),
        ("none.json", r#"{"mcpServers": {"a": {}}}"#),
        ("tokens", "short\n"),
    ]);
    for (args, expected) in [
        (
            "guard",
            "error: which server?\n  no server is named\nhint: give its command",
        ),
        ("guard --servers mcp.json", "2 servers are named"),
        (
            "guard --servers mcp.json --server c",
            "there is no server `c`",
        ),
        (
            "guard --servers none.json",
            "none.json: server `a` has neither `command` nor `url`",
        ),
        (
            "guard --policy typo.toml -- x",
            "typo.toml:3:1: there is no key `lok` here\nhint: did you mean `lock`?",
        ),
        (
            "guard --policy key.toml -- x",
            "key.toml:3:8: `x:{`: a `{` is not closed",
        ),
        ("guard --policy missing.toml -- x", "missing.toml"),
        (
            "guard --backend memory -- no-such-command",
            "server `no-such-command`: cannot start `no-such-command`",
        ),
        (
            "guard --backend nowhere: -- sh",
            "the backend `nowhere` cannot be used",
        ),
        (
            "guard --listen 0.0.0.0:0 -- sh",
            "0.0.0.0:0 can be reached from elsewhere, and there is no token",
        ),
        (
            "guard --listen 127.0.0.1:0 --token-file tokens -- sh",
            "a token has at least 16 characters",
        ),
        (
            "guard init --from mcp.json",
            "mcp.json: not the JSON of `toctou scan`",
        ),
    ] {
        let run = project.run(args);
        assert_eq!(run.code, Some(2), "{args}\n{}", run.stderr);
        assert!(run.stderr.contains(expected), "{args}\n{}", run.stderr);
    }
}
