use super::*;
use crate::fixtures;

fn data_of(page: &str) -> (&str, serde_json::Value) {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("data");
    let (text, _) = rest.split_once("</script>").expect("its end");
    (text, serde_json::from_str(text).expect("json"))
}

#[test]
fn the_policy_names_what_the_page_holds() {
    let report = fixtures::report();
    let page = render(&fixtures::view(&report));
    assert!(page.contains(&format!("content=\"{}\"", policy())));
    assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
    assert!(page.contains(&format!("<style>{STYLE}</style>")));
    assert!(!page.contains("{{") && !page.contains("unsafe-inline"));
    // Inside an element, either would end it.
    assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    // The digest of nothing, as everybody knows it.
    assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

#[test]
fn needs_no_network() {
    let report = fixtures::report();
    let page = render(&fixtures::view(&report));
    for word in ["http://", "https://", "src=", "@import", "url("] {
        let found = page.matches(word).count();
        // The namespace of SVG is a name, not an address.
        let names = page.matches("http://www.w3.org/2000/svg").count();
        let allowed = if word == "http://" { names } else { 0 };
        assert_eq!(found, allowed, "{word}");
    }
}

#[test]
fn hostile_text_stays_data() {
    let report = fixtures::hostile();
    let page = render(&fixtures::view(&report));
    let (text, data) = data_of(&page);
    assert!(!text.contains(['<', '>', '&']));
    assert!(!page.chars().any(|c| c != '\n' && clean::is_hidden(c)));
    assert!(!page.contains("<script>alert"));
    let message = data["findings"][0]["message"].as_str().expect("text");
    assert!(message.contains("<script>alert(1)</script>"), "{message}");
    assert!(message.contains("\\u{202e}"), "{message}");
}

#[test]
fn everything_a_reader_needs_is_there() {
    let report = fixtures::report();
    let page = render(&fixtures::view(&report));
    let (_, data) = data_of(&page);
    assert_eq!(data["grade"], "C");
    assert_eq!(data["deductions"][0]["first"], 18);
    assert_eq!(data["findings"].as_array().map(Vec::len), Some(3));
    // The same fingerprint three times, and three addresses.
    assert_eq!(data["findings"][1]["id"], "00000000000000f1-2");
    assert_eq!(data["findings"][2]["suppressed"], "only one writer");
    let frames = &data["findings"][0]["story"]["frames"];
    assert_eq!(frames[0]["holds"], "[alice]");
    assert_eq!(frames[4]["stale"], 0);
    assert_eq!(
        data["rules"]["file-read-modify-write"]["about"],
        "Two calls read the same file. The later write wins."
    );
    assert_eq!(data["skipped"][1]["fault"], true);
}

#[test]
fn a_proof_is_shown_with_its_finding() {
    let report = fixtures::report();
    let proofs = serde_json::json!({
        "schema": "toctou.prove/1",
        "findings": [
            { "fingerprint": "00000000000000f1", "rule": "x", "tools": ["t"], "status": "proved", "schedules": 3,
              "proof": "t-t-in-process" },
        ],
        "proofs": [{
            "id": "t-t-in-process", "kind": "lost-write", "tools": ["t"], "scope": "in-process", "strategy": "hold",
            "recipe": { "headline": "</script> is lost" }, "held": "before rename", "replays": { "reproduced": 5, "of": 5 },
            "differences": [{ "place": "notes.json", "serial": "2 notes", "found": "1 note" }],
            "timeline": [
                { "actor": "A", "action": "open", "file": "", "line": 0, "function": "", "text": "t({})" },
                { "actor": "B", "action": "write", "file": "", "line": 0, "function": "", "text": "rename(a, b)" },
            ],
        }],
    });
    let proofs = crate::Proofs::parse(&proofs.to_string()).expect("valid");
    let page = render(&View {
        proofs: Some(&proofs),
        ..fixtures::view(&report)
    });
    let (_, data) = data_of(&page);
    let proof = &data["findings"][0]["proof"];
    assert_eq!(proof["status"], "proved");
    assert_eq!(proof["run"]["headline"], "</script> is lost");
    assert_eq!(proof["run"]["replays"], serde_json::json!([5, 5]));
    assert_eq!(proof["run"]["differences"][0][2], "1 note");
    let frames = &proof["run"]["story"]["frames"];
    assert_eq!(frames[1]["lane"], 1);
    assert!(frames[1]["holds"].is_null());
}

#[test]
fn parts_are_not_looked_into() {
    assert_eq!(fill("a{{x}}b{{y", |_| "{{z}}".to_owned()), "a{{z}}b{{y");
}
