//! Real packages of npm and PyPI. They need the two clients and their registries.
#![allow(clippy::unwrap_used)]

use toctou_source::{Fetched, Limits, Options, Reach, SourceError, Spec, fetch};

fn bring(text: &str) -> Result<Fetched, SourceError> {
    let options = Options {
        limits: Limits::default(),
        reach: Reach::User,
        hosts: &[],
        plain_http: &[],
        progress: &|_| {},
    };
    fetch(&Spec::parse(text)?, &options)
}

#[test]
#[ignore = "needs npm, pip and their registries: ./scripts/test runs it"]
fn npm() {
    let fetched = bring("npm:@modelcontextprotocol/server-memory@2025.4.25").unwrap();
    assert_eq!(
        fetched.origin.name,
        "npm:@modelcontextprotocol/server-memory"
    );
    assert_eq!(fetched.origin.revision.as_deref(), Some("2025.4.25"));
    assert!(fetched.root.join("dist/index.js").is_file());
    let error = bring("npm:@modelcontextprotocol/server-memory@0.0.0-none").unwrap_err();
    assert!(error.to_string().contains("no such version"), "{error}");
}

#[test]
#[ignore = "needs npm, pip and their registries: ./scripts/test runs it"]
fn pypi() {
    let fetched = bring("pypi:mcp-server-git==2025.1.14").unwrap();
    assert_eq!(fetched.origin.revision.as_deref(), Some("2025.1.14"));
    assert!(fetched.root.join("mcp_server_git/server.py").is_file());
    // Published as source only: it would have to be run.
    let error = bring("pypi:docopt==0.6.2").unwrap_err();
    assert!(error.to_string().contains("no wheel"), "{error}");
    let error = bring("pypi:mcp-server-git==0.0.0").unwrap_err();
    assert!(
        error.to_string().contains("no such package or version"),
        "{error}"
    );
}
