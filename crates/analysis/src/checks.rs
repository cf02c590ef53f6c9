//! Flaws that are not windows: each check looks at the whole program once,
//! when all summaries are there, and adds what it finds to the defects.
//!
//! One file per check, one line each below.

mod at_start;
mod blind_update;
mod broken_lock;
mod changed_underway;
mod close_race;
mod closed_twice;
pub(crate) mod code;
mod data_race;
pub(crate) mod flow;
mod late;
mod leases;
mod lifetime;
mod lock_table;
mod multi_step;
mod no_limit;
mod partial_init;
mod retry;
mod sends;
mod shared_server;
mod threads;
mod transactions;
mod word;

pub(crate) use close_race::is_closing;
pub(crate) use retry::operands;

use crate::context::Context;

type Check = fn(&mut Context<'_, '_>, &[Vec<u32>]);

const CHECKS: &[Check] = &[
    blind_update::check,
    broken_lock::check,
    changed_underway::check,
    close_race::check,
    closed_twice::check,
    data_race::check,
    late::check,
    leases::check,
    lifetime::check,
    multi_step::check,
    no_limit::check,
    partial_init::check,
    retry::check,
    sends::check,
    shared_server::check,
];

pub(crate) fn run(cx: &mut Context<'_, '_>, edges: &[Vec<u32>]) {
    crate::roots::class_entries(cx);
    crate::roots::marked_entries(cx);
    crate::roots::export_entries(cx);
    crate::roots::drop_nameless(cx);
    for check in CHECKS {
        check(cx, edges);
    }
}
