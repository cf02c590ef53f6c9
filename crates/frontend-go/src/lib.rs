//! Go source to code IR.
