//! The binary as its users run it. One program, so that it is linked once.

mod common;
mod config;
mod determinism;
mod fix;
mod generated;
mod guard;
mod hostile;
mod known_wrong;
mod pages;
mod programs;
mod scan;
mod serve;
mod serve_postgres;
#[path = "../../../source/tests/common/mod.rs"]
mod server;
mod shapes;
mod shapes_doubts;
mod shapes_go;
mod shapes_go_rows;
mod shapes_go_shared;
mod shapes_kept;
mod shapes_locks;
mod shapes_locks_languages;
mod shapes_looks;
mod shapes_python;
mod shapes_python_carried;
mod shapes_python_given;
mod shapes_python_rows;
mod shapes_python_stores;
mod shapes_python_values;
mod shapes_real;
mod shapes_rust;
mod shapes_rust_stores;
mod shapes_settled;
mod shapes_started;
mod shapes_statements;
mod shapes_values;
mod shapes_workers;
mod since;
mod sources;
#[path = "../../../sync/tests/support/mod.rs"]
mod support;
mod testbed;
mod usage;
mod web;
