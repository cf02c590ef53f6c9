//! Input that nobody should write: it may be refused, never crash or hang.

use std::time::{Duration, Instant};

use toctou_core::FileId;
use toctou_core::frontend::{LowerError, Lowered};
use toctou_core::ir::validate;
use toctou_frontend_rust::{lower, resolve};

fn survive(text: &str) -> Result<Lowered, LowerError> {
    let start = Instant::now();
    let result = lower(FileId(0), "src/main.rs", text);
    let took = start.elapsed();
    let head: String = text.chars().take(60).collect();
    assert!(took < Duration::from_secs(30), "{head} took {took:?}");
    if let Ok(lowered) = &result {
        let problems = validate(&lowered.module);
        assert!(problems.is_empty(), "{head}: {:?}", problems.first());
    }
    result
}

fn nested(open: &str, core: &str, close: &str, n: usize) -> String {
    format!(
        "fn f() {{ let x = {}{core}{}; }}",
        open.repeat(n),
        close.repeat(n)
    )
}

const SHAPES: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{", "1", "}"),
    ("f(", "1", ")"),
    ("!", "x", ""),
    ("- ", "1", ""),
    ("&", "x", ""),
    ("|| ", "1", ""),
    ("|a| { ", "1", "}"),
    ("async { ", "1", "}"),
    ("if a { ", "1", "}"),
    ("if a {} else ", "{}", ""),
    ("match a { _ => ", "1", "}"),
    ("loop { ", "1", "}"),
    ("return ", "1", ""),
    ("a = ", "1", ""),
    ("a + ", "1", ""),
    ("vec![", "1", "]"),
    ("format!(\"{}\", ", "1", ")"),
    ("json!({\"a\": ", "1", "})"),
    ("Some(", "1", ")"),
    ("S { a: ", "1", "}"),
    ("", "x", ".a"),
    ("", "x", ".a()"),
    ("", "x", "?"),
    ("", "x", ".await"),
    ("", "x", "[0]"),
    ("", "x", " as u32"),
];

#[test]
fn deep_code_is_lowered_or_refused() {
    for n in [50, 400, 3_000, 40_000] {
        for (open, core, close) in SHAPES {
            let _ = survive(&nested(open, core, close, n));
        }
    }
}

#[test]
fn deep_types_patterns_and_items() {
    for n in [300, 40_000] {
        let _ = survive(&format!(
            "fn f(x: {}u8{}) {{}}",
            "Vec<".repeat(n),
            ">".repeat(n)
        ));
        let _ = survive(&format!("fn f(x: {}u8) {{}}", "&".repeat(n)));
        let _ = survive(&format!(
            "fn f() {{ let {}x{} = y; }}",
            "(".repeat(n),
            ",)".repeat(n)
        ));
        let _ = survive(&format!(
            "{}fn f() {{}}{}",
            "mod a { ".repeat(n),
            "}".repeat(n)
        ));
        let _ = survive(&format!("use {}a{};", "a::{".repeat(n), "}".repeat(n)));
        let _ = survive(&format!("use {}a;", "a::".repeat(n)));
    }
}

#[test]
fn past_the_limit_the_rest_is_counted() {
    let lowered = survive(&nested("(", "f()", ")", 1_000)).expect("lowered");
    assert!(lowered.module.opaque > 0);
    assert!(lowered.warnings[0].contains("nested deeper"));
}

#[test]
fn long_code_takes_linear_time() {
    let many = |one: &str, n: usize| format!("fn f() {{ {} }}", one.repeat(n));
    let _ = survive(&many("let x = a.lock().unwrap().get(1); ", 20_000));
    let _ = survive(&many("let g = a.lock().unwrap(); ", 5_000));
    let _ = survive(&many("if a { return; } ", 20_000));
    let _ = survive(&"fn f() { let c = |x| x + 1; }\n".repeat(10_000));
    let _ = survive(&format!(
        "fn f(a: &str) {{ match a {{ {} _ => 0 }} }}",
        "\"x\" => 1, ".repeat(5_000)
    ));
}

/// All of it in one line, with a letter of two bytes in it.
#[test]
fn one_long_line() {
    let text = format!(
        "fn f() {{ let é = 1; {} }}",
        "let a = 1 + 2; ".repeat(70_000)
    );
    assert!(survive(&text).is_ok());
}

#[test]
fn broken_text_is_an_error_with_a_line() {
    let error = survive("fn a() {}\nfn b( {\n").expect_err("broken");
    assert!(error.line >= 1);
    for text in [
        "", "}", "\0", "\u{feff}", "#!", "#!/x", "'", "\"", "r#\"", "/*", "b'", "fn", "\u{0}fn",
    ] {
        let _ = survive(text);
    }
}

#[test]
fn strange_but_legal() {
    for text in [
        "impl X<Self> for Y { fn f() -> Self { Self::f() } }",
        "impl Self { fn f(self) {} }",
        "use self::a as b; use b as a; fn f() { a::b(); }",
        "mod a { use super::*; mod b { use super::super::*; fn f() { g(); } } } fn g() {}",
        "fn f() { let (a | b) = c; break; continue 'x; }",
        "fn f() { match x {} }",
        "fn f() { macro_rules! m { () => {} } m!{ 1 2 3 } }",
        "type A = B; type B = A; fn f(x: A) {}",
        "fn f() { (|| -> ! { loop {} })() }",
        "struct S(u8); fn f(s: S) { let S(x) = s; let S { 0: y } = s; }",
        "fn f() -> impl Fn() { move || { x += 1; async move { x } } }",
    ] {
        let lowered = survive(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let mut modules = vec![lowered.module];
        resolve(&["src/main.rs".to_owned()], &mut modules, &[]);
        assert_eq!(validate(&modules[0]), Vec::<String>::new(), "{text}");
    }
}
