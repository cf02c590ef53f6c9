//! The SQL reader on arbitrary text.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = toctou_models::sql::looks_like_sql(text);
    let _ = toctou_models::sql::parse(text);
});
