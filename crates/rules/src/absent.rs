//! Why a rule has no example in a language: because the race cannot be written in it, or because
//! nobody has shown yet that it is found there. The two are told apart, so that what is missing
//! can be seen.

/// The languages of examples, by the word behind the backticks.
pub const LANGUAGES: &[(&str, &str)] = &[
    ("ts", "TypeScript"),
    ("py", "Python"),
    ("go", "Go"),
    ("rs", "Rust"),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// It cannot be there, for this reason.
    Cannot(&'static str),
    NotFoundYet,
}

use Absence::{Cannot, NotFoundYet};

const SESSIONS: &str = "the server object keeps no connection: each session has an object of its \
                        own, which the SDK makes for it";

/// Rule, language, and why it has no example there.
pub const ABSENT: &[(&str, &str, Absence)] = &[
    ("close-races-call", "rs", NotFoundYet),
    (
        "data-race",
        "ts",
        Cannot(
            "the handlers of a process run on one thread, and objects are not shared with others",
        ),
    ),
    (
        "data-race",
        "rs",
        Cannot("the compiler refuses it outside of `unsafe`"),
    ),
    (
        "leak-on-partial-init",
        "rs",
        Cannot("what was opened is dropped on every way out, an error's too, and closed by that"),
    ),
    (
        "lock-not-released-on-error",
        "rs",
        Cannot("a guard is dropped on every way out, an error's too, and gives the lock back"),
    ),
    ("process-local-limit", "go", NotFoundYet),
    ("process-local-limit", "rs", NotFoundYet),
    ("shared-server-across-requests", "py", Cannot(SESSIONS)),
    ("shared-server-across-requests", "go", Cannot(SESSIONS)),
    ("shared-server-across-requests", "rs", Cannot(SESSIONS)),
];

/// Why a rule has no example in a language, if it has none.
pub fn absence(rule: &str, language: &str) -> Option<Absence> {
    ABSENT
        .iter()
        .find(|(r, l, _)| *r == rule && *l == language)
        .map(|(_, _, why)| *why)
}
