//! `file-read-modify-write`: a file is read, changed in memory and written back.

use toctou_analysis::Act;
use toctou_core::finding::ResourceKind;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::{Case, Verdict};

pub const META: RuleMeta = RuleMeta {
    id: "file-read-modify-write",
    summary: "A file is read, changed in memory and written back",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 362,
    since: "0.1.0",
    page: include_str!("page.md"),
};

/// A file was read, changed and written back.
pub(crate) fn judge(case: &Case<'_>) -> Option<Verdict> {
    let w = case.w;
    if let Some(file) = &w.snapshot {
        return snapshot(case, file);
    }
    if !case.is(ResourceKind::File) || !w.data || !case.is_open() || w.path_check || w.write_act == Act::Delete {
        return None;
    }
    if w.kept {
        let message = format!(
            "`{}` is loaded when the server starts, changed in memory and written back whole: what another process has written since then is lost",
            case.key()
        );
        let fix = "under a lock that all processes see, read the file again, change that, and write it";
        return Some(Verdict::new(message, fix, "B's change is lost").severity(Severity::Medium));
    }
    let message = format!(
        "`{}` is read, changed and written back: what another call writes in between is lost",
        case.key()
    );
    let fix = if w.in_process {
        "hold one lock from the read to the write: a queue or mutex for calls in this process, a lock file for other processes"
    } else {
        "hold a lock file (or other lock that all processes see) from the read to the write"
    };
    let verdict = Verdict::new(message, fix, "B's change is lost");
    Some(if !w.in_process { verdict.severity(Severity::Medium) } else { verdict })
}

/// The file is the image of something in memory: the older image can come last.
fn snapshot(case: &Case<'_>, file: &str) -> Option<Verdict> {
    if !case.w.in_process {
        return None;
    }
    let message = format!(
        "a copy of `{}`, taken earlier, is written to `{file}`: calls that save at the same time write over each other, and an older state can come last",
        case.key()
    );
    Some(Verdict::new(
        message,
        "let one save end before the next takes its copy (a queue, or a lock round both steps), and write by temporary file and rename",
        "the file holds the older state, or parts of both",
    ))
}
