//! The format of a model file.
//!
//! ```toml
//! id = "example-store"
//! languages = ["typescript"]
//! modules = ["example-store"]         # as imported, `node:` stripped; "<global>" for built-ins
//!
//! [[call]]
//! names = ["open"]                    # path below the module
//! result = { type = "Store" }         # what comes back
//!
//! [[call]]
//! names = ["Store#load"]              # method of an instance of Store
//! effects = [{ do = "read", resource = "file", key = "arg0" }]
//! result = "read"
//!
//! [[call]]
//! names = ["Store#save"]
//! effects = [{ do = "write", resource = "file", key = "arg0", value = "arg1" }]
//! ```
//!
//! A `new C(…)` of a module's class gives an instance of type `C` without a
//! word in the model. A *place* ([`Place`]) names a value at the call:
//! `arg0`, `arg1.flag`, `last`, `recv`, `recv.arg0` (argument 0 of the call
//! that made the receiver), `result`.
//!
//! # Names
//!
//! | written | meant |
//! |---|---|
//! | `readFile`, `promises.readFile` | a function below the module, by its path |
//! | `default` | the default export, or the module itself, is called: `import f from "m"; f()`, `require("m")()` |
//! | `Pool` | the constructor, or a function of that name |
//! | `Pool#query` | a method of an instance of type `Pool` |
//! | `Stripe#checkout.sessions.create` | a method below fields of an instance |
//! | `PrismaClient#*.findUnique` | `*` is any one field: `prisma.user.findUnique` |
//! | `Limit#()` | the instance itself is called, or used as a template's tag |
//! | `*#tool` | entries only: the method, on a receiver of unknown type |
//!
//! A default import and a namespace import are the same thing here:
//! `fs.readFile` is `readFile` however `fs` was imported.
//!
//! For a tagged template (`` sql`…${x}…` ``) `arg0` is the text with its holes,
//! and `args1` are the values in them.
//!
//! If several models of one library have the same name, the first whose
//! `min-args`, `max-args` and `when` hold is the one that applies. A library
//! that is loaded later replaces a name of an earlier one altogether, so a
//! user's model wins over a built-in.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toctou_core::finding::EntryKind;

/// A model file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Library {
    pub id: String,
    /// Front ends whose programs this model speaks about.
    pub languages: Vec<String>,
    /// Import names that lead to this library. `<global>` is what needs no
    /// import; `fs:promises` is the object `promises` of module `fs`; `fs_err=fs` is a module
    /// that has itself what the first has below `fs`. The types of all of them are those of the first.
    pub modules: Vec<String>,
    /// Libraries, by `id`, whose calls and entries these modules have as well
    /// (`fs-extra` has all of `fs`). What is said here wins; of those named, the first wins.
    #[serde(default)]
    pub extends: Vec<String>,
    /// Other names of a type: `default = "Database"` says that
    /// `import Database from …` is the class `Database`, and so is every
    /// variable declared with it. The value is as in [`ResultModel::Type`].
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// Functions, constructors and methods of known types.
    #[serde(default)]
    pub call: Vec<CallModel>,
    /// Methods, by name alone, of receivers whose type nothing is known about.
    /// Only for names that say clearly what they do; findings that rest on
    /// them are of medium confidence.
    #[serde(default)]
    pub method: Vec<CallModel>,
    /// Builder chains: `db.select().from(t).where(…)`.
    #[serde(default)]
    pub chain: Vec<ChainModel>,
    /// Registrations of handlers.
    #[serde(default)]
    pub entry: Vec<EntryModel>,
    /// Classes whose subclasses are handlers.
    #[serde(default)]
    pub class_entry: Vec<ClassEntryModel>,
    #[serde(default)]
    pub export_entry: Vec<ExportEntryModel>,
    #[serde(default)]
    pub generic: Vec<GenericModel>,
    /// Functions that are handlers because of a decorator, attribute or trait.
    #[serde(default)]
    pub marked_entry: Vec<MarkedEntryModel>,
    /// Types through which shared memory can be changed: locks, atomics,
    /// concurrent maps. What they hold can be reached as if it were they:
    /// a `Mutex<Store>` has the methods and fields of `Store`.
    #[serde(default)]
    pub holders: Vec<String>,
    /// How handlers are run, by the version that the project asks for.
    #[serde(default)]
    pub runs: Vec<RunsModel>,
    /// Classes whose subclasses are tables: an object of one is a row. With a dot before it,
    /// a field that makes its class one: `.__tablename__`.
    #[serde(default)]
    pub records: Vec<String>,
    /// Errors that say that a row is there already: who catches one has seen to the second insert.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Values, and calls that give them, which are others in every process: `process.pid`. No
    /// two processes meet at a file that is named by one.
    #[serde(default)]
    pub own_to_process: Vec<String>,
    /// Going through a table fails if something is added to it or taken from it meanwhile.
    #[serde(default)]
    pub fails_if_changed: bool,
    /// Types whose fields every thread has for itself: `threading.local`.
    #[serde(default)]
    pub own_to_thread: Vec<String>,
}

/// How a package runs handlers, from a version on and until the next that is
/// said. Who imports `package`, or something below it, is meant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunsModel {
    /// The package's name in manifests.
    pub package: String,
    /// The first version, major and minor: `0.33`.
    pub from: String,
    /// Does a handler that is not asynchronous have a thread of its own?
    #[serde(default)]
    pub threads: Option<bool>,
    /// No more handlers than this are under way at once …
    #[serde(default)]
    pub at_once: Option<u32>,
    /// … unless one of these names occurs in the program: another transport.
    #[serde(default)]
    pub unless_named: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CallModel {
    /// Which calls: see the table at the head of this page. In a `method`, bare method names.
    pub names: Vec<String>,
    /// What it does, in order.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// Which arguments it calls, and when.
    #[serde(default)]
    pub callbacks: Vec<Callback>,
    /// What it gives back.
    #[serde(default)]
    pub result: Option<ResultModel>,
    /// The type of what it gives back where `result` says something else about
    /// it: `result = "read"` and `result-type = "Document"`. As in [`ResultModel::Type`].
    #[serde(default)]
    pub result_type: Option<String>,
    /// The model applies only to calls with at least this many arguments.
    #[serde(default)]
    pub min_args: usize,
    /// … and with at most this many.
    #[serde(default)]
    pub max_args: Option<usize>,
    /// The model applies only if all of these hold.
    #[serde(default)]
    pub when: Vec<When>,
    /// For a `method`: no other thing has a method of this name that does
    /// something else, so findings that rest on it keep their confidence.
    #[serde(default)]
    pub sure: bool,
    /// The variables whose addresses stand here are given what the call reads
    /// or is told: `json.Unmarshal(data, &v)`, `rows.Scan(&a, &b)`.
    #[serde(default)]
    pub fills: Option<Place>,
    /// Fields and methods of what comes back that say what kind of thing it is,
    /// or how old, and not whether there is one: `info.IsDir()`.
    #[serde(default)]
    pub asides: Vec<String>,
    /// Those of `asides` that say that it is a folder.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Methods and functions that hold what comes back, a path, against something: a folder
    /// that it has to be in, or that it is no link.
    #[serde(default)]
    pub judged_by: Vec<String>,
    /// For a `method`: only on a receiver that another call has shown to be a
    /// table or collection. So `delete` can mean a row where `findById` stands beside it.
    #[serde(default)]
    pub known_table: bool,
    /// Only where nothing in the syntax undoes it by itself: `cm.__enter__()`, not `with cm`.
    #[serde(default)]
    pub by_hand: bool,
    /// For a `method`: the text itself comes back, with other letters or without the space round it.
    #[serde(default)]
    pub letters: Option<Letters>,
    /// It tells the time, or compares with it. What has an age is there to be made anew.
    #[serde(default)]
    pub clock: Option<Clock>,
    /// What comes back was set by who called the caller, and by no other call: an
    /// asynchronous context's value.
    #[serde(default)]
    pub own_to_call: bool,
    /// Clients are let in by it, and are heard from then on.
    #[serde(default)]
    pub lets_in: Option<Door>,
    /// What comes back is the receiver as it is at every moment, and no copy: `d.items()`.
    #[serde(default)]
    pub view: bool,
    /// It makes a column of a record. Where an argument of one of these names is true, no two rows
    /// have the same in it.
    #[serde(default)]
    pub unique_if: Vec<String>,
    /// It stands in the class of a record, and its arguments are the names of columns: no two rows
    /// have the same in all of them.
    #[serde(default)]
    pub unique_over: bool,
}

/// By which way clients are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// Through a port, of which a machine has one: one process serves all of them.
    Port,
    /// Each by a process that was started for it, or nobody knows how.
    Any,
}

/// What is done to the letters of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Letters {
    Lower,
    Upper,
    Trim,
}

impl Letters {
    pub fn apply(self, text: &str) -> String {
        match self {
            Self::Lower => text.to_lowercase(),
            Self::Upper => text.to_uppercase(),
            Self::Trim => text.trim().to_owned(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// What comes back is the time: `Date.now()`. What is compared with it has an age.
    Now,
    /// What comes back is how old the receiver and the arguments are: `time.Since(t)`.
    Age,
    /// The same, if one of them is the time: `now.Sub(t)`.
    Compare,
}

/// What a call does to a resource.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Effect {
    pub r#do: Do,
    /// Defaults to `lock` for locks, `external` for `send`, `row` for `sql` and transactions.
    #[serde(default)]
    pub resource: Option<toctou_core::finding::ResourceKind>,
    /// Which file, key, lock; for rows the table. A value that is not a
    /// constant is known by the way it is reached (`this.path`, `prisma.user`).
    #[serde(default)]
    pub key: Option<Place>,
    /// For memory and key-value containers: the entry within `key`.
    #[serde(default)]
    pub entry: Option<Place>,
    /// What is written.
    #[serde(default)]
    pub value: Option<Place>,
    /// Where the conditions are: a filter object, a builder's predicate. Its
    /// field names are the columns that the statement itself checks. A constant
    /// string is one column's name, and the next argument what it is compared with.
    #[serde(default)]
    pub filter: Option<Place>,
    /// An update document: `$inc` is atomic, `$set` is not.
    #[serde(default)]
    pub update: Option<Place>,
    /// The SQL text, for `do = "sql"`.
    #[serde(default)]
    pub sql: Option<Place>,
    /// The SQL parameters: an array, or the first of several arguments (`args1`).
    #[serde(default)]
    pub params: Option<Place>,
    /// Only those fields of what stands at `update` are written that were set here: an object
    /// that knows what was changed in it.
    #[serde(default)]
    pub assigned: bool,
    /// How a write treats what is there already.
    #[serde(default)]
    pub mode: Mode,
    /// Memory: no other access that is marked so comes in between, while plain ones can.
    #[serde(default)]
    pub indivisible: bool,
    /// Whom a lock keeps out.
    #[serde(default)]
    pub scope: LockScope,
    /// Others may hold the lock in the same way at the same time: enough for
    /// reading, not for writing.
    #[serde(default)]
    pub shared: bool,
    /// The lock is held only where the result of the call is true.
    #[serde(default)]
    pub tries: bool,
    /// Nobody waits for the lock: who does not get it at once is refused.
    #[serde(default)]
    pub at_once: bool,
    /// The callback runs once in the life of the lock, and everybody waits for its end.
    #[serde(default)]
    pub once: bool,
    /// The callback that runs under the lock or in the transaction.
    #[serde(default)]
    pub callback: Option<Place>,
    /// What is read is also locked until the transaction ends, if anything
    /// stands at this place and is not `false`: `{ lock: true }` of an ORM.
    #[serde(default)]
    pub locking: Option<Place>,
    /// The transaction sees and keeps a serial order (SQLite, SERIALIZABLE).
    /// With `do = "sql"`: so do transactions that the text begins.
    #[serde(default)]
    pub serializable: bool,
    /// With `do = "sql"`: a statement that writes begins a transaction, which
    /// lasts until it is committed or rolled back.
    #[serde(default)]
    pub begins: bool,
    /// With `do = "sql"`: a transaction that the text begins is the receiver's. What other
    /// calls run on the same receiver is in it as well, so it keeps other processes out, and
    /// other calls only if the receiver is the call's own.
    #[serde(default)]
    pub one_connection: bool,
    /// The lock, or the entry that is written, ends by itself after a time,
    /// whether or not the holder is done.
    #[serde(default)]
    pub lease: bool,
    /// Everything under the lock counts as many may hold it at once: `p-limit(5)`.
    /// Names the place of the number; a lock only if it is 1.
    #[serde(default)]
    pub permits: Option<Place>,
    /// Sends carry an idempotency key here.
    #[serde(default)]
    pub idempotency: Vec<Place>,
    /// … or are given one beforehand, by a method of one of these names:
    /// `params.SetIdempotencyKey(key)`.
    #[serde(default)]
    pub idempotency_by: Vec<String>,
    /// With `do = "use"`: what many at once cost, if they can be at once (what
    /// blocks the process is one at a time).
    #[serde(default)]
    pub cost: Option<Cost>,
    /// `key` serves one client at a time: doing it for a second one takes the
    /// first one's place, or mixes the two up.
    #[serde(default)]
    pub takes_over: bool,
    /// Afterwards a path can lead elsewhere: links are made or brought along,
    /// or a command is run that can make some.
    #[serde(default)]
    pub relinks: bool,
    /// The effect happens only if all of these hold.
    #[serde(default)]
    pub when: Vec<When>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Do {
    /// Content is read.
    Read,
    /// Existence or metadata is read.
    Check,
    /// The list at `key` in memory is asked for one entry, whichever is looked for. That says
    /// something to the function that asks, and nothing to its callers.
    Search,
    /// A path is resolved or tested for what it points at (`realpath`, `lstat`).
    Resolve,
    /// A directory or table is listed.
    List,
    Write,
    /// Adds at the end; never loses what others added.
    Append,
    Delete,
    /// Two effects in one: removes `key`, replaces `value` (the destination).
    Rename,
    /// Makes a directory or other thing that may exist already.
    Ensure,
    Open,
    Close,
    /// Takes a lock. With `callback`, holds it while the callback runs; without,
    /// until the result is called, or its `release`/`unlock` is, or an `unlock` on the same key.
    Lock,
    Unlock,
    /// Starts a transaction (with `callback`: runs it in one).
    Begin,
    Commit,
    Rollback,
    /// A statement in SQL text decides what happens.
    Sql,
    /// Payment, mail, order: cannot be taken back.
    Send,
    /// Reaches something costly or limited: a pool, a paid API, a subprocess.
    Use,
    /// Counts work in that somebody may wait for: `wg.Add(1)`.
    Enroll,
    /// Waits until everything that was counted in under the same key is done.
    Join,
    /// Changes what stands at `key` in memory, and nothing in it keeps threads apart.
    Change,
    /// Asks how many entries the table at `key` in memory has, and nothing in it keeps threads apart.
    Count,
    /// Reads all that the object at `key` in memory holds, to write it out.
    Survey,
    /// A message of a client comes in, one after the other. What is called with it is a
    /// handler, if the code knows the word in `key`: `'tools/call'`.
    Receive,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// A request to somebody who bounds his callers himself.
    Low,
    /// A subprocess, a paid API: somebody here has to bound it.
    High,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    #[default]
    Blind,
    /// Computed from the current value in one step (`INCR`, `$inc`).
    Atomic,
    /// Fails or does nothing unless `filter` matches.
    Conditional,
    /// Fails if it is there already (`wx`, `O_EXCL`, `SET NX`).
    Exclusive,
    /// Atomic replacement of the whole (temp and rename): not torn, can be lost.
    Replace,
    /// Inserts or updates in one statement.
    Upsert,
    /// The library reads, changes and writes back, and keeps its callers in one process
    /// apart, but not processes: an embedded store that one process may have open.
    Rewrite,
}

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LockScope {
    /// Other calls in this process.
    #[default]
    Process,
    /// Other processes too.
    Host,
}

/// A value at a call, written `base` or `base.field.field`.
///
/// | base | the value |
/// |---|---|
/// | `arg0`, `arg1` … | an argument |
/// | `arg1=mode` | argument 1, or the one that is passed by the name `mode`; `arg_=mode` by its name only |
/// | `args1` | the arguments from 1 on, as an array |
/// | `last` | the last argument |
/// | `recv` | the receiver: `r` in `r.f(…)`; for `T#()` the thing called |
/// | `recv.arg0` | an argument of the call that made the receiver |
/// | `recv.recv` | the receiver of the call that made the receiver |
/// | `result` | what the call gives back |
/// | `where.arg0` | chains: an argument of the step `where` |
/// | `start` | chains: the receiver of the first named step |
/// | `start.arg0` | chains: an argument of the call that made it (`knex("t")`) |
/// | `'text'` | the constant |
///
/// Fields follow: `arg2.flag`, `recv.arg0.concurrency`, `recv.fd`. After an argument, the
/// fields `arg0` and `recv` are those of the call that made it: `json.load(f)` reads `arg0.arg0`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Place(pub String);

/// A test on a value at the call. Of `is`, `contains`, `present`, `record`, `row`, `fresh`, `imports` and `texts`, those given must all hold.
/// A value that is not known fails `is` and `contains`, and so passes them with `not`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    /// Not needed for `imports` and `texts`, which are about the program.
    #[serde(default = "receiver")]
    pub place: Place,
    /// The value is a constant that is one of these (numbers and booleans as text).
    #[serde(default)]
    pub is: Vec<String>,
    /// The value is a constant string (or a symbolic constant's name) that contains one of these.
    #[serde(default)]
    pub contains: Vec<String>,
    /// The value is (`true`) or is not (`false`) seen to be there: an argument that
    /// is passed, a field that the object has. A field of a value that is not known counts as absent.
    #[serde(default)]
    pub present: Option<bool>,
    /// The value is an object of one of the `records`, made here.
    #[serde(default)]
    pub record: bool,
    /// The value is a row of a table: an object of a class that says which (`table_name`), or what
    /// was read from one.
    #[serde(default)]
    pub row: bool,
    /// The value is another one at every call, or of one: a temporary file, and its name.
    #[serde(default)]
    pub fresh: bool,
    /// The program imports one of these modules, or something below one: which database stands
    /// behind an interface that many have. `module:Name` is one thing of a module.
    #[serde(default)]
    pub imports: Vec<String>,
    /// The program has a text that begins with one of these: an address by which a database is
    /// reached (`sqlite:`).
    #[serde(default)]
    pub texts: Vec<String>,
    /// The test must fail.
    #[serde(default)]
    pub not: bool,
}

fn receiver() -> Place {
    Place("recv".to_owned())
}

/// A function argument that the library calls. If what stands at `place` is
/// not a function, there is no callback: a promise-returning call and its
/// callback form can share a model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Callback {
    /// Where the function is. An object or array there: each function in it.
    pub place: Place,
    #[serde(default)]
    pub time: CallbackTime,
    /// What each parameter is given.
    #[serde(default)]
    pub params: Vec<Param>,
    /// Arguments of the call that are handed on to the callback, in order
    /// and after those in `params`: `setTimeout(f, ms, a, b)` has `args = "args2"`.
    #[serde(default)]
    pub args: Option<Place>,
    /// It runs in a thread of its own, where others run between any two instructions.
    #[serde(default)]
    pub thread: bool,
    /// What the callback returns is (part of) the result of the call.
    #[serde(default)]
    pub returns: bool,
    /// It is called only when the receiver failed (`catch`).
    #[serde(default)]
    pub on_error: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallbackTime {
    /// During the call.
    #[default]
    Now,
    /// After the call's work is done, somebody else may have run.
    After,
    /// Not by this call: an event or a timer calls it, any number of times.
    Later,
    /// Once, from now on, beside the caller, who goes on: a task or a thread is started with it.
    Beside,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Param {
    /// Nothing that matters (`err`, an index).
    None,
    /// What the call's effect read.
    Result,
    /// The receiver itself (the promise's value).
    Receiver,
    /// One element of the receiver.
    Element,
    /// A function; what it is called with is the result of the call (`resolve`).
    Resolve,
    /// A function; calling it makes the call fail (`reject`).
    Reject,
    /// The transaction or client that the callback works with.
    Client,
}

/// What a call gives back. Default: an unknown value that depends on all arguments.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ResultModel {
    /// `"read"`: what the effect read. `"fresh"`: another value at every call
    /// (uuid, temp path, time). `"join"`: path parts joined. `"below"`: the same, with the
    /// receiver as first part. `"recv"`: the receiver; of a call that takes a lock it is the
    /// guard, and stands for what the lock protects. `"copy"`: a copy of the receiver.
    /// `"either"`: the receiver, or argument 0 where it holds nothing.
    /// `"returned"`: what the callback gave back.
    /// `"element"`: one element of the receiver. `"array"`: the arguments' or
    /// argument's elements, as an array. `"none"`: depends on nothing. `"argN"`: that argument.
    /// `"made"`: known by what it was made with, two of the same arguments are one.
    /// `"format"`: the text of argument 0, with the other arguments where it has `%s`, `%d` …
    /// `"added"`: the elements of argument 0, and behind them the other arguments.
    /// `"entries"`: the receiver, to be gone through with the names of what it holds.
    /// `"member"`: a field or method of argument 0, by a name that is only known when it runs;
    /// `"members"`: a list of all of them, each with its name.
    /// `"values"`: a list of what the fields of argument 0 hold. `"pairs"`: a list of pairs, each
    /// a field's name and what it holds. `"table"`: a table made of a list of such pairs.
    /// `"makes"`: a table that has argument 0 make what is not there.
    /// `"published"`: what the effect read, put there whole for others to look at.
    Word(String),
    Type {
        /// A type of this library (`Pool`), of a built-in (`<global>:Map`), or
        /// of another library by module (`pg:Client`). Its methods are `Pool#…`.
        r#type: String,
    },
}

/// A builder chain, recognised by its steps wherever it starts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChainModel {
    /// Steps that must all be in the chain, in this order, e.g. `["select", "from"]`;
    /// others may stand between, before and after. Without any, the chain begins with a
    /// class of the program that says which table it stands for.
    #[serde(default)]
    pub steps: Vec<String>,
    /// Steps that run what was built. With one of them the chain ends: what is called then is
    /// called on what came back. Where none is named, the last step is the last one there is.
    #[serde(default)]
    pub run_by: Vec<String>,
    /// Steps that must not be in it: `from(t).insert(v).select()` is no query.
    #[serde(default)]
    pub without: Vec<String>,
    /// Effects; places are `step.arg0`, e.g. `from.arg0`, `where.arg0`; `start` is
    /// the receiver of the first named step.
    pub effects: Vec<Effect>,
    /// The chain only builds a statement. It is run where it is the first argument of a call.
    #[serde(default)]
    pub built: bool,
    /// Steps that, if present, narrow the statement, beside `filter`: by a predicate, an
    /// object, or a column's name and a value (`eq("id", id)`, `andWhere({ … })`).
    #[serde(default)]
    pub filter_steps: Vec<String>,
    /// Steps that say what is written, beside `update`: a column and its value, or one or more
    /// assignments (`set(column.eq(value))`, `col_expr(column, value)`).
    #[serde(default)]
    pub set_steps: Vec<String>,
    /// Steps that, if present, make the statement exclusive (`onConflictDoNothing`) …
    #[serde(default)]
    pub exclusive_steps: Vec<String>,
    /// … hand back what was changed (`returning`) …
    #[serde(default)]
    pub returning_steps: Vec<String>,
    /// … or lock what is read (`for`, `forUpdate`).
    #[serde(default)]
    pub locking_steps: Vec<String>,
}

/// A call that registers a handler.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EntryModel {
    /// As in [`CallModel::names`]; `*#tool` matches the method on a receiver of unknown type.
    pub names: Vec<String>,
    pub kind: EntryKind,
    /// What the client calls it by.
    #[serde(default)]
    pub name: Option<Place>,
    /// The handler function (or functions: an array or object of them). If there
    /// is no function at this place, the call registers nothing.
    pub handler: Place,
    #[serde(default)]
    pub min_args: usize,
    #[serde(default)]
    pub when: Vec<When>,
    /// One handler serves all tools; the name is tested inside (`switch`).
    #[serde(default)]
    pub dispatches: bool,
    /// A handler that is not asynchronous runs in a thread of its own. Where
    /// this is not said, the dispatch of the program's module decides.
    #[serde(default)]
    pub thread: bool,
    /// The call only makes a handler of the function, and the call's own model says what comes
    /// back. Who registers it then, and by which name, is another matter.
    #[serde(default)]
    pub converts: bool,
    /// It is such a handler only if the code behind it knows this word: whoever reads lines from
    /// standard input serves clients if it knows `tools/call`. What else the call registers, it
    /// registers all the same.
    #[serde(default)]
    pub word: Option<String>,
}

/// A class of the library that the program extends: the methods named are the handlers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClassEntryModel {
    /// The base classes, by path below the module: `MCPTool`. `*` is any class that
    /// has all the methods, in languages where nobody says what it extends.
    pub names: Vec<String>,
    pub kind: EntryKind,
    /// The methods that clients reach.
    pub methods: Vec<String>,
    /// The field that holds what the client calls it by.
    #[serde(default)]
    pub name_field: Option<String>,
}

/// An object that a module exports and whose methods a runtime calls: `export default { fetch }`.
/// Without methods, a function that a module exports, if it imports the library: a file is a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExportEntryModel {
    /// The exports: `default`.
    pub names: Vec<String>,
    pub kind: EntryKind,
    /// The methods that clients reach.
    #[serde(default)]
    pub methods: Vec<String>,
}

/// A class of the library whose fields are of the types that it is given: `Agent<Env>`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GenericModel {
    /// By path below the module: `McpAgent`.
    pub names: Vec<String>,
    /// Which field is of the type at which place, from 0.
    pub fields: BTreeMap<String, u32>,
}

/// A decorator, attribute or trait of the library that makes a function of the program a handler.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MarkedEntryModel {
    /// By path below the module: `tool`, `ServerHandler`.
    pub names: Vec<String>,
    pub kind: EntryKind,
    /// Only functions of these names: of a trait, those that clients reach.
    #[serde(default)]
    pub methods: Vec<String>,
    /// One handler serves all tools; the name is tested inside.
    #[serde(default)]
    pub dispatches: bool,
}
