//! Each tool is called once, to see which work, which change something, and what they answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toctou_hold::Class;

use super::fixtures;
use super::harvest::Harvest;
use super::synth::{self, Fill};
use crate::call::{Call, Reply};
use crate::canon::content::Content;
use crate::cell::Cell;
use crate::client::Tool;
use crate::lab::{Lab, RunError};
use crate::names::{self, RUN};
use crate::outcome::Files;
use crate::target::WORKSPACE;

/// What a tool seems to do, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Init,
    Create,
    Change,
    Read,
    Delete,
    Close,
}

/// A tool that was tried.
#[derive(Clone, Debug)]
pub struct Known {
    pub tool: Tool,
    pub verb: Verb,
    /// Arguments by which it worked, if it did.
    pub works: bool,
    /// With the properties that may be left out.
    pub optional: bool,
    pub choice: usize,
    /// The first key that is free for it.
    pub base: usize,
    /// Whether files changed, as far as can be seen.
    pub changed: bool,
    pub reply: Reply,
    /// Not called, because it could change what is not ours.
    pub left_alone: bool,
}

/// What is known about a server before any calls meet.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub tools: Vec<Known>,
    pub harvest: Harvest,
    /// Of a server that has done nothing yet.
    pub harvest_fresh: Harvest,
    pub observers: Vec<Call>,
    /// Calls that create something.
    pub creators: Vec<Call>,
    /// The same with another key, for those that have one.
    pub seconds: Vec<Call>,
    /// Examples of the user, by tool.
    pub examples: Vec<Call>,
    /// Files that are added to and never looked at.
    pub logs: BTreeSet<String>,
    /// The state is not ours alone: only what is new may be changed.
    pub shared: bool,
}

const MOST_OBSERVERS: usize = 4;

/// Tries every tool, those that create first.
pub fn survey(
    lab: &Lab,
    cell: &mut Cell,
    tools: Vec<Tool>,
    examples: Vec<Call>,
    shared: bool,
) -> Result<Survey, RunError> {
    let mut survey = Survey {
        examples,
        shared,
        ..Survey::default()
    };
    for (path, content) in &cell.files().all {
        // What we put there ourselves says nothing about the server.
        if path
            .strip_prefix("workspace/")
            .is_some_and(fixtures::is_ours)
        {
            continue;
        }
        if let Content::Tables(value) | Content::Json(value) = content {
            survey.harvest.state(value);
        }
    }
    survey.harvest_fresh = survey.harvest.clone();
    let mut order: Vec<(Verb, Tool)> = tools.into_iter().map(|tool| (verb(&tool), tool)).collect();
    order.sort_by_key(|(verb, _)| *verb);
    let mut probe = Probe {
        lab,
        cell,
        replies: Vec::new(),
        survey,
    };
    for (verb, tool) in &order {
        // What deletes or closes would take away what others need.
        if matches!(verb, Verb::Delete | Verb::Close) {
            continue;
        }
        let known = probe.tried(*verb, tool)?;
        probe.keep(known);
    }
    // Those that failed, with what is there by now; and with what only readers tell.
    probe.try_again()?;
    if probe.ask_readers() {
        probe.try_again()?;
    }
    for (verb, tool) in &order {
        if matches!(verb, Verb::Delete | Verb::Close) {
            let known = probe.tried(*verb, tool)?;
            probe.survey.tools.push(known);
        }
    }
    let Probe {
        cell, mut survey, ..
    } = probe;
    survey.second_things();
    survey.choose_observers();
    survey.logs = logs(cell);
    Ok(survey)
}

/// Files of the state that are only ever appended to.
fn logs(cell: &Cell) -> BTreeSet<String> {
    let (Some(sandbox), Some(snapshot)) = (cell.sandbox(), cell.snapshot()) else {
        return BTreeSet::new();
    };
    let events = cell.supervisor.events_since(cell.start);
    snapshot
        .entries
        .keys()
        .filter(|key| {
            let seen = sandbox.seen(key).to_string_lossy().into_owned();
            let mut touched = events
                .iter()
                .filter(|event| event.paths.contains(&seen))
                .peekable();
            touched.peek().is_some()
                && touched.all(|event| {
                    let opens = event.name.starts_with("open");
                    event.class == Class::Mutate && (!opens || event.detail.contains("append"))
                })
                && events
                    .iter()
                    .any(|event| event.paths.contains(&seen) && event.detail.contains("append"))
        })
        .cloned()
        .collect()
}

struct Probe<'a> {
    lab: &'a Lab,
    cell: &'a mut Cell,
    replies: Vec<Reply>,
    survey: Survey,
}

impl Probe<'_> {
    fn tried(&mut self, verb: Verb, tool: &Tool) -> Result<Known, RunError> {
        let mut known = Known {
            tool: tool.clone(),
            verb,
            works: false,
            optional: false,
            choice: 0,
            base: 0,
            changed: false,
            reply: Reply::Silence,
            left_alone: false,
        };
        let mut tried: Vec<Call> = Vec::new();
        for (optional, choice, base) in [(false, 0, 0), (false, 0, 2), (true, 0, 0), (true, 1, 0)] {
            known.optional = optional;
            known.choice = choice;
            known.base = base;
            let call = self.survey.call(&known, 0, 0);
            if tried.contains(&call) {
                continue;
            }
            tried.push(call.clone());
            if self.survey.shared && verb != Verb::Read && !names::is_own(&call) {
                known.left_alone = true;
                continue;
            }
            known.left_alone = false;
            let before = self.files();
            let resolved = self.cell.names().call(&call, &self.replies);
            let Some(server) = self.cell.servers.first_mut() else {
                break;
            };
            if server.client.ended() {
                return Err(RunError::Gone);
            }
            let reply = self
                .lab
                .ask(server, std::slice::from_ref(&resolved))?
                .remove(0);
            known.works = reply.is_ok();
            known.changed |= before != self.files();
            known.reply = reply;
            if known.works || known.reply == Reply::Silence {
                break;
            }
        }
        if !known.works {
            known.optional = false;
            known.choice = 0;
            known.base = 0;
        }
        Ok(known)
    }

    fn files(&self) -> Files {
        crate::schedules::settle(&self.cell.supervisor);
        self.cell.files()
    }

    fn try_again(&mut self) -> Result<(), RunError> {
        for index in 0..self.survey.tools.len() {
            let known = &self.survey.tools[index];
            if !known.works {
                let (verb, tool) = (known.verb, known.tool.clone());
                self.survey.tools[index] = self.tried(verb, &tool)?;
            }
        }
        Ok(())
    }

    /// Readers that tell what a failing tool wants to be told, a hash or a version, become part of the set-up.
    fn ask_readers(&mut self) -> bool {
        let failing = self.survey.tools.iter().filter(|known| !known.works);
        let wanted: Vec<String> = failing
            .flat_map(|known| synth::references(&known.tool.schema))
            .collect();
        let telling: Vec<(Call, Reply)> = self
            .survey
            .tools
            .iter()
            .filter(|known| known.works && known.verb == Verb::Read)
            .map(|known| (self.survey.call(known, 0, 0), known.reply.clone()))
            .filter(|(_, reply)| Harvest::tells(reply, &wanted))
            .collect();
        for (call, reply) in &telling {
            self.survey.harvest.answer(call, reply);
            self.replies.push(reply.clone());
            self.survey.creators.push(call.clone());
        }
        !telling.is_empty()
    }

    /// What created something is part of the set-up of others.
    fn keep(&mut self, known: Known) {
        if known.works
            && matches!(known.verb, Verb::Init | Verb::Create)
            && known.tool.read_only != Some(true)
        {
            let call = self.survey.call(&known, 0, 0);
            self.survey.harvest.answer(&call, &known.reply);
            self.replies.push(known.reply.clone());
            self.survey.creators.push(call);
        }
        self.survey.tools.push(known);
    }
}

impl Survey {
    /// A call of a tool, with the n-th key and payload.
    pub fn call(&self, known: &Known, key: usize, payload: usize) -> Call {
        self.filled(known, |fill| {
            fill.key = key;
            fill.payload = payload;
        })
    }

    pub fn filled(&self, known: &Known, change: impl FnOnce(&mut Fill<'_>)) -> Call {
        let mut fill = Fill::new(&self.harvest, if self.shared { "" } else { WORKSPACE });
        fill.suffix = if self.shared { RUN } else { "" };
        fill.optional = known.optional;
        fill.choice = known.choice;
        change(&mut fill);
        fill.key += known.base;
        let mut arguments = synth::arguments(&known.tool.name, &known.tool.schema, &fill);
        // The user's own values, but for the keys that make calls differ.
        if let Some(example) = self
            .examples
            .iter()
            .find(|example| example.tool == known.tool.name)
        {
            arguments = merged(&example.arguments, &arguments, &known.tool.schema, fill.key);
        }
        Call::new(&known.tool.name, arguments)
    }

    /// Two things of each kind, so that two calls can change different ones.
    fn second_things(&mut self) {
        for step in 0..self.creators.len() {
            let first = &self.creators[step];
            let known = self
                .tools
                .iter()
                .find(|known| known.tool.name == first.tool);
            let second = known.map(|known| self.call(known, 1, 0));
            if let Some(second) = second
                && second != *first
            {
                self.harvest.answer_like(step);
                self.seconds.push(second);
            }
        }
    }

    fn choose_observers(&mut self) {
        let mut chosen: Vec<Call> = Vec::new();
        let mut readers: Vec<&Known> = self
            .tools
            .iter()
            .filter(|known| known.works && known.is_reader())
            .collect();
        // Those without arguments see everything.
        readers.sort_by_key(|known| {
            synth::has_key(&known.tool.schema) || synth::has_payload(&known.tool.schema)
        });
        for known in readers {
            for key in 0..2 {
                let call = self.call(known, key, 0);
                // References to set-up calls only hold where they were made.
                let bound = call.arguments.to_string().contains("${setup");
                if !bound && !chosen.contains(&call) && chosen.len() < MOST_OBSERVERS {
                    chosen.push(call);
                }
            }
        }
        self.observers = chosen;
    }

    /// Which tools were not called, and why.
    pub fn left_alone(&self) -> Option<String> {
        let names: Vec<&str> = self
            .tools
            .iter()
            .filter(|known| known.left_alone)
            .map(|known| known.tool.name.as_str())
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "left alone, since they could change what is not toctou's: {}",
                names.join(", ")
            )
        })
    }

    pub fn mutators(&self) -> impl Iterator<Item = &Known> {
        self.tools
            .iter()
            .filter(|known| known.works && !known.is_reader())
    }
}

impl Known {
    /// Says that it only reads, or does nothing else that can be seen.
    pub fn is_reader(&self) -> bool {
        match self.tool.read_only {
            Some(true) => !self.changed,
            Some(false) => false,
            None => !self.changed && self.verb == Verb::Read,
        }
    }
}

/// The user's example with the keys of `made` where the example has keys.
fn merged(example: &Value, made: &Value, schema: &Value, key: usize) -> Value {
    let (Some(example), Some(made)) = (example.as_object(), made.as_object()) else {
        return made.clone();
    };
    let mut out = example.clone();
    if key == 0 {
        return Value::Object(out);
    }
    for (name, value) in made {
        let property = schema
            .get("properties")
            .and_then(|all| all.get(name))
            .cloned()
            .unwrap_or_else(|| json!({}));
        let varies = matches!(
            synth::role(name, &property),
            synth::Role::Key | synth::Role::Path | synth::Role::Payload
        );
        if varies && out.contains_key(name) && value.is_string() {
            out.insert(name.clone(), value.clone());
        }
    }
    Value::Object(out)
}

/// By the first word of the name that says something.
pub fn verb(tool: &Tool) -> Verb {
    let mut spaced = String::new();
    for c in tool.name.chars() {
        if c.is_uppercase() {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase());
    }
    let words: BTreeSet<&str> = spaced.split(|c: char| !c.is_alphanumeric()).collect();
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    if has(&[
        "drain", "close", "shutdown", "stop", "end", "finish", "reset", "clear",
    ]) {
        return Verb::Close;
    }
    if has(&[
        "delete", "remove", "drop", "destroy", "purge", "cancel", "archive", "unlink", "move",
        "rename",
    ]) {
        return Verb::Delete;
    }
    if tool.read_only == Some(true)
        || has(&[
            "get", "list", "read", "show", "search", "find", "fetch", "query", "view", "describe",
            "count", "status", "report", "info", "stats", "check", "lookup", "retrieve", "open",
            "recall", "display", "tree", "validate",
        ])
    {
        return Verb::Read;
    }
    if has(&[
        "init",
        "initialize",
        "setup",
        "start",
        "connect",
        "login",
        "begin",
        "activate",
        "configure",
    ]) {
        return Verb::Init;
    }
    if has(&[
        "create", "add", "new", "insert", "write", "register", "save", "put", "store", "append",
        "make", "submit", "import", "remember", "record", "upload", "push", "post", "enqueue",
        "log", "save",
    ]) {
        return Verb::Create;
    }
    Verb::Change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs() {
        let of = |name: &str| {
            verb(&Tool {
                name: name.to_owned(),
                description: String::new(),
                schema: json!({}),
                read_only: None,
            })
        };
        assert_eq!(of("create_entities"), Verb::Create);
        assert_eq!(of("readGraph"), Verb::Read);
        assert_eq!(of("delete_note"), Verb::Delete);
        assert_eq!(of("move_file"), Verb::Delete);
        assert_eq!(of("drain"), Verb::Close);
        assert_eq!(of("open_nodes"), Verb::Read);
    }
}
