use toctou_core::finding::ScanReport;

use crate::fixtures;
use crate::layout::width;

fn at(report: &ScanReport, columns: usize, unicode: bool) -> String {
    let mut view = fixtures::view(report);
    view.terminal.width = columns;
    view.terminal.unicode = unicode;
    super::render(&view)
}

#[test]
fn at_80_columns() {
    insta::assert_snapshot!(at(&fixtures::report(), 80, true));
}

#[test]
fn at_60_columns() {
    insta::assert_snapshot!(at(&fixtures::report(), 60, true));
}

#[test]
fn at_120_columns() {
    insta::assert_snapshot!(at(&fixtures::report(), 120, true));
}

#[test]
fn in_ascii_at_40_columns() {
    let mut report = fixtures::report();
    report.findings.truncate(1);
    let text = at(&report, 40, false);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_line_of_a_minified_file_is_cut_around_the_marks() {
    insta::assert_snapshot!(at(&fixtures::minified(), 80, true));
}

#[test]
fn hostile_text_is_spelled_out() {
    let text = at(&fixtures::hostile(), 80, true);
    assert!(
        text.chars()
            .all(|c| c == '\n' || !crate::clean::is_hidden(c))
    );
    assert!(!text.lines().any(|line| line.starts_with("::")));
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    for columns in [40, 60, 80, 100, 200] {
        for report in [
            fixtures::report(),
            fixtures::minified(),
            fixtures::hostile(),
        ] {
            for line in at(&report, columns, true).lines() {
                // Headings, and what is there to click on or to paste, are never broken.
                if !["-->", "─ ", "ignore:"]
                    .iter()
                    .any(|mark| line.contains(mark))
                {
                    assert!(width(line) <= columns, "{columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn no_findings_is_not_called_safe() {
    let mut report = fixtures::report();
    report.findings.clear();
    let text = at(&report, 80, true);
    assert!(!text.contains("safe") && !text.contains("clean"));
    insta::assert_snapshot!(text, @r"
    warning: src/broken.ts: line 7: Unexpected token
    note: src/a.ts:3: nothing to ignore here: `data-race` does not fire on line 4

    No findings for the regular persona.
    Score: 73 of 100, grade C
    Scanned 2 files in .: 5 functions, 8 entry points; 3 skipped; 1 finding
        suppressed.
    hint: 2 more with `--persona pedantic`
    ");
}

#[test]
fn colour_adds_nothing_but_colour() {
    let report = fixtures::report();
    let mut view = fixtures::view(&report);
    let plain = super::render(&view);
    view.terminal.color = true;
    let coloured = super::render(&view);
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped += before;
        rest = after.split_once('m').map_or("", |(_, tail)| tail);
    }
    stripped += rest;
    let trim = |text: &str| {
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(trim(&stripped), trim(&plain));
}

#[test]
fn a_read_that_is_also_the_gap_is_marked_once() {
    let mut report = fixtures::report();
    report.findings.truncate(1);
    report.findings[0].gap = report.findings[0].read.clone();
    let text = at(&report, 80, true);
    assert!(
        text.contains("---------------- call A reads, and call B can run\n"),
        "{text}"
    );
    assert!(!text.contains('~'), "{text}");
}
