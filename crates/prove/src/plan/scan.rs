//! What `scan` found, as tools that shall meet; and what became of it.

use serde::Deserialize;
use serde_json::Value;
use toctou_report::plural;

use super::probe::{Survey, Verb};
use crate::oracles::Class;
use crate::proof::Proof;
use crate::report::{Attempt, AttemptOutcome, FindingReport, Place};

/// Of a finding, what matters here. Other keys are not looked at.
#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    pub rule: String,
    pub fingerprint: String,
    #[serde(default)]
    pub scopes: Vec<String>,
    resource: Option<Resource>,
    location: Option<Location>,
    #[serde(default)]
    entry_points: Vec<Entry>,
    #[serde(default)]
    interleaving: Vec<Step>,
    #[serde(default)]
    suppressed: Option<Value>,
    /// Tools that close what the calls use, if it is about that. Known when the tools are.
    #[serde(skip)]
    closers: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Resource {
    kind: String,
    #[serde(default)]
    key: String,
}

/// Of the story, who does what.
#[derive(Clone, Debug, Deserialize)]
struct Step {
    actor: String,
    action: String,
}

/// What has to happen for it to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// Two calls, one between the steps of the other.
    Calls,
    /// A call, and something that closes what it uses.
    Closing,
    /// A call that fails: others are only harmed by it.
    Failure,
}

#[derive(Clone, Debug, Deserialize)]
struct Location {
    file: String,
    line: u32,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Scan {
    schema: String,
    findings: Vec<Finding>,
}

/// Reads the JSON of `toctou scan`.
pub fn parse(json: &str) -> Result<Vec<Finding>, String> {
    let scan: Scan = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if !scan.schema.starts_with("toctou.scan/") {
        return Err(format!(
            "its schema is `{}`, not `toctou.scan/1`",
            scan.schema
        ));
    }
    Ok(scan
        .findings
        .into_iter()
        .filter(|finding| finding.suppressed.is_none())
        .collect())
}

impl Finding {
    /// The tools that reach it.
    pub fn tools(&self) -> Vec<String> {
        let mut tools: Vec<String> = self
            .entry_points
            .iter()
            .filter(|entry| entry.kind == "tool")
            .map(|entry| entry.name.clone())
            .collect();
        tools.sort();
        tools.dedup();
        tools
    }

    fn takes(&self) -> Takes {
        let others = || {
            let steps = self.interleaving.iter();
            steps.filter(|step| step.actor != "A" && step.action != "outcome")
        };
        if others().any(|step| step.action == "close") {
            Takes::Closing
        } else if self.interleaving.is_empty() || others().any(|step| step.action != "acquire") {
            Takes::Calls
        } else {
            Takes::Failure
        }
    }

    /// Learns which tools of the server close something.
    pub fn meet(&mut self, survey: &Survey) {
        if self.takes() == Takes::Closing {
            let closing = survey
                .tools
                .iter()
                .filter(|known| known.verb == Verb::Close);
            self.closers = closing.map(|known| known.tool.name.clone()).collect();
        }
    }

    /// Whether it is about how many calls are let through.
    pub fn is_limit(&self) -> bool {
        self.rule.ends_with("-limit")
    }

    /// The tools whose calls can show it.
    pub fn wanted(&self) -> Vec<String> {
        let mut tools = self.tools();
        tools.extend(self.closers.iter().cloned());
        tools
    }

    /// Whether calls of these tools can show it.
    pub fn wants(&self, tools: &[String]) -> bool {
        let own = self.tools();
        match self.takes() {
            Takes::Calls => tools.iter().all(|tool| own.contains(tool)),
            Takes::Closing => {
                let closes = |tool: &String| self.closers.contains(tool);
                tools.iter().any(closes)
                    && tools.iter().any(|tool| own.contains(tool))
                    && tools.iter().all(|tool| closes(tool) || own.contains(tool))
            }
            Takes::Failure => false,
        }
    }

    /// The same, where calls meet in this way.
    pub fn asks_for(&self, tools: &[String], scope: &str) -> bool {
        self.wants(tools) && (self.scopes.is_empty() || self.scopes.iter().any(|own| own == scope))
    }

    /// How closely `proof` shows this one, if it does: by the same tools, in one of
    /// its scopes, and in the file or table that it is about, where that has a name.
    fn fits(&self, proof: &Proof) -> Option<Fit> {
        if !self.asks_for(&proof.tools, &proof.scope) {
            return None;
        }
        let places = || proof.differences.iter().map(|change| change.place.as_str());
        let in_files = places().any(|place| place.starts_with("files"));
        let resource = self.resource.as_ref();
        match resource.map_or("", |resource| resource.kind.as_str()) {
            "file" => match resource.and_then(Resource::file) {
                Some(name) if touches(proof, name) => Some(Fit::Named),
                // It is about another file.
                Some(_) if in_files => None,
                // Answers alone tell of files too: two calls that both created one.
                _ if in_files || proof.held.is_some() || proof.recipe.class != Class::State => {
                    Some(Fit::Kind)
                }
                _ => None,
            },
            "row" => {
                let table = resource.map_or("", |resource| resource.key.as_str());
                let named = |place: &str| place.split(" › ").any(|part| part == table);
                if places().any(|place| place.starts_with("files") && named(place)) {
                    Some(Fit::Named)
                } else if in_files {
                    None
                } else {
                    Some(Fit::Kind)
                }
            }
            // What is in memory is seen by what the tools say, or by what they write later.
            _ if in_files && proof.recipe.class == Class::State => Some(Fit::Tools),
            _ => Some(Fit::Kind),
        }
    }
}

/// How closely a proof fits a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Its tools do, in its scope.
    Tools,
    /// It is about the same kind of thing.
    Kind,
    /// It is about the file or table that the finding names.
    Named,
}

impl Resource {
    /// The end of a file's name, if it is in the source: `notes.json`, `.txt`.
    fn file(&self) -> Option<&str> {
        let name = self.key.rsplit(['/', '}']).next()?;
        let (_, ending) = name.rsplit_once('.')?;
        // `this.store.file` is a variable.
        let known = [
            "json", "jsonl", "txt", "md", "csv", "yaml", "yml", "toml", "xml", "db", "sqlite",
            "log", "lock", "html", "ndjson", "ini",
        ];
        known.contains(&ending).then_some(name)
    }
}

/// Whether a file of this name has a part in the proof.
fn touches(proof: &Proof, name: &str) -> bool {
    let changes = proof.differences.iter().map(|change| &change.place);
    let held = proof.held.iter();
    let steps = proof.timeline.iter().map(|step| &step.text);
    changes
        .chain(held)
        .chain(steps)
        .any(|text| text.contains(name))
}

/// For each finding, the proof that shows it. One proof can fit several findings:
/// it is taken for those that it fits best.
pub fn shown<'p>(findings: &[Finding], proofs: &'p [Proof]) -> Vec<Option<&'p Proof>> {
    let mut best: Vec<Option<(Fit, &Proof)>> = vec![None; findings.len()];
    for proof in proofs {
        let fits: Vec<Option<Fit>> = findings.iter().map(|finding| finding.fits(proof)).collect();
        let closest = fits.iter().flatten().max().copied();
        for (at, fit) in fits.into_iter().enumerate() {
            if let Some(fit) = fit
                && Some(fit) == closest
                && best[at].is_none_or(|(before, _)| before < fit)
            {
                best[at] = Some((fit, proof));
            }
        }
    }
    best.into_iter()
        .map(|proof| proof.map(|(_, proof)| proof))
        .collect()
}

/// What became of each finding.
pub fn judge(findings: &[Finding], proofs: &[Proof], attempts: &[Attempt]) -> Vec<FindingReport> {
    let shown = shown(findings, proofs);
    let verdict = |(at, finding): (usize, &Finding)| {
        let mine: Vec<&Attempt> = attempts
            .iter()
            .filter(|attempt| finding.asks_for(&attempt.tools, &attempt.scope))
            .collect();
        let (status, reason) = match shown[at] {
            Some(proof) => {
                let id = |proof: &Proof| proof.id.clone();
                let same = shown
                    .iter()
                    .flatten()
                    .filter(|other| id(other) == id(proof));
                let others = same.count() - 1;
                let reason = (others > 0)
                    .then(|| format!("the proof fits {} as well", plural(others, "other finding")));
                ("proved", reason)
            }
            None => finding.not_proved(&mine),
        };
        FindingReport {
            fingerprint: finding.fingerprint.clone(),
            rule: finding.rule.clone(),
            tools: finding.tools(),
            status: status.to_owned(),
            schedules: mine.iter().map(|attempt| attempt.schedules).sum(),
            location: finding.location.as_ref().map(|place| Place {
                file: place.file.clone(),
                line: place.line,
            }),
            proof: shown[at].map(|proof| proof.id.clone()),
            reason,
        }
    };
    findings.iter().enumerate().map(verdict).collect()
}

impl Finding {
    /// What is said about it without a proof.
    fn not_proved(&self, mine: &[&Attempt]) -> (&'static str, Option<String>) {
        let reason_of = |outcome: AttemptOutcome| {
            let mut some = mine.iter().filter(|attempt| attempt.outcome == outcome);
            some.find_map(|attempt| attempt.reason.clone())
        };
        let any = |outcome| mine.iter().any(|attempt| attempt.outcome == outcome);
        let because = if self.tools().is_empty() {
            "no tool reaches it".to_owned()
        } else if self.takes() == Takes::Failure {
            "it takes a call that fails, not two that meet: those are not made".to_owned()
        } else if self.takes() == Takes::Closing && self.closers.is_empty() {
            "no tool closes what the calls use; the end of the server is not tried".to_owned()
        } else if any(AttemptOutcome::Inconclusive) {
            reason_of(AttemptOutcome::Inconclusive).unwrap_or_default()
        } else if any(AttemptOutcome::NoViolation)
            || any(AttemptOutcome::Proved)
            || mine.iter().any(|attempt| attempt.points > 0)
        {
            return ("not-reproduced", None);
        } else {
            reason_of(AttemptOutcome::NotTried)
                .or_else(|| reason_of(AttemptOutcome::NotPossible))
                .unwrap_or_else(|| "its tools could not be called".to_owned())
        };
        ("inconclusive", Some(because))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_what_scan_writes_and_names_what_it_cannot() {
        let findings = parse(
            r#"{"schema": "toctou.scan/1", "summary": {}, "findings": [
                {"rule": "r", "fingerprint": "f", "entry_points": [{"kind": "tool", "name": "b"}, {"kind": "tool", "name": "a"}, {"kind": "timer", "name": "c"}]},
                {"rule": "s", "fingerprint": "g", "suppressed": {"kind": "comment", "reason": "x"}}]}"#,
        )
        .expect("valid");
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].tools(), ["a", "b"]);
        assert!(parse("{}").is_err());
        assert!(parse(r#"{"schema": "x", "findings": []}"#).is_err());
        let told = judge(&findings, &[], &[]);
        assert_eq!(told[0].status, "inconclusive");
    }

    fn finding(
        rule: &str,
        kind: &str,
        key: &str,
        tools: &[&str],
        steps: &[(&str, &str)],
    ) -> Finding {
        let steps: Vec<Value> = steps
            .iter()
            .map(|(actor, action)| json!({ "actor": actor, "action": action }))
            .collect();
        let tools: Vec<Value> = tools
            .iter()
            .map(|name| json!({ "kind": "tool", "name": name }))
            .collect();
        let scan = json!({ "schema": "toctou.scan/1", "findings": [{
            "rule": rule, "fingerprint": rule, "scopes": ["in-process"],
            "resource": { "kind": kind, "key": key }, "entry_points": tools, "interleaving": steps,
        }]});
        parse(&scan.to_string()).expect("valid").remove(0)
    }

    fn proof(id: &str, tools: &[&str], place: &str) -> Proof {
        let calls: Vec<Value> = tools.iter().map(|tool| json!({ "tool": tool })).collect();
        serde_json::from_value(json!({
            "id": id, "kind": "lost-write", "tools": tools, "scope": "in-process", "strategy": "hold",
            "template": "as given",
            "recipe": {
                "schema": "toctou.replay/1", "target": { "command": { "argv": ["server"] } }, "scenario": { "calls": calls },
                "assignment": [0, 0], "schedule": { "strategy": "burst" }, "class": "state", "headline": "lost",
            },
            "replays": { "reproduced": 5, "of": 5 }, "replies": [], "serial": [], "nearest": [0, 1],
            "differences": [{ "place": place }], "timeline": [], "seconds": 1.0,
        }))
        .expect("a proof")
    }

    const LOST: [(&str, &str); 4] = [("A", "read"), ("B", "read"), ("B", "write"), ("A", "write")];

    fn ids(findings: &[Finding], proofs: &[Proof]) -> Vec<Option<String>> {
        let shown = shown(findings, proofs);
        shown
            .into_iter()
            .map(|proof| Some(proof?.id.clone()))
            .collect()
    }

    #[test]
    fn a_proof_shows_the_finding_about_its_file_or_table() {
        let findings = [
            finding("notes", "file", "notes.json", &["save"], &LOST),
            finding(
                "journal",
                "file",
                "this.folder/journal.json",
                &["save"],
                &LOST,
            ),
            finding("cache", "memory", "cache", &["save"], &LOST),
            finding("accounts", "row", "accounts", &["pay"], &LOST),
            finding("coupons", "row", "coupons", &["pay"], &LOST),
        ];
        let proofs = [
            proof("p", &["save"], "files › workspace/journal.json › 0"),
            proof("q", &["pay"], "files › workspace/bank.db › coupons › *"),
        ];
        let [p, q] = ["p", "q"].map(|id| Some(id.to_owned()));
        assert_eq!(ids(&findings, &proofs), [None, p, None, None, q]);
        let said = judge(&findings, &proofs, &[]);
        assert_eq!(said[1].status, "proved");
        assert_eq!(said[1].reason, None);
    }

    #[test]
    fn a_proof_that_fits_two_findings_says_so() {
        let findings = [
            finding("a", "memory", "carts", &["add"], &LOST),
            finding("b", "memory", "catalog", &["add", "price"], &LOST),
        ];
        let said = judge(&findings, &[proof("p", &["add"], "tools › 0 › ok")], &[]);
        assert_eq!(
            (said[0].status.as_str(), said[1].status.as_str()),
            ("proved", "proved")
        );
        assert!(
            said[0]
                .reason
                .as_deref()
                .is_some_and(|why| why.contains("1 other finding"))
        );
        // A tool that reaches only one of them.
        assert_eq!(
            ids(&findings, &[proof("p", &["price"], "tools › 0 › ok")])[0],
            None
        );
    }

    #[test]
    fn a_limit_takes_more_calls_than_two() {
        let limit = |rule| finding(rule, "memory", "m", &["ask"], &LOST).is_limit();
        assert!(limit("non-atomic-rate-limit"));
        assert!(!limit("session-lost-update"));
    }

    #[test]
    fn what_a_finding_takes_is_in_its_story() {
        let mut closing = finding(
            "c",
            "memory",
            "m",
            &["submit"],
            &[("A", "read"), ("B", "close"), ("A", "write")],
        );
        let tools = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        assert!(!closing.wants(&tools(&["submit"])));
        closing.closers = tools(&["drain"]);
        assert!(closing.wants(&tools(&["drain", "submit"])));
        assert!(!closing.wants(&tools(&["drain"])));
        let failing = finding(
            "f",
            "lock",
            "l",
            &["run"],
            &[("A", "acquire"), ("B", "acquire")],
        );
        assert!(!failing.wants(&tools(&["run"])));
        let said = judge(&[failing], &[], &[]);
        assert_eq!(said[0].status, "inconclusive");
    }
}
