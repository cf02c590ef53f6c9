//! Input that nobody should write: it may be refused, never crash or hang.

use std::time::{Duration, Instant};

use toctou_core::FileId;
use toctou_core::frontend::{LowerError, Lowered};
use toctou_core::ir::validate;
use toctou_frontend_python::lower;

/// Lowers, checks what comes out, and that it did not take long.
fn survive(text: &str) -> Result<Lowered, LowerError> {
    let start = Instant::now();
    let result = lower(FileId(0), "file.py", text);
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
fn ten_thousand_levels_are_lowered_or_refused() {
    for (open, core, close) in [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("{1:", "1", "}"),
        ("f(", "1", ")"),
        ("not ", "1", ""),
        ("- ", "1", ""),
        ("lambda: ", "1", ""),
        ("a if b else ", "1", ""),
        ("a ** ", "1", ""),
        ("a and (", "1", ")"),
        ("f'{", "1", "}'"),
        ("[x for x in ", "1", "]"),
    ] {
        let text = format!(
            "x = {}{core}{}\n",
            open.repeat(10_000),
            close.repeat(10_000)
        );
        let _ = survive(&text);
    }
}

#[test]
fn long_chains_are_no_deep_nesting() {
    for link in [
        " + a", " / 'b'", " and a", " < a", ".a", "[0]", "()", " or a.b",
    ] {
        let _ = survive(&format!("x = a{}\n", link.repeat(20_000)));
    }
    let lowered = survive(&format!("x = 'a'{}\n", " + 'b'".repeat(5_000))).expect("lowered");
    assert_eq!(lowered.module.opaque, 0);
}

#[test]
fn deep_blocks() {
    let mut text = String::new();
    for i in 0..2_000 {
        text.push_str(&" ".repeat(i));
        text.push_str(["if a:\n", "def f():\n", "with a:\n", "class A:\n"][i % 4]);
    }
    text.push_str(&" ".repeat(2_000));
    text.push_str("pass\n");
    let _ = survive(&text);
}

#[test]
fn much_of_everything() {
    for line in [
        "x = 1\n",
        "import a{}\n",
        "from a import b{}\n",
        "def f{}(a, b=1): return a\n",
        "class A{}:\n    x: int = 1\n",
        "global g{}\n",
        "try:\n    a()\nexcept B:\n    pass\n",
    ] {
        let text: String = (0..10_000)
            .map(|i| line.replace("{}", &i.to_string()))
            .collect();
        let _ = survive(&text);
    }
    let elifs = format!("if a:\n    b\n{}", "elif a:\n    b\n".repeat(10_000));
    let _ = survive(&elifs);
    let fields: String = (0..20_000)
        .map(|i| format!("    x{i}: int = {i}\n"))
        .collect();
    let _ = survive(&format!("class A:\n{fields}"));
}

#[test]
fn broken_text_is_not_the_end() {
    for text in [
        "",
        "\u{feff}",
        "\0",
        "def",
        "def f(",
        "class A(:\n  def",
        "x = 'abc",
        "f'{'",
        "@",
        "match x:\n case",
        "return 1",
        "await x",
        "yield",
        "nonlocal x\nglobal x\nx = 1",
        "def f(a, a): pass",
        "\r\r\r\n\t x",
        "def f():\n\tpass\n        pass",
        "for in in in:",
        "lambda lambda: 1",
        "é = 1; del é",
        "super().__init__()",
        "break\ncontinue\nraise",
        "class A:\n  x = [y for y in x]\n  def m(self): return [self for self in x]",
    ] {
        let _ = survive(text);
    }
}
