//! A window as a rule sees it, and what a rule says about it.

use toctou_analysis::{Act, Analysis, Mode, Reach, ReachedWindow, Spot};
use toctou_core::finding::{EntryKind, ResourceKind};
use toctou_core::frontend::Remedy;
use toctou_core::ir::{FuncId, Program};
use toctou_core::rule::{Confidence, Persona, Severity};
use toctou_core::source::Span;

/// A window with the program round it.
pub struct Case<'a> {
    pub program: &'a Program,
    pub analysis: &'a Analysis,
    pub w: &'a ReachedWindow,
}

/// What a rule makes of a window. Unset fields are the rule's defaults.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub severity: Option<Severity>,
    pub persona: Option<Persona>,
    pub confidence: Option<Confidence>,
    /// A sentence that says what goes wrong here.
    pub message: String,
    pub fix: String,
    /// What the last step of the story is: "B's change is lost".
    pub outcome: String,
    /// A change that is safe to make.
    pub mend: Option<Mend>,
}

/// What is to be changed in the file of a function.
#[derive(Clone, Debug)]
pub struct Mend {
    pub title: &'static str,
    pub func: FuncId,
    pub how: How,
}

#[derive(Clone, Debug)]
pub enum How {
    /// The language knows how it is written.
    Ask(Remedy),
    Change(Vec<(Span, String)>),
}

impl Verdict {
    pub fn new(message: String, fix: &str, outcome: &str) -> Self {
        Self {
            message,
            fix: fix.to_owned(),
            outcome: outcome.to_owned(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn persona(mut self, persona: Persona) -> Self {
        self.persona = Some(persona);
        self
    }

    #[must_use]
    pub fn mend(mut self, mend: Option<Mend>) -> Self {
        self.mend = mend;
        self
    }

    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }
}

impl Case<'_> {
    pub fn is(&self, kind: ResourceKind) -> bool {
        self.w.kind == kind
    }

    /// A store with rows or keys: a database, Redis, a KV service.
    pub fn is_store(&self) -> bool {
        matches!(self.w.kind, ResourceKind::Row | ResourceKind::Kv)
    }

    /// What to do about it, or about the transaction that was to do it.
    pub fn fix(&self, otherwise: &'static str) -> &'static str {
        if self.w.shared_connection {
            "the calls of this process share the connection, and so each other's transaction: give each a connection of its own, or a mutex round all from BEGIN to COMMIT"
        } else {
            otherwise
        }
    }

    pub fn is_open(&self) -> bool {
        self.w.in_process || self.w.cross_process
    }

    pub fn deletes(&self) -> bool {
        self.w.write_act == Act::Delete
    }

    pub fn inserts(&self) -> bool {
        self.w.write_row.as_ref().is_some_and(|r| r.insert)
    }

    /// The function where read and write meet.
    pub fn function(&self) -> String {
        self.program.qualified_name(self.w.meet)
    }

    pub fn key(&self) -> &str {
        &self.w.key
    }

    /// Everything that names the subject: resource, columns, functions on the way.
    pub fn names(&self) -> Vec<String> {
        let mut out = vec![self.w.key.clone()];
        out.extend(self.w.checked.iter().cloned());
        if let Some(row) = &self.w.write_row {
            out.extend(row.columns.iter().cloned());
        }
        if let Some(row) = &self.w.read_row {
            out.extend(row.columns.iter().cloned());
        }
        out.push(self.function());
        out
    }

    /// Does one of the words occur in the resource's own name or in what was checked?
    pub fn subject_mentions(&self, words: &[&str]) -> bool {
        std::iter::once(&self.w.key)
            .chain(&self.w.checked)
            .any(|n| mentions(n, words))
    }

    pub fn checked_mentions(&self, words: &[&str]) -> bool {
        self.w.checked.iter().any(|n| mentions(n, words))
    }

    pub fn function_mentions(&self, words: &[&str]) -> bool {
        self.w
            .read
            .iter()
            .chain(&self.w.write)
            .any(|s| mentions(&self.program.qualified_name(s.func), words))
    }

    /// A count is compared, and the function that does it calls that a limit.
    pub fn speaks_of_a_limit(&self) -> bool {
        // … where it is compared: a long function speaks of many things.
        let (before, after) = (400, 1_600);
        let function = self.program.function(self.w.meet).span;
        let read = self.w.read[0].span;
        let start = function.start.max(read.start.saturating_sub(before));
        let end = function.end.min(read.end.saturating_add(after));
        let file = self.program.file_of(self.w.meet);
        let bytes = file.text.as_bytes().get(start as usize..end as usize);
        let text = String::from_utf8_lossy(bytes.unwrap_or_default()).to_ascii_lowercase();
        let words = [
            "rate limit",
            "ratelimit",
            "rate_limit",
            "limit exceeded",
            "limit reached",
            "quota",
            "throttl",
            "too many",
        ];
        self.w.compared && words.iter().any(|word| text.contains(word))
    }

    /// Reached only by code that runs once, at start.
    pub fn only_at_start(&self) -> bool {
        self.w
            .reached_by
            .iter()
            .all(|r| r.kind == EntryKind::Startup)
    }

    pub fn only_by_timer(&self) -> bool {
        self.ways().all(|r| r.kind == EntryKind::Timer)
    }

    /// By which ways it is reached. In a server, that a function could be called from outside
    /// is no way there where others are: nobody was seen to take it.
    fn ways(&self) -> impl Iterator<Item = &Reach> {
        let exported = |r: &Reach| r.kind == EntryKind::Export;
        let others = self.w.in_server && self.w.reached_by.iter().any(|r| !exported(r));
        let all = self.w.reached_by.iter();
        all.filter(move |r| !(others && exported(r)))
    }

    /// Reached by no call of an MCP client, only by what stands beside: routes, events, timers.
    pub fn only_beside_calls(&self) -> bool {
        use EntryKind::{Event, Route, Startup, Timer};
        let beside = |kind| matches!(kind, Event | Route | Startup | Timer);
        self.w.reached_by.iter().all(|r| beside(r.kind))
    }

    /// Reached by nobody who asks for something, only by events and timers.
    pub fn only_by_events(&self) -> bool {
        use EntryKind::{Event, Startup, Timer};
        let event = |kind| matches!(kind, Event | Startup | Timer);
        self.ways().all(|r| event(r.kind))
    }

    /// Reached by a call of an MCP client.
    pub fn is_called(&self) -> bool {
        use EntryKind::{Prompt, Request, Resource, Tool};
        let call = |kind| matches!(kind, Tool | Resource | Prompt | Request);
        self.w.reached_by.iter().any(|r| call(r.kind))
    }

    /// Reached by routes, and by no call of an MCP client.
    pub fn only_by_routes(&self) -> bool {
        let routed = self.w.reached_by.iter().any(|r| r.kind == EntryKind::Route);
        routed && !self.is_called()
    }

    /// Functions from the nearest handler to the place where read and write meet.
    pub fn depth(&self) -> usize {
        let ways = self.ways().map(|r| r.via.len());
        ways.min().unwrap_or_default()
    }

    /// The same, from the nearest that could be called at all.
    pub fn nearest(&self) -> usize {
        let ways = self.w.reached_by.iter().map(|r| r.via.len());
        ways.min().unwrap_or_default()
    }

    /// Reached by something that clients call.
    pub fn is_served(&self) -> bool {
        self.w
            .reached_by
            .iter()
            .any(|r| !matches!(r.kind, EntryKind::Startup | EntryKind::Export))
    }

    /// What was seen far below decides about a write far below, which takes
    /// nothing from it ("not logged in: log in, and store the token").
    pub fn is_distant_decision(&self) -> bool {
        let w = self.w;
        !w.data && !w.keyed && self.levels(&w.read) > 2 && self.levels(&w.write) > 2
    }

    /// How many functions below an access is, counted from where read and write meet.
    pub fn levels(&self, trail: &[Spot]) -> usize {
        self.program.levels(trail.iter().map(|spot| spot.func))
    }

    /// A file that is looked for: removing what was seen, overwriting what was
    /// seen, and putting a default where nothing was, seldom hurt anybody.
    pub fn seldom_hurts(&self) -> bool {
        let w = self.w;
        if !self.is(ResourceKind::File) || w.data || w.path_check {
            return false;
        }
        let overwrites = w.write_positive == Some(true);
        // That there is no file, though, is what a first write is for, wherever it stands.
        let distant = w.read_act == Act::Read && self.is_distant_decision();
        let cleans_up = w.write_in_handler && w.write_positive != Some(false);
        self.deletes() || overwrites || w.aside || w.constant || w.alike || cleans_up || distant
    }

    /// A cache is filled with what was made anew: twice is waste, and no more.
    pub fn fills_cache(&self) -> bool {
        let w = self.w;
        self.is(ResourceKind::Memory)
            && !w.data
            && w.given_back
            && !self.deletes()
            && self.is_waste()
    }

    /// What has an age is kept to save work, and made anew when it is too old. A credential is
    /// more than that: who gets it twice has logged in twice.
    pub fn is_kept_for_a_while(&self) -> bool {
        self.w.aged && !self.subject_mentions(&["token", "credential", "secret", "cookie"])
    }

    /// Done twice, it is done for nothing, but nothing is lost: a cache that both
    /// calls fill. (Doing something to others twice is more than that.)
    pub fn is_waste(&self) -> bool {
        let w = self.w;
        let busy = w.constant && is_busy_flag(&w.key);
        // Both are told that it is theirs, where one was to be turned away.
        let claimed = w.refuses && !w.constant && !w.given_back;
        !(w.other_writes || busy || claimed || w.changed_within || w.spent || w.passed_on)
    }

    /// By its name, it says that something is under way.
    pub fn keeps_others_out(&self) -> bool {
        is_busy_flag(&self.w.key)
    }

    /// The columns that are written are others than those that were read: what
    /// somebody else writes to the latter stays.
    pub fn writes_other_columns(&self) -> bool {
        let (Some(read), Some(write)) = (&self.w.read_row, &self.w.write_row) else {
            return false;
        };
        let named = |list: &[String]| !list.is_empty() && list.iter().all(|c| c != "*");
        named(&read.columns)
            && named(&write.columns)
            && !read.columns.iter().any(|c| write.columns.contains(c))
    }

    /// An atomic step of the store after a separate test: the value is right, the test is not.
    pub fn is_atomic_step(&self) -> bool {
        self.w.write_mode == Mode::Atomic
    }
}

/// `indexing`, `busy`: a flag that keeps others out while something is under
/// way. (`initialized` says that it is done: doing it twice is only waste.)
fn is_busy_flag(key: &str) -> bool {
    // What an atomic holds is called by the name of the atomic.
    let mut parts = key.rsplit(['.', '[']).filter(|part| *part != "value");
    let last = parts.next().unwrap_or(key).to_ascii_lowercase();
    let words = ["busy", "locked", "inprogress", "in_progress", "active"];
    last.ends_with("ing") || words.iter().any(|w| last.contains(w))
}

/// `ownerId`, `owner_id` and `OWNER_ID` are one name.
pub(crate) fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// Word match on the parts of an identifier: `userId` has `user` and `id`.
pub fn mentions(name: &str, words: &[&str]) -> bool {
    let mut part = String::new();
    let mut parts: Vec<String> = Vec::new();
    let mut previous_lower = false;
    for c in name.chars() {
        let boundary = !c.is_alphanumeric() || (c.is_uppercase() && previous_lower);
        if boundary && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if c.is_alphanumeric() {
            part.extend(c.to_lowercase());
        }
        previous_lower = c.is_lowercase() || c.is_numeric();
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts.iter().any(|p| {
        words
            .iter()
            .any(|w| p == w || p.strip_suffix('s').is_some_and(|p| p == *w))
    })
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn words_are_parts_of_identifiers() {
        assert!(mentions("ownerId", &["owner"]));
        assert!(mentions("owner_id", &["owner"]));
        assert!(mentions("this.rateLimits", &["limit"]));
        assert!(!mentions("delimiter", &["limit"]));
        assert!(mentions("invite_tokens", &["token"]));
    }
}
