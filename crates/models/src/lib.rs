//! What libraries do, as data.
//!
//! One TOML file per library says which of its calls read, check, write, lock
//! or send what, where the tool handlers are registered, and which arguments
//! are called back. The analysis has no library's name in it. A user's config
//! adds models in the same format.

mod dispatch;
mod load;
mod place;
pub mod prisma;
mod schema;
pub mod sql;

pub use dispatch::Asked;
pub use load::{
    CallModelRef, ChainModelRef, ClassEntryModelRef, EntryModelRef, LoadError, MarkedEntryModelRef,
    ModelRef, Models, TypeName,
};
pub use place::{PlaceBase, PlaceError, PlaceExpr};
pub use schema::{
    CallModel, Callback, CallbackTime, ChainModel, ClassEntryModel, Clock, Cost, Do, Door, Effect,
    EntryModel, ExportEntryModel, Letters, Library, LockScope, MarkedEntryModel, Mode, Param,
    Place, ResultModel, RunsModel, When,
};
