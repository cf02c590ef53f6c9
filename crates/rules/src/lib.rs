//! Windows to findings.
//!
//! A rule is a folder below [`rules`]: its page, and the code that says which
//! windows bear its name. One window gets one name: the first rule in
//! [`classify`]'s order that claims it. What is then counted, hidden or kept
//! for another day is decided by [`suppress`], [`baseline`] and [`score`].

pub mod absent;
pub mod baseline;
mod case;
mod classify;
mod copies;
mod doubt;
mod edit;
mod nested;
pub mod registry;
mod repeat;
pub mod rules;
pub mod score;
mod story;
pub mod suppress;
#[cfg(test)]
mod testing;

pub use case::{Case, Verdict};
pub use classify::findings;
pub use doubt::set_apart;
