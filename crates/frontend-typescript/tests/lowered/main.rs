//! What the front end makes of sources. One program, so that it is linked once.

mod classes;
mod common;
mod flow;
mod hostile;
mod modules;
mod patterns;
mod resolver;
mod values;
