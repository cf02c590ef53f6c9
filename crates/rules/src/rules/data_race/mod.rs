//! `data-race`: shared memory is used by several threads without synchronisation.

use toctou_analysis::{Defect, DefectKind};
use toctou_core::ir::Program;
use toctou_core::rule::{Persona, RuleMeta, Severity};

use crate::case::Verdict;

pub const META: RuleMeta = RuleMeta {
    id: "data-race",
    summary: "Shared memory is used by several threads without synchronisation",
    severity: Severity::High,
    persona: Persona::Regular,
    points: 18,
    cwe: 366,
    since: "0.1.0",
    page: include_str!("page.md"),
};

pub(crate) fn of_defect(program: &Program, defect: &Defect) -> Option<Verdict> {
    let function = crate::classify::display_function(program, defect.spot.func);
    if defect.kind == DefectKind::ChangedUnderway {
        return Some(changed_underway(&function, defect));
    }
    if defect.kind != DefectKind::DataRace {
        return None;
    }
    let verdict = Verdict::new(
        format!(
            "`{function}` uses `{}` with no lock that every other use of it holds: two threads use it at once",
            defect.key
        ),
        "hold one mutex over each use of it, and over a read and the write that depends on it together",
        "one thread sees half of what the other does",
    );
    Some(if defect.duck {
        verdict.persona(Persona::Pedantic)
    } else {
        verdict
    })
}

fn changed_underway(function: &str, defect: &Defect) -> Verdict {
    let verdict = Verdict::new(
        format!(
            "`{function}` goes through `{}` while another call can add to it or take from it: the next step fails then",
            defect.key
        ),
        "go through a copy that is made in one step (`list(d.items())`), or hold one lock over the loop and over each change",
        "the loop fails: the table has changed its size",
    );
    if defect.duck { verdict.persona(Persona::Pedantic) } else { verdict }
}
