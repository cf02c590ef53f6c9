//! Messages as bytes.
//!
//! A message is looked at, never parsed into types and written again: what the
//! guard does not need to know arrives as it was sent, down to the digits of a
//! number and the order of keys. The few changes that are made (another id, a
//! note in `_meta`) are cut into the bytes.

mod id;
mod lines;
mod message;
mod mirror;
mod reply;
mod scan;
mod splice;
mod sse;
mod unique;

pub use id::Id;
pub use lines::{LineTooLong, Lines};
pub use message::{Fault, Kind, Limits, Message, Params, Parsed, parse};
pub use mirror::{Mirrored, from_header, header_value, mirrored};
pub use reply::{Code, error, error_with, result, tool_error};
pub use scan::{Raw, fields};
pub use splice::{insert_meta, replace};
pub use sse::{Event, EventKind, Events, encode_endpoint, encode_event};
pub use unique::distinct;
