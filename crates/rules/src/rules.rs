//! The rules, one folder each: `mod.rs` classifies, `page.md` explains.
//!
//! This is the one list of them. The page is the documentation, the `explain`
//! text, the SARIF help and a test. Order is alphabetical, here and in every
//! table made from it.

use toctou_core::rule::RuleMeta;

macro_rules! rules {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Facts about every rule, by id.
        pub static ALL: &[RuleMeta] = &[$($module::META),*];
    };
}

rules! {
    auth_check_then_act,
    broken_lock,
    close_races_call,
    data_race,
    db_check_then_write,
    db_lost_update,
    file_check_then_act,
    file_read_modify_write,
    leak_on_partial_init,
    lease_expires_in_use,
    lock_not_released_on_error,
    lock_scope_too_narrow,
    memory_check_then_act,
    multi_step_without_transaction,
    no_concurrency_limit,
    non_atomic_rate_limit,
    path_check_then_open,
    process_local_limit,
    process_lock_on_shared_resource,
    retry_without_bound_or_jitter,
    session_lost_update,
    shared_server_across_requests,
    shared_temp_path,
    side_effect_without_idempotency_key,
    single_use_check_then_consume,
    unversioned_update,
}

type JudgeDefect =
    fn(&toctou_core::ir::Program, &toctou_analysis::Defect) -> Option<crate::case::Verdict>;

/// Rules about flaws that are not windows: the first that claims one names it.
pub(crate) const DEFECTS: &[(&RuleMeta, JudgeDefect)] = &[
    (&broken_lock::META, broken_lock::of_defect),
    (&close_races_call::META, close_races_call::of_defect),
    (&data_race::META, data_race::of_defect),
    (&leak_on_partial_init::META, leak_on_partial_init::of_defect),
    (&lease_expires_in_use::META, lease_expires_in_use::of_defect),
    (
        &lock_not_released_on_error::META,
        lock_not_released_on_error::of_defect,
    ),
    (
        &multi_step_without_transaction::META,
        multi_step_without_transaction::of_defect,
    ),
    (&no_concurrency_limit::META, no_concurrency_limit::of_defect),
    (
        &retry_without_bound_or_jitter::META,
        retry_without_bound_or_jitter::of_defect,
    ),
    (
        &shared_server_across_requests::META,
        shared_server_across_requests::of_defect,
    ),
    (
        &side_effect_without_idempotency_key::META,
        side_effect_without_idempotency_key::of_defect,
    ),
    (&unversioned_update::META, unversioned_update::of_defect),
];

pub(crate) fn of_defect(
    program: &toctou_core::ir::Program,
    defect: &toctou_analysis::Defect,
) -> Option<(&'static RuleMeta, crate::case::Verdict)> {
    DEFECTS
        .iter()
        .find_map(|(meta, judge)| Some((*meta, judge(program, defect)?)))
}
