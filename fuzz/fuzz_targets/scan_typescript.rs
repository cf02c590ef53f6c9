#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toctou_frontend_typescript::FRONTEND;
use toctou_models::Models;

static MODELS: LazyLock<Models> = LazyLock::new(|| Models::builtin(FRONTEND.id));

fuzz_target!(|data: &[u8]| {
    toctou_fuzz::scan(&FRONTEND, &MODELS, ["a.ts", "b.ts", "c.ts", "d.ts"], data);
});
