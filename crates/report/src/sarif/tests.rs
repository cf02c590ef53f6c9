use serde_json::Value;

use crate::fixtures;

fn rendered(report: &toctou_core::finding::ScanReport) -> Value {
    serde_json::from_str(&super::render(&fixtures::view(report))).expect("json")
}

fn schema_errors(log: &Value) -> Vec<String> {
    let schema = include_str!("../../tests/data/sarif-schema-2.1.0.json");
    let schema: Value = serde_json::from_str(schema).expect("schema");
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    validator
        .iter_errors(log)
        .map(|e| format!("{}: {e}", e.instance_path))
        .collect()
}

#[test]
fn validates_against_the_official_schema() {
    for report in [fixtures::report(), fixtures::hostile(), Default::default()] {
        assert_eq!(schema_errors(&rendered(&report)), [""; 0]);
    }
}

#[test]
fn has_what_github_reads() {
    let log = rendered(&fixtures::report());
    let run = &log["runs"][0];
    assert_eq!(run["automationDetails"]["id"], "toctou/scan/");
    let rule = &run["tool"]["driver"]["rules"][0];
    assert_eq!(rule["properties"]["security-severity"], "8.0");
    assert_eq!(rule["properties"]["tags"][1], "external/cwe/cwe-362");
    let result = &run["results"][0];
    assert_eq!(
        result["partialFingerprints"]["toctou/v1"],
        "00000000000000f1"
    );
    assert!(result["partialFingerprints"]["primaryLocationLineHash"].is_null());
    let region = &result["locations"][0]["physicalLocation"]["region"];
    for key in ["startLine", "startColumn", "endLine", "endColumn"] {
        assert!(region[key].as_u64() >= Some(1), "{key}");
    }
    assert_eq!(region["startLine"], region["endLine"]);
    let flows = result["codeFlows"].as_array().expect("code flows");
    assert_eq!(flows[0]["threadFlows"].as_array().map(Vec::len), Some(1));
    assert_eq!(flows[1]["threadFlows"].as_array().map(Vec::len), Some(2));
    let suppressed = run["results"]
        .as_array()
        .expect("results")
        .iter()
        .find(|r| !r["suppressions"].is_null());
    assert_eq!(
        suppressed.expect("one is suppressed")["suppressions"][0]["kind"],
        "inSource"
    );
}

#[test]
fn message_links_lead_to_related_locations() {
    let log = rendered(&fixtures::report());
    let result = &log["runs"][0]["results"][0];
    let text = result["message"]["text"].as_str().expect("text");
    assert!(text.contains("[this read](1)"), "{text}");
    assert_eq!(result["relatedLocations"][0]["id"], 1);
}

#[test]
fn paths_are_uri_references() {
    assert_eq!(super::uri("src/a b%[x].ts"), "src/a%20b%25%5Bx%5D.ts");
    assert_eq!(super::uri("src/日.ts"), "src/%E6%97%A5.ts");
}
