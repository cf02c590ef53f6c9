use super::*;

fn url(text: &str) -> (String, Option<String>, Option<String>) {
    match Spec::parse(text) {
        Ok(Spec::Git(spec)) => (spec.name(), spec.reference, spec.folder),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn addresses_are_taken_apart() {
    let some = |text: &str| Some(text.to_owned());
    for (text, name, reference, folder) in [
        ("owner/name", "https://github.com/owner/name", None, None),
        (
            "owner/name.js@v1.2#packages/a",
            "https://github.com/owner/name.js",
            some("v1.2"),
            some("packages/a"),
        ),
        (
            "owner/name@feature/x",
            "https://github.com/owner/name",
            some("feature/x"),
            None,
        ),
        (
            "HTTPS://Git.Example:8443/a/b.git#sub/",
            "https://git.example:8443/a/b.git",
            None,
            some("sub"),
        ),
        (
            "https://host/@scope/name@main",
            "https://host/@scope/name",
            some("main"),
            None,
        ),
        (
            "git@host:a/b.git@v1",
            "ssh://git@host/a/b.git",
            some("v1"),
            None,
        ),
        ("ssh://git@host:22/a", "ssh://git@host:22/a", None, None),
        ("file:///srv/repo.git", "file:///srv/repo.git", None, None),
        (
            "https://[2001:db8::1]:443/a",
            "https://[2001:db8::1]:443/a",
            None,
            None,
        ),
    ] {
        assert_eq!(url(text), (name.to_owned(), reference, folder), "{text}");
    }
}

#[test]
fn what_a_client_could_misread_is_refused() {
    for text in [
        "https://user:secret@host/a",
        "https://good.example\\@evil.example/a",
        "https://host/a b",
        "https://host/a\nb",
        "https://host/a?x=1",
        "https://host",
        "https://host/",
        "https://ho st/a",
        "https://host./a",
        "https://-host/a",
        "https://host:0/a",
        "https://host:99999/a",
        "https://host:+80/a",
        "https://[::1/a",
        "https://[fe80::1%25eth0]/a",
        "https://höst/a",
        "https://host/../a",
        "ftp://host/a",
        "ext::sh -c touch% /tmp/x",
        "file://host/a",
        "ssh://-oProxyCommand=x/a",
        "-o@host:a",
        "git@-host:a",
        "owner/name@-x",
        "owner/name@a..b",
        "owner/name@a:b",
        "owner/name@+a",
        "owner/name@a^b",
        "owner/name#../x",
        "owner/name#a:b",
        "../x",
        "npm:",
        "npm:name@npm:other@1",
        "npm:name@file:x",
        "npm:git+ssh://host/x",
        "npm:../x",
        "npm:-x",
        "npm:@scope",
        "npm:a b",
        "npm:name@>1",
        "pypi:",
        "pypi:-r",
        "pypi:name>1",
        "pypi:name @ https://host/x",
        "pypi:name[extra]",
        "pypi:./x",
    ] {
        assert!(
            Spec::parse(text).is_err(),
            "{text}: {:?}",
            Spec::parse(text)
        );
    }
}

#[test]
fn packages_have_a_name_and_maybe_a_version() {
    let npm = |name: &str, version: Option<&str>| Spec::Npm {
        name: name.to_owned(),
        version: version.map(str::to_owned),
    };
    assert_eq!(
        Spec::parse("npm:left-pad@1.3.0").ok(),
        Some(npm("left-pad", Some("1.3.0")))
    );
    assert_eq!(Spec::parse("npm:@a/b").ok(), Some(npm("@a/b", None)));
    assert_eq!(
        Spec::parse("npm:@a/b@next").ok(),
        Some(npm("@a/b", Some("next")))
    );
    assert_eq!(
        Spec::parse("pypi:mcp-server-git==2025.1.14").ok(),
        Some(Spec::Pypi {
            name: "mcp-server-git".to_owned(),
            version: Some("2025.1.14".to_owned()),
        })
    );
}

#[test]
fn a_path_that_is_there_wins() {
    // Tests run in the folder of the crate.
    assert!(matches!(Spec::of("src/spec"), Ok(None)));
    assert!(
        matches!(Spec::of("src/misspelt"), Ok(None)),
        "there is a `src`"
    );
    assert!(matches!(Spec::of("nowhere"), Ok(None)));
    assert!(matches!(Spec::of("owner/name"), Ok(Some(Spec::Git(_)))));
    assert!(matches!(Spec::of("./owner/name"), Ok(None)));
    assert!(matches!(Spec::of("gone.zip"), Ok(None)));
}
