//! JUnit XML, for Jenkins and everything else that shows test results.
//!
//! Each rule is a test that passes where it finds nothing, each finding one
//! that fails: so a report is never empty, which readers take for a mistake.
//! Readers follow a test from build to build by class and name. The class is
//! the file and the name has no line number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toctou_core::finding::Finding;

use crate::clean;
use crate::snippet::Gutter;
use crate::timeline;
use crate::view::{Terminal, View};

pub(crate) fn render(view: &View<'_>) -> String {
    let mut suite = Suite::default();
    for finding in &view.report.findings {
        suite.finding(view, finding);
    }
    for skipped in view.report.skipped.iter().filter(|skipped| skipped.fault) {
        let body = element("error", "not analysed", &skipped.reason, "");
        suite.errors += 1;
        suite.case(&format!("{}{}", view.base, skipped.file), "analysed", &body);
    }
    for rule in view.rules {
        let found = view.report.findings.iter().any(|f| f.rule == rule.id);
        if !found && rule.persona <= view.persona {
            suite.case("toctou", rule.id, "");
        }
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"toctou\">\n  \
         <testsuite name=\"toctou scan\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" version=\"{}\">\n\
         {}  </testsuite>\n</testsuites>\n",
        suite.tests,
        suite.failures,
        suite.errors,
        suite.skipped,
        xml(&view.report.tool_version),
        suite.cases,
    )
}

#[derive(Default)]
struct Suite {
    cases: String,
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    /// How often a class has had a name: readers take two of one name for one.
    names: BTreeMap<(String, String), u32>,
}

impl Suite {
    fn finding(&mut self, view: &View<'_>, finding: &Finding) {
        let place = &finding.location;
        let body = if let Some(suppression) = &finding.suppressed {
            self.skipped += 1;
            element("skipped", "ignored", &suppression.reason, "")
        } else if finding.non_product {
            self.skipped += 1;
            element("skipped", "not the product", &finding.message, "")
        } else {
            self.failures += 1;
            let kind = format!("{} ({})", finding.rule, finding.severity);
            element("failure", &kind, &finding.message, &details(view, finding))
        };
        let name = if place.function.is_empty() {
            finding.rule.clone()
        } else {
            format!("{} in {}", finding.rule, place.function)
        };
        self.case(&format!("{}{}", view.base, place.file), &name, &body);
    }

    fn case(&mut self, class: &str, name: &str, body: &str) {
        self.tests += 1;
        let seen = self
            .names
            .entry((class.to_owned(), name.to_owned()))
            .or_default();
        *seen += 1;
        let number = match *seen {
            1 => String::new(),
            n => format!(" ({n})"),
        };
        let _ = write!(
            self.cases,
            "    <testcase classname=\"{}\" name=\"{}{number}\"",
            xml(class),
            xml(name),
        );
        self.cases += &if body.is_empty() {
            "/>\n".to_owned()
        } else {
            format!(">\n{body}    </testcase>\n")
        };
    }
}

fn element(tag: &str, kind: &str, message: &str, text: &str) -> String {
    let head = format!(
        "      <{tag} type=\"{}\" message=\"{}\"",
        xml(kind),
        xml(message)
    );
    if text.is_empty() {
        return head + "/>\n";
    }
    let text: Vec<String> = text.lines().map(xml).collect();
    format!("{head}>{}</{tag}>\n", text.join("\n"))
}

/// Where it is, how it happens and what to do.
fn details(view: &View<'_>, finding: &Finding) -> String {
    let place = &finding.location;
    let gutter = Gutter {
        digits: 4,
        terminal: Terminal {
            width: 88,
            color: false,
            unicode: true,
        },
    };
    format!(
        "{}{}:{}:{}\n{}\n{}\nbecause: {}\nfix: {}\nfingerprint: {}",
        view.base,
        place.file,
        place.line,
        place.column,
        clean::line(&finding.message),
        timeline::render(&finding.interleaving, &place.file, gutter).trim_end(),
        clean::line(&finding.because),
        clean::line(&finding.fix),
        finding.fingerprint,
    )
}

/// One line of text or of an attribute. What XML cannot hold is spelled out.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean::line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::fixtures;

    /// What the validator says, nothing if the document is valid.
    fn faults(document: &str) -> String {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/junit-10.xsd");
        let mut child = Command::new("xmllint")
            .args(["--nonet", "--noout", "--schema", schema, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("xmllint (apt-get install libxml2-utils)");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(document.as_bytes()).expect("written");
        drop(stdin);
        let output = child.wait_with_output().expect("an answer");
        if output.status.success() {
            return String::new();
        }
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[test]
    fn validates_against_the_schema() {
        for mut report in [fixtures::report(), fixtures::hostile(), Default::default()] {
            for finding in &mut report.findings {
                finding.message += "\u{ffff}\u{0}]]>";
            }
            assert_eq!(faults(&render(&fixtures::view(&report))), "");
        }
        assert!(faults("<testsuites><testsuite/></testsuites>").contains("name"));
    }

    #[test]
    fn counts_are_those_of_the_cases() {
        let report = fixtures::report();
        let text = render(&fixtures::view(&report));
        let count = |what: &str| text.matches(what).count();
        assert_eq!(count("<failure "), 2);
        assert_eq!(count("<skipped "), 1);
        assert_eq!(count("<error "), 1);
        let head = format!(
            "tests=\"{}\" failures=\"2\" errors=\"1\" skipped=\"1\"",
            count("<testcase ")
        );
        assert!(text.contains(&head), "{head}\n{text}");
        // One name, once: the third finding is in the function of the second.
        assert_eq!(count("createRelations\""), 1);
        assert_eq!(count("createRelations (2)\""), 1);
    }

    #[test]
    fn a_clean_report_has_passing_tests() {
        let text = render(&fixtures::view(&Default::default()));
        assert!(text.contains("<testcase "), "{text}");
        assert!(!text.contains("<failure "), "{text}");
    }
}
