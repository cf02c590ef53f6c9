//! The servers behind the guard.

mod child;

pub use child::{ChildSpec, Shutdown, StartError, Supervised, supervise};
