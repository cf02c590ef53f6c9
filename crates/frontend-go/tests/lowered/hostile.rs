//! Input that nobody should write: it may be refused, never crash or hang.

use std::time::{Duration, Instant};

use toctou_core::FileId;
use toctou_core::frontend::{LowerError, Lowered};
use toctou_core::ir::validate;
use toctou_frontend_go::lower;

/// Lowers, checks what comes out, and that it did not take long.
fn survive(text: &str) -> Result<Lowered, LowerError> {
    let start = Instant::now();
    let result = lower(FileId(0), "hostile.go", text);
    let took = start.elapsed();
    let head: String = text.chars().take(60).collect();
    assert!(took < Duration::from_secs(20), "{head} took {took:?}");
    if let Ok(lowered) = &result {
        let problems = validate(&lowered.module);
        assert!(problems.is_empty(), "{head}: {:?}", problems.first());
    }
    result
}

#[test]
fn ten_thousand_levels_are_cut_off_and_counted() {
    for (open, core, close) in [
        ("(", "1", ")"),
        ("f(", "1", ")"),
        ("!", "x", ""),
        ("-", "1", ""),
        ("*", "x", ""),
        ("[]T{", "1", "}"),
        ("func() int { return ", "1", "}"),
        ("a[", "1", "]"),
        ("a + (", "1", ")"),
        ("<-", "c", ""),
    ] {
        let deep = format!(
            "package p\nfunc f() {{ x = {}{core}{} }}\n",
            open.repeat(10_000),
            close.repeat(10_000)
        );
        let lowered = survive(&deep).expect("lowered");
        assert!(
            lowered.module.opaque > 0 || !lowered.warnings.is_empty(),
            "{open}: nothing was said"
        );
        let _ = survive(&deep[..deep.len() / 2]);
    }
}

#[test]
fn statements_inside_each_other() {
    for (open, close) in [
        ("{", "}"),
        ("if a {", "}"),
        ("for {", "}"),
        ("switch { case a: ", "}"),
        ("select { case <-c: ", "}"),
        ("go func() {", "}()"),
        ("defer func() {", "}()"),
        ("l: ", ""),
    ] {
        let deep = format!(
            "package p\nfunc f() {{ {} b() {} }}\n",
            open.repeat(5_000),
            close.repeat(5_000)
        );
        let _ = survive(&deep);
    }
}

#[test]
fn long_is_not_deep() {
    let sum = format!("package p\nvar x = 1{}\n", " + 1".repeat(50_000));
    assert_eq!(survive(&sum).expect("lowered").module.opaque, 0);
    let list = format!("package p\nvar x = []int{{{}}}\n", "1, ".repeat(50_000));
    assert_eq!(survive(&list).expect("lowered").module.opaque, 0);
    let body = "x := 1\n_ = x\n{ x := 2; _ = x }\n".repeat(10_000);
    survive(&format!("package p\nfunc f() {{\n{body}}}\n")).expect("lowered");
    let chain = "if a { b() } else ".repeat(2_000);
    survive(&format!("package p\nfunc f() {{ {chain} {{ }} }}\n")).expect("lowered");
    let defers = "defer f()\nif a { return }\n".repeat(5_000);
    survive(&format!("package p\nfunc f() {{\n{defers}}}\n")).expect("lowered");
    let maybe = "if a { defer f() }\nif b { return }\n".repeat(3_000);
    survive(&format!("package p\nfunc f() {{\n{maybe}}}\n")).expect("lowered");
}

#[test]
fn anything_may_come_as_source() {
    for text in [
        "",
        "\u{feff}package p",
        "\0\0\0",
        "package",
        "package p\nfunc",
        "package p\nfunc (",
        "package p\nfunc (s *) f() { s.x = }",
        "package p\nimport \"",
        "package p\nimport (\n\"a\" \"b\"\n_ \"c\"\n. \"d\"\n)",
        "package p\ntype T struct { T; *T; T.T }",
        "package p\ntype T = T",
        "package p\ntype I interface { I; f() I }",
        "package p\nfunc f() { goto l; break; continue; fallthrough; return 1, 2, 3 }",
        "package p\nfunc f() (a, b int) { defer func() { a = 1 }(); return }",
        "package p\nfunc f() { a, b := }",
        "package p\nfunc f() { for range { } }",
        "package p\nconst ( a = iota; b; _; c )",
        "package p\nfunc f() { x.(type) }",
        "package p\nfunc f() { é := \"\u{1F600}\"; _ = é }",
        "}{)(][",
    ] {
        let _ = survive(text);
    }
}

#[test]
fn a_syntax_error_is_said_and_the_rest_is_lowered() {
    let lowered =
        survive("package p\n\nfunc a() { x := := 1 }\n\nfunc b() { c() }\n").expect("some");
    assert!(
        lowered.warnings.iter().any(|w| w.contains("line 3")),
        "{:?}",
        lowered.warnings
    );
    let names: Vec<&str> = lowered
        .module
        .functions
        .iter()
        .map(|f| lowered.module.names.text(f.name))
        .collect();
    assert!(names.contains(&"b"), "{names:?}");
}
