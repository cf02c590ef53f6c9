//! What the front end makes of sources. One program, so that it is linked once.

mod common;
mod hostile;
mod lowering;
mod resolver;
