//! Input that nobody should write: it may be refused, never crash or hang.

use std::time::{Duration, Instant};

use toctou_core::FileId;
use toctou_core::frontend::{LowerError, Lowered};
use toctou_core::ir::validate;
use toctou_frontend_typescript::lower;

/// Lowers, checks what comes out, and that it did not take long.
fn survive(path: &str, text: &str) -> Result<Lowered, LowerError> {
    let start = Instant::now();
    let result = lower(FileId(0), path, text);
    let took = start.elapsed();
    let head: String = text.chars().take(60).collect();
    assert!(took < Duration::from_secs(20), "{head} took {took:?}");
    if let Ok(lowered) = &result {
        let problems = validate(&lowered.module);
        assert!(problems.is_empty(), "{head}: {:?}", problems.first());
    }
    result
}

/// `open` n times, a core, `close` n times.
fn nested(open: &str, core: &str, close: &str, n: usize) -> String {
    format!("x = {}{core}{}", open.repeat(n), close.repeat(n))
}

#[test]
fn ten_thousand_levels_are_lowered_or_refused() {
    for (open, core, close) in [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("{a:", "1", "}"),
        ("f(", "1", ")"),
        ("!", "1", ""),
        ("- ", "1", ""),
        ("typeof ", "1", ""),
        ("a => ", "1", ""),
        ("(a) => { return ", "1", "}"),
        ("a ? b : ", "1", ""),
        ("a ? ", "1", " : b"),
        ("a = ", "1", ""),
        ("a ** ", "1", ""),
        ("`${", "1", "}`"),
        ("new ", "A", ""),
        ("function () {", "", "}"),
        ("class { a = ", "1", "}"),
    ] {
        let _ = survive("deep.ts", &nested(open, core, close, 10_000));
        let _ = survive("deep.ts", &nested(open, core, "", 10_000));
        let _ = survive("deep.ts", &nested(open, core, close, 300_000));
    }
}

#[test]
fn ten_thousand_statements_inside_each_other() {
    // Looking a name up through n scopes takes n steps, in a debug build slow ones.
    let n = if cfg!(debug_assertions) {
        2_500
    } else {
        10_000
    };
    for (open, core, close) in [
        ("{", "", "}"),
        ("if (a) ", "b;", ""),
        ("if (a) {", "b;", "}"),
        ("for (;;) ", "b;", ""),
        ("while (a) ", "b;", ""),
        ("do ", "b;", " while (a);"),
        ("try {", "b;", "} finally { c }"),
        ("switch (a) { case 1: ", "b;", "}"),
        ("function f() {", "b;", "}"),
        ("class A { m() {", "b;", "}}"),
        ("namespace A {", "b;", "}"),
        ("l: ", "b;", ""),
        ("using a = b; {", "c;", "}"),
    ] {
        let text = format!("{}{core}{}", open.repeat(n), close.repeat(n));
        let _ = survive("deep.ts", &text);
    }
}

#[test]
fn jsx_patterns_and_types() {
    let n = 10_000;
    for text in [
        format!("x = {}{}", "<a>".repeat(n), "</a>".repeat(n)),
        format!("x = {}{}", "<a b={".repeat(n), "}/>".repeat(n)),
        // Text that hides brackets from anybody who takes the quote for a string.
        format!("x = {}", "<a>don't `{[".repeat(n)),
        format!("let {}a{} = b", "[".repeat(n), "]".repeat(n)),
        format!("({}a{} = b)", "{a:".repeat(n), "}".repeat(n)),
    ] {
        let _ = survive("deep.tsx", &text);
    }
    for text in [
        format!("let x: {}A{}", "A<".repeat(n), ">".repeat(n)),
        format!("let x: A{}", "[]".repeat(n)),
        format!("let x: {}A{}", "(".repeat(n), ")".repeat(n)),
        format!("type X = {}A", "A extends B ? C : ".repeat(n)),
        format!("type X = {}A", "keyof ".repeat(n)),
        format!("x = a{}", " < b".repeat(n)),
        format!("type X = A{}", ".A".repeat(n)),
    ] {
        let _ = survive("deep.ts", &text);
    }
}

#[test]
fn long_chains_are_lowered_whole() {
    let n = 100_000;
    for link in [
        " + a", " && a", ".b", "[0]", "()", ".b()", "?.b", " as A", " + 'x'", ", a",
    ] {
        let text = format!("x = (a{})", link.repeat(n));
        let lowered = survive("long.ts", &text);
        let opaque = lowered.map(|l| l.module.opaque);
        assert_eq!(opaque, Ok(0), "{link}");
    }
    let text = format!("{}c();", "if (a) b(); else ".repeat(10_000));
    let lowered = survive("long.ts", &text).map(|l| l.module.opaque);
    assert_eq!(lowered, Ok(0));
}

#[test]
fn what_is_cut_off_is_counted() {
    let lowered = survive("deep.ts", &nested("[", "f()", "]", 5_000));
    let lowered = lowered.map(|l| (l.module.opaque, l.warnings.len()));
    assert_eq!(lowered, Ok((1, 1)));
}

#[test]
fn a_large_file_takes_linear_time() {
    let line = "export async function f(a, b) { const x = await g(a, { b, c: [1, 2] }); if (x) { return x.y ?? b; } }\n";
    let time = |lines: usize| {
        let text = line.replace("function f", "function f_").repeat(lines);
        let start = Instant::now();
        let _ = survive("large.ts", &text);
        start.elapsed()
    };
    let small = time(2_000);
    let large = time(20_000);
    assert!(
        large < small * 40 + Duration::from_millis(500),
        "{small:?} {large:?}"
    );
}

#[test]
fn one_long_line() {
    let text = "var a=function(b){return b?{c:[1,2,3],d:e(b)}:f};".repeat(20_000);
    assert!(survive("min.js", &text).is_ok());
    let data = format!("x = [{}]", "{a:-1,b:!0,c:'x'},".repeat(100_000));
    assert!(survive("data.js", &data).is_ok());
}

#[test]
fn truncated_anywhere() {
    let text = "import { a } from 'b';\nexport class C extends D { #x = `a${b}c`; async m({ a = 1 }, ...r) { \
                try { for await (const x of y) { if (z) continue; } } catch (e) { throw e; } finally { f(); } \
                switch (a) { case /r[/]/g: break; default: } return <T>x as U; } }\nlabel: for (;;) break label;";
    for end in 0..text.len() {
        if let Some(part) = text.get(..end) {
            let _ = survive("part.ts", part);
            let _ = survive("part.tsx", part);
            let _ = survive("part.js", part);
        }
    }
}

#[test]
fn noise() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let pieces = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "`",
        "${",
        "'",
        "\"",
        "/",
        "*",
        "=>",
        "=",
        "?",
        ":",
        ";",
        ",",
        "\n",
        "if",
        "else",
        "class",
        "function",
        "async",
        "await",
        "yield",
        "return",
        "try",
        "catch",
        "finally",
        "x",
        "1",
        ".",
        "...",
        "<",
        ">",
        "!",
        "new",
        "this",
        "super",
        "static",
        "get",
        "import",
        "export",
        "default",
        "from",
        "enum",
        "namespace",
        "using",
        "const",
        "let",
        "var",
        "for",
        "of",
        "in",
        "do",
        "while",
        "switch",
        "case",
        "break",
        "continue",
        "label:",
        "@",
        "#y",
        "\u{feff}",
        "é",
        "\0",
        "\\u{41}",
    ];
    for _ in 0..3_000 {
        let length = next() % 40;
        let mut text = String::new();
        for _ in 0..length {
            let index = (next() % pieces.len() as u64) as usize;
            text.push_str(pieces[index]);
            text.push(' ');
        }
        let _ = survive("noise.ts", &text);
        let _ = survive("noise.jsx", &text);
    }
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..200).map(|_| next() as u8).collect();
        let _ = survive("noise.js", &String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn odd_but_fine() {
    for text in [
        "",
        "\n",
        "\u{feff}",
        "\u{feff}f();",
        "#!/usr/bin/env node\nf();",
        "// only a comment",
        "f()\r\ng()\r\n",
    ] {
        let lowered = survive("odd.ts", text);
        assert!(lowered.is_ok(), "{text:?}");
    }
    // Offsets count the byte order mark: they are offsets into the file.
    let text = "\u{feff}call();";
    let module = survive("bom.ts", text).map(|l| l.module);
    let span = module.map(|m| {
        let call = m.functions[0].blocks[0].insts[1].span;
        text[call.start as usize..call.end as usize].to_owned()
    });
    assert_eq!(span, Ok("call()".to_owned()));
}

#[test]
fn errors_have_a_line() {
    let error = survive("bad.ts", "const a = 1;\nconst b = = 2;\n").map(|_| ());
    assert_eq!(error.map_err(|e| e.line), Err(2));
    let lowered = survive("half.ts", "const a = 1;\nconst a = 2;\nlet x; f(a);")
        .map(|l| l.module.functions.len());
    assert_eq!(lowered, Ok(1));
    // Not strict, but JavaScript.
    assert!(survive("old.js", "with (a) { b(); } var await = 1; return 010;").is_ok());
}
