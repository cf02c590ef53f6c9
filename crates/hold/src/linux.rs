//! What only Linux can do: namespaces, and calls that wait for an answer.

pub(crate) mod calls;
pub(crate) mod decode;
pub(crate) mod filter;
pub(crate) mod idle;
pub(crate) mod namespaces;
pub(crate) mod probe;
pub(crate) mod sys;
pub(crate) mod tracee;
pub(crate) mod watch;
