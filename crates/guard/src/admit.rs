//! Who is let in.
//!
//! [`Gatekeeper::plan`] says what a call needs: keys, limits, a record. It
//! looks at the policy and the arguments only. [`Gatekeeper::admit`] takes it
//! all, in one order for everybody (rate, permit, locks, record), or gives
//! back a [`Refusal`]. What was taken is a [`Pass`], and is given back when
//! the pass is dropped.

mod observe;
mod take;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use toctou_sync::{Backend, CloseGate, Inside, LockGuard, Mode, Permit, Ticket};

use crate::log::log;
use crate::metrics::{Metrics, ToolMetrics};
use crate::policy::{KeyFault, OnCancel, Policy, Template, ToolPolicy};
use crate::refusal::{Reason, Refusal};
use crate::wire::{Raw, distinct};
use take::Record;

/// Decides for all sessions of one guard.
#[derive(Debug)]
pub struct Gatekeeper {
    pub policy: Policy,
    pub backend: Arc<dyn Backend>,
    pub metrics: Arc<Metrics>,
    /// Closed when the guard shuts down: nothing starts after that.
    pub gate: CloseGate,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The authenticated subject, else what the client calls itself.
    pub principal: Arc<str>,
    /// Tells apart two connections of one principal that is not authenticated.
    pub connection: Arc<str>,
}

/// What is known about a tool before it is called.
#[derive(Debug)]
pub struct Tool {
    pub name: Arc<str>,
    pub server: Arc<str>,
    /// Prefix of all keys.
    namespace: Arc<str>,
    entry: Option<usize>,
    mode: Mode,
    locks: Vec<Template>,
    /// Its keys, where they do not depend on the arguments.
    constant: Option<Keys>,
    /// Nothing is taken for its calls.
    free: bool,
    pub on_cancel: OnCancel,
    pub timeout: Option<Duration>,
    label: Arc<str>,
    metrics: ToolMetrics,
}

/// Keys of a call, as the policy writes them, for people.
pub type Keys = Arc<[String]>;

/// What one call needs.
#[derive(Debug)]
pub struct Plan {
    pub tool: Arc<Tool>,
    pub keys: Keys,
    caller: Caller,
    record: Option<(String, Vec<u8>)>,
}

/// What a call holds while it runs.
#[derive(Debug)]
pub struct Pass {
    pub tool: Arc<Tool>,
    pub keys: Keys,
    pub waited: Duration,
    pub ticket: Option<Ticket>,
    locks: Option<LockGuard>,
    permit: Option<Permit>,
    /// It was only looked at: nobody waits for what becomes of it.
    pub observed: bool,
    metrics: Arc<Metrics>,
    since: Instant,
    _inside: Inside,
}

/// What was taken from the backend for a call.
#[derive(Default)]
struct Taken {
    waited: Duration,
    ticket: Option<Ticket>,
    locks: Option<LockGuard>,
    permit: Option<Permit>,
}

/// How a call goes on.
#[derive(Debug)]
pub enum Admitted {
    Run(Box<Pass>),
    /// It ran before; this was the result.
    Replay(Vec<u8>),
}

impl Gatekeeper {
    /// Looks a tool up. `read_only` is what the server says about it, `known`
    /// whether the server has it in its list.
    pub fn tool(
        &self,
        server: &Arc<str>,
        namespace: &Arc<str>,
        name: &str,
        read_only: bool,
        known: bool,
    ) -> Tool {
        let found = self.policy.find(server, name);
        let entry = found.map(|(_, entry)| entry);
        let own = || vec![Template::constant(format!("server:{namespace}"))];
        let locks = match entry.and_then(|entry| entry.locks.clone()) {
            Some(locks) => locks,
            None => own(),
        };
        let mode = match entry.map_or(crate::policy::Mode::Annotated, |entry| entry.mode) {
            crate::policy::Mode::Shared => Mode::Shared,
            crate::policy::Mode::Exclusive => Mode::Exclusive,
            crate::policy::Mode::Annotated if read_only => Mode::Shared,
            crate::policy::Mode::Annotated => Mode::Exclusive,
        };
        let class = locks
            .iter()
            .map(Template::text)
            .collect::<Vec<_>>()
            .join(" ");
        let label: Arc<str> = if known { name.into() } else { "other".into() };
        let mut constant = BTreeSet::new();
        let is_constant = locks.iter().all(Template::is_constant)
            && locks
                .iter()
                .all(|lock| lock.keys(&Value::Null, &mut constant).is_ok());
        let limited = entry.is_some_and(|entry| {
            entry.rate.is_some() || entry.in_flight.is_some() || entry.idempotency.is_some()
        });
        Tool {
            free: locks.is_empty() && !limited,
            constant: is_constant.then(|| constant.into_iter().collect()),
            metrics: self.metrics.tool(server, &label, &class),
            name: name.into(),
            server: Arc::clone(server),
            namespace: match &self.policy.namespace {
                Some(shared) => shared.as_str().into(),
                None => Arc::clone(namespace),
            },
            entry: found.map(|(at, _)| at),
            mode,
            locks,
            on_cancel: entry.map_or(OnCancel::Forward, |entry| entry.on_cancel),
            timeout: entry
                .and_then(|entry| entry.timeout)
                .or(self.policy.defaults.timeout),
            label,
        }
    }

    fn entry(&self, tool: &Tool) -> Option<&ToolPolicy> {
        tool.entry.and_then(|at| self.policy.tools.get(at))
    }

    /// What a call needs, or why it cannot be told.
    pub fn plan(
        &self,
        tool: &Arc<Tool>,
        arguments: Option<Raw<'_>>,
        caller: &Caller,
    ) -> Result<Plan, Refusal> {
        let entry = self.entry(tool);
        let record_key = entry.and_then(|entry| entry.idempotency.as_ref());
        let no_key = |fault: KeyFault| {
            let reason = Reason::NoKey {
                fault: fault.to_string(),
            };
            match self.policy.observe {
                true => self.would_refuse(tool, &[], reason),
                false => self.refuse(tool, &[], reason),
            }
        };
        let (mut keys, mut record) = (tool.constant.clone(), None);
        if keys.is_none() || record_key.is_some() {
            let text = arguments.map_or("{}", Raw::get);
            // A parser that takes the other of two values would see another key.
            let value = distinct(text).ok_or_else(|| no_key(KeyFault::Duplicate))?;
            if keys.is_none() {
                let mut found = BTreeSet::new();
                for lock in &tool.locks {
                    lock.keys(&value, &mut found).map_err(no_key)?;
                }
                keys = Some(found.into_iter().collect());
            }
            if let Some(idempotency) = record_key {
                let mut record_keys = BTreeSet::new();
                idempotency
                    .key
                    .keys(&value, &mut record_keys)
                    .map_err(no_key)?;
                let key = record_keys.into_iter().collect::<Vec<_>>().join(" ");
                // Keys are sorted in a `Value`, so equal arguments are equal bytes.
                record = Some((key, value.to_string().into_bytes()));
            }
        }
        Ok(Plan {
            tool: Arc::clone(tool),
            keys: keys.unwrap_or_default(),
            caller: caller.clone(),
            record,
        })
    }

    /// Waits until the call may run.
    pub async fn admit(&self, plan: Plan) -> Result<Admitted, Refusal> {
        let tool = &plan.tool;
        if self.gate.is_closed() {
            return Err(self.refuse(tool, &plan.keys, Reason::Closing));
        }
        let began = Instant::now();
        let entry = self.entry(tool);
        let wait = entry
            .and_then(|entry| entry.wait)
            .unwrap_or(self.policy.defaults.wait);
        let permit = match entry {
            None => None,
            Some(entry) => {
                self.rate(&plan, entry).await?;
                self.permit(&plan, entry, wait).await?
            }
        };
        let left = |began: Instant| wait.saturating_sub(began.elapsed());
        let locks = self.locks(&plan, left(began)).await?;
        // The record comes last: a call that is cancelled while it waits was never begun.
        let ticket = match entry {
            None => None,
            Some(entry) => match self.record(&plan, entry, left(began)).await? {
                Record::None => None,
                Record::First(ticket) => Some(ticket),
                Record::Replay(result) => return Ok(Admitted::Replay(result)),
            },
        };
        let taken = Taken {
            waited: began.elapsed(),
            ticket,
            locks,
            permit,
        };
        match self.enter(plan.tool, plan.keys, taken) {
            Ok(pass) => Ok(Admitted::Run(pass)),
            Err((refusal, ticket)) => {
                if let Some(ticket) = ticket {
                    self.forget(ticket).await;
                }
                Err(refusal)
            }
        }
    }

    /// Lets a call in for which nothing is to be taken.
    pub fn admit_free(&self, tool: &Arc<Tool>) -> Result<Box<Pass>, Refusal> {
        let keys = tool.constant.clone().unwrap_or_default();
        self.enter(Arc::clone(tool), keys, Taken::default())
            .map_err(|(refusal, _)| refusal)
    }

    /// The last step: whoever is in the gate runs, whoever waits is not in it.
    fn enter(
        &self,
        tool: Arc<Tool>,
        keys: Keys,
        taken: Taken,
    ) -> Result<Box<Pass>, (Refusal, Option<Ticket>)> {
        let Ok(inside) = self.gate.enter() else {
            let refusal = self.refuse(&tool, &keys, Reason::Closing);
            return Err((refusal, taken.ticket));
        };
        tool.metrics.entered(taken.waited);
        self.metrics.running(1);
        Ok(Box::new(Pass {
            tool,
            keys,
            waited: taken.waited,
            ticket: taken.ticket,
            locks: taken.locks,
            permit: taken.permit,
            observed: self.policy.observe,
            metrics: Arc::clone(&self.metrics),
            since: Instant::now(),
            _inside: inside,
        }))
    }

    /// Counts and logs a refusal.
    pub fn refuse(&self, tool: &Tool, keys: &[String], reason: Reason) -> Refusal {
        let refusal = Refusal {
            reason,
            tool: tool.name.as_ref().into(),
            keys: keys.to_vec(),
        };
        self.metrics
            .refused(&tool.server, &tool.label, refusal.name());
        log!(
            Info,
            "refused",
            server = &*tool.server,
            tool = &*tool.name,
            reason = refusal.name(),
            keys = refusal.keys
        );
        refusal
    }

    /// Takes back the record of a call that was not made.
    pub async fn forget(&self, ticket: Ticket) {
        if let Err(error) = ticket.forget().await {
            log!(Error, "backend-failed", error = error.to_string());
        }
    }

    /// Ends the record of a call. A result that says that it failed is not
    /// kept: the caller is meant to correct the call and repeat it.
    pub async fn settle(&self, ticket: Ticket, result: Option<Vec<u8>>) {
        let done = match result {
            Some(result) => ticket.complete(result).await,
            None => ticket.forget().await,
        };
        if let Err(error) = done {
            self.metrics.backend_failed(false);
            log!(Error, "record-not-kept", error = error.to_string());
        }
    }
}

impl Tool {
    /// Whether nothing is to be taken for its calls.
    pub fn is_free(&self) -> bool {
        self.free
    }

    pub fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive && !self.locks.is_empty()
    }
}

impl Pass {
    /// Whether it must be kept until the server is done, although nobody waits any more.
    pub fn outlives_its_caller(&self) -> bool {
        self.tool.is_exclusive() || self.permit.is_some() || self.ticket.is_some()
    }

    /// What the caller may want to know, as JSON.
    pub fn meta(&self) -> String {
        serde_json::json!({
            "keys": &self.keys[..],
            "mode": if self.tool.is_exclusive() { "exclusive" } else { "shared" },
            "waitedMs": self.waited.as_micros() as f64 / 1000.0,
            "fence": self.locks.as_ref().map(|locks| locks.fence().get()),
        })
        .to_string()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let held = self.since.elapsed();
        self.tool.metrics.left(held);
        self.metrics.running(-1);
        let lost = self.locks.as_ref().is_some_and(LockGuard::is_lost)
            || self.permit.as_ref().is_some_and(Permit::is_lost);
        if lost {
            self.metrics.lock_lost();
            log!(
                Error,
                "lock-lost",
                server = &*self.tool.server,
                tool = &*self.tool.name,
                keys = &self.keys[..]
            );
        }
        log!(
            Debug,
            "released",
            tool = &*self.tool.name,
            keys = &self.keys[..],
            held_ms = held.as_millis() as u64
        );
    }
}
