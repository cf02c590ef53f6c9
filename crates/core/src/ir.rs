//! Code IR: what every front end lowers its language to.
//!
//! A small register code. A front end knows syntax and scoping and nothing
//! else: `fs.readFile(p)` becomes a [`Op::GetField`] and a [`Op::Call`]; that
//! it reads a file is said by a library model, and applied by the analysis.
//! So models, value flow and control flow exist once, for all languages.
//!
//! Conventions that front ends keep and the analysis relies on:
//!
//! * Function 0 of a module is its top-level code, run once, at start.
//! * A variable that an inner function also uses (and every top-level
//!   variable of a module) is *captured*: it is only ever read with
//!   [`Op::LoadVar`] and written with [`Op::StoreVar`], by its owner too.
//!   Every other variable is a plain register of its function. Temporaries
//!   are assigned once.
//! * The default of a parameter `p` is `Phi { dst: p, from: [p, default] }` in
//!   the entry block, in languages where callers leave arguments out by rule.
//! * Every name in the IR is interned in the module's own [`Names`].
//! * Exceptions: [`Block::handler`] is where a throw from any instruction in
//!   the block goes; `None` leaves the function. `finally` bodies are lowered
//!   once, end in [`Term::Multi`] with every continuation that can follow,
//!   and so keep the code linear in the size of the source.
//! * Lowering is not recursive on unbounded input: past a nesting limit a
//!   front end emits [`Op::Opaque`] and counts it, it does not overflow.

use crate::names::{Name, Names};
use crate::source::{FileId, SourceFile, Span};

/// A register of one function: parameter, local or temporary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Var(pub u32);

/// A block of one function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub u32);

/// A function. Within a [`Module`] it is local; [`Program::link`] makes it global.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FuncId(pub u32);

/// A class or interface. Local within a module, global after linking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub u32);

/// A module, in path order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleId(pub u32);

/// A captured variable: the function that declares it, and its register there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cell {
    pub owner: FuncId,
    pub var: Var,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Literal {
    Str(Name),
    /// Number text as written.
    Num(Name),
    Bool(bool),
    /// `null`, `undefined`, `None`, `nil`.
    Null,
    /// A regular expression or other literal whose value does not matter here.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinOp {
    /// `==` and `===`
    Eq,
    Ne,
    /// `<`, `<=`, `>`, `>=`
    Compare,
    /// `+` (string parts become [`Op::Concat`])
    Add,
    /// other arithmetic
    Arith,
    /// `in`, `instanceof`, `is` …
    Test,
    /// `a || b`, `a ?? b`, `a && b` whose value is used: either side.
    Either,
}

/// How a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallKind {
    Plain,
    /// `new C(…)`
    New,
    /// `go f()`: runs beside the caller.
    Spawn,
    /// `@f` above a declaration: what comes back stands for the argument, and
    /// of a callee that is not known it is the argument itself.
    Decorate,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Callee {
    /// The value of a register is called.
    Value(Var),
    /// `obj.name(…)`. The receiver is evaluated first.
    Method { obj: Var, name: Name },
    /// The superclass's constructor (`None`) or method.
    Super(Option<Name>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arg {
    pub value: Var,
    /// `...xs` / `*xs`
    pub spread: bool,
    /// `name=value` in languages that have it; of `**value` it is [`KEYWORDS`].
    pub name: Option<Name>,
}

/// The name of an argument whose fields are arguments by name.
pub const KEYWORDS: &str = "**";

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    Name(Name),
    /// `[expr]: …`
    Computed(Var),
    /// `...expr`
    Spread,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    Const {
        dst: Var,
        value: Literal,
    },
    Copy {
        dst: Var,
        src: Var,
    },
    /// A function value (closure). Captures are by reference, through [`Cell`]s.
    Func {
        dst: Var,
        func: FuncId,
    },
    Class {
        dst: Var,
        class: ClassId,
    },
    /// An identifier that is neither declared nor imported: `process`, `JSON`, `fetch`.
    Global {
        dst: Var,
        name: Name,
    },
    LoadVar {
        dst: Var,
        cell: Cell,
    },
    StoreVar {
        cell: Cell,
        value: Var,
    },
    This {
        dst: Var,
    },
    GetField {
        dst: Var,
        obj: Var,
        field: Name,
    },
    SetField {
        obj: Var,
        field: Name,
        value: Var,
    },
    GetIndex {
        dst: Var,
        obj: Var,
        index: Var,
    },
    SetIndex {
        obj: Var,
        index: Var,
        value: Var,
    },
    /// `delete obj.field` (`Ok`) or `delete obj[index]` (`Err`)
    Delete {
        obj: Var,
        key: Result<Name, Var>,
    },
    Object {
        dst: Var,
        fields: Vec<(Key, Var)>,
    },
    Array {
        dst: Var,
        items: Vec<Arg>,
    },
    /// Template literal, or `+` with a string operand: parts in order.
    Concat {
        dst: Var,
        parts: Vec<Var>,
    },
    Binary {
        dst: Var,
        op: BinOp,
        left: Var,
        right: Var,
    },
    /// `!x`. Other unary operators are [`Op::Copy`].
    Not {
        dst: Var,
        src: Var,
    },
    /// One of several values, by the path taken: `c ? a : b`, a value that may
    /// be replaced by its default.
    Phi {
        dst: Var,
        from: Vec<Var>,
    },
    Call {
        dst: Var,
        callee: Callee,
        args: Box<[Arg]>,
        kind: CallKind,
    },
    /// ``tag`…${x}…` ``: `strings` has one more element than `values`.
    TaggedTemplate {
        dst: Var,
        tag: Callee,
        strings: Box<[Name]>,
        values: Box<[Var]>,
    },
    Await {
        dst: Var,
        src: Var,
    },
    /// One element of an iterated value (`for … of`, `for … in` with `keys`).
    Element {
        dst: Var,
        of: Var,
        keys: bool,
    },
    /// Hands a value to the consumer of a generator; somebody else runs.
    YieldValue {
        dst: Var,
        value: Var,
    },
    /// Start and end of a resource's scope: `using`, `with`, a guard's drop.
    Enter {
        dst: Var,
        resource: Var,
    },
    Exit {
        resource: Var,
    },
    /// The caught exception, first instruction of a handler block.
    Catch {
        dst: Var,
    },
    /// Something the front end does not lower; its operands flow into `dst`.
    Opaque {
        dst: Var,
        from: Vec<Var>,
    },
}

/// Half of a program's memory is instructions: what is rare or long is kept elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inst {
    pub op: Op,
    pub span: Span,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    Goto(BlockId),
    Branch {
        cond: Var,
        then: BlockId,
        otherwise: BlockId,
    },
    /// Any of these may follow (end of `finally`, loop over an iterable).
    Multi(Vec<BlockId>),
    Return(Option<Var>),
    Throw(Var),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub insts: Vec<Inst>,
    pub term: Term,
    /// Place of the branch, return or throw.
    pub term_span: Span,
    pub handler: Option<BlockId>,
}

/// Who leaves code by way of a `finally`. Its body is lowered once, so that its blocks do not say
/// who goes where from its end.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Detours {
    /// Blocks that jump to a `finally`, and where they go when it is done; `None`: out of the
    /// function.
    pub jumps: Vec<(BlockId, Option<BlockId>)>,
    /// The blocks of what runs on the way.
    pub meanwhile: Vec<BlockId>,
}

/// A declared type, as far as it names something: `Promise<Store>` is `Store`
/// (promises, nullability and read-only wrappers are peeled off by the front
/// end), `Store[]`, `Array<Store>` and `Set<Store>` have `Store` as element,
/// `Map<K, V>` has `V`. In languages that copy structs, `*T` is called `*` and
/// has `T`: what has no `*` is a value of its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TypeRef {
    /// Dotted name as written: `Store`, `fs.FileHandle`.
    pub name: Name,
    pub element: Option<Box<TypeRef>>,
}

/// What the type arguments of what a class extends are called among its fields:
/// those of `class A extends Agent<Env>` are `Env`'s as `<0>`.
pub fn type_argument(number: u32) -> String {
    format!("<{number}>")
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VarKind {
    Param,
    /// Assigned once, at its declaration.
    Const,
    Let,
    Temp,
    /// Bound by an `import`; see [`Module::imports`].
    Import,
}

#[derive(Clone, Debug)]
pub struct VarInfo {
    /// `None` for temporaries.
    pub name: Option<Name>,
    pub kind: VarKind,
    /// Read and written through [`Op::LoadVar`] and [`Op::StoreVar`] only.
    pub captured: bool,
    /// Stands for an address: whoever has it can set what it was loaded from.
    pub lent: bool,
    /// Holds a [word](Field::word).
    pub word: bool,
    /// Few registers have one.
    pub ty: Option<Box<TypeRef>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FuncKind {
    ModuleInit,
    Function,
    /// Has no `this` of its own.
    Arrow,
    Method,
    StaticMethod,
    Constructor,
    Getter,
    Setter,
}

#[derive(Clone, Debug)]
pub struct Function {
    /// Display name: `createEntities`, `<anonymous>`; without the class.
    pub name: Name,
    pub kind: FuncKind,
    /// The function whose body this one stands in. `None` only for function 0.
    pub parent: Option<FuncId>,
    /// The class it is a member of.
    pub class: Option<ClassId>,
    pub is_async: bool,
    pub is_generator: bool,
    pub exported: bool,
    /// Registers of the parameters in order. A destructured parameter is one
    /// register, taken apart by the first instructions.
    pub params: Vec<Var>,
    pub has_rest: bool,
    pub vars: Vec<VarInfo>,
    /// Block 0 is the entry.
    pub blocks: Vec<Block>,
    pub detours: Detours,
    pub return_type: Option<TypeRef>,
    /// Attributes or decorators, by dotted name.
    pub decorators: Vec<Name>,
    pub span: Span,
    /// Where to point when the function as a whole is meant.
    pub name_span: Span,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: Name,
    pub ty: Option<TypeRef>,
    pub is_static: bool,
    pub read_only: bool,
    /// A number or a truth value, and declared to be one: the processor reads and writes it in
    /// one step, and it leads to nothing else.
    pub word: bool,
    pub span: Span,
}

/// A class or interface. Field initialisers are lowered into the constructor
/// (one is made where there is none); static ones into the enclosing function.
#[derive(Clone, Debug)]
pub struct Class {
    pub name: Name,
    pub is_interface: bool,
    /// `extends`, by the dotted name as written.
    pub extends: Option<Name>,
    pub implements: Vec<Name>,
    pub constructor: Option<FuncId>,
    /// Methods, getters and setters; `static` ones have [`FuncKind::StaticMethod`].
    pub methods: Vec<(Name, FuncId)>,
    pub fields: Vec<Field>,
    /// What is of this type is a [word](Field::word): `type Level int`.
    pub word: bool,
    /// The table whose rows are objects of it, where it says so itself …
    pub table: Option<Name>,
    /// … and columns that no two rows have the same in.
    pub unique: Vec<Name>,
    pub exported: bool,
    pub span: Span,
}

/// What an import specifier leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A module of this program (an index into the modules as given to `link`).
    Module(ModuleId),
    /// A library, by its canonical name (`fs/promises`, `pg`): models know it.
    External(Name),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImportedName {
    /// `import x from`, `module.exports`
    Default,
    /// `import * as x from`, `require(…)`
    Namespace,
    Named(Name),
}

#[derive(Clone, Debug)]
pub struct Import {
    /// Register of function 0 that holds it.
    pub var: Var,
    pub specifier: Name,
    pub name: ImportedName,
    /// Filled by the resolver.
    pub target: Option<Target>,
}

#[derive(Clone, Debug)]
pub enum ExportTarget {
    /// A top-level variable.
    Local(Var),
    /// `export { a as b } from "m"`
    From {
        specifier: Name,
        name: ImportedName,
        target: Option<Target>,
    },
}

#[derive(Clone, Debug)]
pub enum TypeDef {
    Class(ClassId),
    Alias(TypeRef),
    /// Imported under this name: look the name up behind the import.
    Import(Var),
}

/// One source file, lowered. Ids are local to the module until it is linked.
#[derive(Clone, Debug)]
pub struct Module {
    pub file: FileId,
    pub names: Names,
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
    pub imports: Vec<Import>,
    /// Exported name → what it is. `default` is the default export.
    pub exports: Vec<(Name, ExportTarget)>,
    /// `export * from "m"`
    pub star_exports: Vec<(Name, Option<Target>)>,
    /// Type names declared at top level: classes, interfaces, aliases, imports.
    pub types: Vec<(Name, TypeDef)>,
    /// Methods of classes that other modules declare.
    pub extensions: Vec<Extension>,
    /// Suppression comments and other comments that begin with `toctou:`;
    /// text after the comment marker, trimmed.
    pub directives: Vec<Directive>,
    /// Constructs that were not lowered (nesting limit).
    pub opaque: u32,
    /// Nobody outside the program can import it: it has no callers but those that are seen.
    pub closed: bool,
    pub dispatch: Dispatch,
}

/// A method that is declared apart from its class: in another file of a Go
/// package, in a Rust `impl` block elsewhere.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The class, by its name as written.
    pub class: Name,
    pub method: Name,
    pub func: FuncId,
    /// The class, once the resolver knows it; its id is local to that module.
    pub target: Option<(ModuleId, ClassId)>,
}

#[derive(Clone, Debug)]
pub struct Directive {
    pub text: String,
    pub span: Span,
    /// Nothing but white space stands before it on its line.
    pub alone: bool,
}

/// When another activation can run in the middle of this module's functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dispatch {
    /// At an `await` only (one event loop).
    Await,
    /// Between any two instructions (threads, goroutines).
    Anywhere,
    /// Between any two instructions, but no more than so many handlers are under
    /// way at once: with one, handlers meet only the threads that they start.
    Bounded { handlers: u32 },
    /// At an `await`, and beside the event loop there are threads, where others
    /// run between any two instructions. Does a handler that is not
    /// asynchronous have a thread of its own? `None`: that is not known.
    Threads { handlers: Option<bool> },
    /// Between any two instructions, but the compiler lets nobody change what is
    /// shared except through a type made for it: a lock, an atomic, a concurrent
    /// map. Everything else belongs to whoever holds it.
    Guarded,
}

impl Dispatch {
    /// Can others run between any two instructions, and change what is not locked?
    pub fn is_unguarded(self) -> bool {
        matches!(self, Self::Anywhere | Self::Bounded { .. })
    }
}

/// All modules of one scan, linked: ids and names are global.
#[derive(Debug, Default)]
pub struct Program {
    pub names: Names,
    pub files: Vec<SourceFile>,
    pub modules: Vec<LinkedModule>,
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
    /// SQL files that lie beside the sources: tables are made there.
    pub schemas: Vec<String>,
    /// Module of every function and class.
    pub function_module: Vec<ModuleId>,
    pub class_module: Vec<ModuleId>,
}

/// What is left of a [`Module`] after its functions and classes were merged.
#[derive(Debug)]
pub struct LinkedModule {
    pub file: FileId,
    /// Function 0 of the module.
    pub init: FuncId,
    pub imports: Vec<Import>,
    pub exports: Vec<(Name, ExportTarget)>,
    pub star_exports: Vec<(Name, Option<Target>)>,
    pub types: Vec<(Name, TypeDef)>,
    pub directives: Vec<Directive>,
    pub closed: bool,
    pub dispatch: Dispatch,
}

mod dump;
mod link;
mod make;
mod validate;

pub use dump::dump;
pub use validate::validate;
