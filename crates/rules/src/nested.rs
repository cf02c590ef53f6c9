//! Windows inside of windows.
//!
//! A caller of two functions that each read, change and write a file has a window from the first
//! one's read to the second one's write. It is no other than the second one's own. But what the
//! caller has read, changed and handed on is as old as its own read, however fresh the rest is that
//! the callee puts it into.

use rustc_hash::FxHashMap;
use toctou_analysis::Spot;
use toctou_core::Finding;
use toctou_core::finding::Location;
use toctou_core::ir::FuncId;
use toctou_core::rule::{Persona, Scope};

use crate::case::Case;
use crate::classify::location;
use crate::rules::{file_check_then_act, file_read_modify_write};

/// By which calls a window's two ends are reached.
pub(crate) struct Way {
    persona: Persona,
    scopes: Vec<Scope>,
    /// What is written is made from what was read.
    data: bool,
    /// A file is read, changed and written by one function.
    changes_file: bool,
    /// A file was read or looked for, and that decides what is written.
    trusts_file: bool,
    /// The caller itself has changed what it read, and hands it on.
    handed_on: bool,
    location: Location,
    read_in: FuncId,
    write: Option<Spot>,
    /// The calls below the place that is reported.
    below: Vec<Location>,
}

impl Way {
    pub(crate) fn of(case: &Case<'_>, finding: &Finding) -> Self {
        let (read, write) = (&case.w.read, &case.w.write);
        let files = [
            file_read_modify_write::META.id,
            file_check_then_act::META.id,
        ];
        Self {
            persona: finding.persona,
            scopes: finding.scopes.clone(),
            data: case.w.data,
            changes_file: finding.rule == file_read_modify_write::META.id && write.len() == 1,
            trusts_file: files.contains(&finding.rule.as_str()),
            handed_on: case.w.handed_back && !case.w.through_memory,
            location: finding.location.clone(),
            read_in: read.last().map_or(case.w.meet, |spot| spot.func),
            write: write.last().copied(),
            below: write
                .iter()
                .skip(1)
                .map(|spot| location(case.program, *spot))
                .collect(),
        }
    }

    /// Who calls twice what reads, changes and writes each time has the inner window
    /// twice, and no other: the second reads anew. So it is with a file that the callee reads by
    /// itself, whoever has looked at it before.
    fn is_inside(&self, outer: &Self) -> bool {
        let anew = self.changes_file && outer.trusts_file;
        !outer.handed_on
            && self.write == outer.write
            && (self.read_in == outer.read_in || anew)
            && self.persona <= outer.persona
            && (self.data || outer.scopes.iter().all(|scope| self.scopes.contains(scope)))
            && outer.below.contains(&self.location)
    }
}

pub(crate) fn drop_outer(list: &mut Vec<(Finding, String)>, ways: &[Way]) {
    let mut inside: FxHashMap<Option<Spot>, Vec<&Way>> = FxHashMap::default();
    for way in ways {
        inside.entry(way.write).or_default().push(way);
    }
    let mut at = ways.iter();
    list.retain(|_| {
        at.next().is_none_or(|outer| {
            let same = &inside[&outer.write];
            !same.iter().any(|inner| inner.is_inside(outer))
        })
    });
}
