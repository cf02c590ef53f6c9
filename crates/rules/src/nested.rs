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

/// By which calls a window's two ends are reached.
pub(crate) struct Way {
    persona: Persona,
    scopes: Vec<Scope>,
    /// What is written is made from what was read.
    data: bool,
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
        Self {
            persona: finding.persona,
            scopes: finding.scopes.clone(),
            data: case.w.data,
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
    /// twice, and no other: the second reads anew.
    fn is_inside(&self, outer: &Self) -> bool {
        !outer.handed_on
            && self.write == outer.write
            && self.read_in == outer.read_in
            && self.persona <= outer.persona
            && (self.data || outer.scopes.iter().all(|scope| self.scopes.contains(scope)))
            && outer.below.contains(&self.location)
    }
}

pub(crate) fn drop_outer(list: &mut Vec<(Finding, String)>, ways: &[Way]) {
    let mut inside: FxHashMap<(Option<Spot>, FuncId), Vec<&Way>> = FxHashMap::default();
    for way in ways {
        let same = inside.entry((way.write, way.read_in)).or_default();
        same.push(way);
    }
    let mut at = ways.iter();
    list.retain(|_| {
        at.next().is_none_or(|outer| {
            let same = &inside[&(outer.write, outer.read_in)];
            !same.iter().any(|inner| inner.is_inside(outer))
        })
    });
}
