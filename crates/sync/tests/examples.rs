//! Every example runs: the loss is there without the primitive, and gone with it.
// Each example is a program of its own, with a copy of what they have in common.
#![allow(clippy::unwrap_used, clippy::duplicate_mod, dead_code)]

#[path = "../examples/cached_balance.rs"]
mod cached_balance;
#[path = "../examples/close_manager.rs"]
mod close_manager;
#[path = "../examples/concurrency_limit.rs"]
mod concurrency_limit;
#[path = "../examples/debit_balance.rs"]
mod debit_balance;
#[path = "../examples/delete_file.rs"]
mod delete_file;
#[path = "../examples/notes_server.rs"]
mod notes_server;
#[path = "../examples/partial_init.rs"]
mod partial_init;
#[path = "../examples/process_order.rs"]
mod process_order;
#[path = "../examples/process_user_file.rs"]
mod process_user_file;
#[path = "../examples/rate_limit.rs"]
mod rate_limit;
#[path = "../examples/save_report.rs"]
mod save_report;
#[path = "../examples/session_usage.rs"]
mod session_usage;
#[path = "../examples/spend_credits.rs"]
mod spend_credits;
#[path = "../examples/transfer_credits.rs"]
mod transfer_credits;
#[path = "../examples/update_document.rs"]
mod update_document;

macro_rules! examples {
    ($($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            crate::$name::example().await.unwrap();
        })*

        #[test]
        fn all_are_listed() {
            let listed = [$(stringify!($name)),*];
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
            for entry in std::fs::read_dir(folder).unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                let Some(name) = file.strip_suffix(".rs") else { continue };
                assert!(listed.contains(&name), "{name} is not run");
            }
        }
    };
}

mod run {
    examples! {
        cached_balance
        close_manager
        concurrency_limit
        debit_balance
        delete_file
        notes_server
        partial_init
        process_order
        process_user_file
        rate_limit
        save_report
        session_usage
        spend_credits
        transfer_credits
        update_document
    }
}
