//! Rust source to code IR.
