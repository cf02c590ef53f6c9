//! Where the state lives. Each backend implements all traits, and passes `tests/conformance`.

pub mod memory;
