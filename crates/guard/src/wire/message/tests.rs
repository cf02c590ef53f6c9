use super::*;
use crate::wire::{Raw, distinct};

fn read(text: &str) -> Result<Parsed<'_>, Fault> {
    parse(text.as_bytes(), &Limits::default())
}

fn one(text: &str) -> Message<'_> {
    match read(text) {
        Ok(Parsed::One(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn kinds() {
    let request = one(r#"{"method":"tools/call","jsonrpc":"2.0","id":12345678901234567890123}"#);
    assert_eq!(request.kind, Kind::Request);
    assert_eq!(
        request.raw_id.map(Raw::get),
        Some("12345678901234567890123")
    );
    assert_eq!(
        one(r#"{"jsonrpc":"2.0","method":"x"}"#).kind,
        Kind::Notification
    );
    assert_eq!(
        one(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#).kind,
        Kind::Response
    );
}

#[test]
fn an_escaped_key_is_the_same_key() {
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","\u006dethod":"tools/call"}"#;
    assert_eq!(
        read(twice).err(),
        Some(Fault::Duplicate {
            key: "method".to_owned(),
            id: Some(Id::Integer(1))
        })
    );
    let params =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","na\u006de":"b"}}"#;
    assert!(matches!(one(params).params(), Err(Fault::Duplicate { .. })));
}

#[test]
fn what_is_not_a_message() {
    for text in [
        "",
        "  ",
        "null",
        "1",
        "{",
        "{}",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","method":"x"}"#,
        r#"{"jsonrpc":"2.0","method":1}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":null}"#,
        r#"{"jsonrpc":"2.0","method":"x","id":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":1}"#,
        r#"{"jsonrpc":"2.0","method":"x"} {}"#,
        "[]",
        r#"[{"a":1}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
    assert!(
        parse(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}",
            &Limits::default()
        )
        .is_err()
    );
}

#[test]
fn depth_is_bounded_and_strings_do_not_count() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":{}{}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(read(&deep).err(), Some(Fault::TooDeep(128)));
    let text = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":"\"{}"}}"#,
        "[".repeat(1000)
    );
    assert!(read(&text).is_ok());
}

#[test]
fn ids_are_compared_by_value() {
    let id = |text| Id::read(Raw::new(text));
    assert_eq!(id("1"), id("1.0"));
    assert_eq!(id("1e0"), id("1"));
    assert_eq!(id(r#""a""#), id(r#""\u0061""#));
    assert_ne!(id("1"), id(r#""1""#));
    assert_ne!(id("9007199254740993"), id("9007199254740992"));
    assert_eq!(id("12345678901234567890123"), id("1.2345678901234568e22"));
    assert_eq!(id("null"), None);
}

#[test]
fn duplicates_however_deep() {
    assert_eq!(distinct(r#"{"a":[{"b":1,"\u0062":2}]}"#), None);
    let once = r#"{"a":[{"b":1},{"b":2.5}],"b":null,"c":[true,"x",-3,18446744073709551615]}"#;
    assert_eq!(distinct(once), serde_json::from_str(once).ok());
}
