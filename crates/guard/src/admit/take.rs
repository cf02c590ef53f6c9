//! What a call takes, one thing at a time.

use std::time::{Duration, Instant};

use toctou_sync::{Begin, Call, Decision, InFlight, Limit, LockGuard, LockRequest, Permit, Ticket};

use super::{Gatekeeper, Plan};
use crate::log::log;
use crate::policy::{By, ToolPolicy};
use crate::refusal::{Reason, Refusal};

/// What a record says about a call.
pub(super) enum Record {
    None,
    First(Ticket),
    Replay(Vec<u8>),
}

impl Gatekeeper {
    pub(super) async fn rate(&self, plan: &Plan, entry: &ToolPolicy) -> Result<(), Refusal> {
        let Some(rate) = &entry.rate else {
            return Ok(());
        };
        let key = self.counted(plan, "rate", rate.by);
        match self.backend.take(&key, rate.quota(), 1).await {
            Ok(Decision::Allowed { .. }) => Ok(()),
            Ok(Decision::Denied { retry_after }) => {
                Err(self.refuse(&plan.tool, &[], Reason::Rate { retry_after }))
            }
            Err(error) => self.failed(plan, error),
        }
    }

    pub(super) async fn permit(
        &self,
        plan: &Plan,
        entry: &ToolPolicy,
        wait: Duration,
    ) -> Result<Option<Permit>, Refusal> {
        let Some(limit) = &entry.in_flight else {
            return Ok(None);
        };
        let key = self.counted(plan, "in-flight", limit.by);
        let bound = match limit.queue {
            0 => Limit::at_most(limit.max),
            queue => Limit::at_most(limit.max).queue(queue, wait),
        };
        match self.backend.enter(&key, bound).await {
            Ok(permit) => Ok(Some(permit)),
            Err(error) if error.is_contention() => {
                Err(self.refuse(&plan.tool, &[], Reason::AtLimit { limit: limit.max }))
            }
            Err(error) => self.failed(plan, error).map(|()| None),
        }
    }

    pub(super) async fn record(
        &self,
        plan: &Plan,
        entry: &ToolPolicy,
        wait: Duration,
    ) -> Result<Record, Refusal> {
        let (Some((key, arguments)), Some(idempotency)) = (&plan.record, &entry.idempotency) else {
            return Ok(Record::None);
        };
        let scoped = self.scoped(plan, key);
        let call = Call::new(&scoped, arguments)
            .keep(idempotency.keep)
            .in_flight(InFlight::Wait(wait));
        let refuse = |reason| Err(self.refuse(&plan.tool, std::slice::from_ref(key), reason));
        match self.backend.begin(call).await {
            Ok(Begin::First(ticket)) => Ok(Record::First(ticket)),
            Ok(Begin::Replay(result)) => Ok(Record::Replay(result)),
            Ok(Begin::InFlight) => refuse(Reason::InFlight),
            Ok(Begin::OtherArguments) => refuse(Reason::OtherArguments),
            Ok(Begin::Unknown) => refuse(Reason::Unknown),
            Err(error) => self.failed(plan, error).map(|()| Record::None),
        }
    }

    pub(super) async fn locks(
        &self,
        plan: &Plan,
        wait: Duration,
    ) -> Result<Option<LockGuard>, Refusal> {
        let Some(request) = self.request(plan, "lock") else {
            return Ok(None);
        };
        let queue = self
            .entry(&plan.tool)
            .and_then(|entry| entry.queue)
            .unwrap_or(self.policy.defaults.queue);
        let began = Instant::now();
        match self
            .backend
            .acquire(request.within(wait).queue_at_most(queue))
            .await
        {
            Ok(locks) => Ok(Some(locks)),
            Err(toctou_sync::Error::QueueFull { .. }) => {
                Err(self.refuse(&plan.tool, &plan.keys, Reason::QueueFull))
            }
            Err(error) if error.is_contention() => {
                let waited = began.elapsed();
                Err(self.refuse(&plan.tool, &plan.keys, Reason::Busy { waited }))
            }
            Err(error) => self.failed(plan, error).map(|()| None),
        }
    }

    pub(super) fn request(&self, plan: &Plan, kind: &str) -> Option<LockRequest> {
        if plan.keys.is_empty() {
            return None;
        }
        let namespace = &plan.tool.namespace;
        Some(plan.keys.iter().fold(LockRequest::new(), |request, key| {
            request.key(format!("{kind}\n{namespace}\n{key}"), plan.tool.mode)
        }))
    }

    /// The backend does not work: closed, unless the policy says open.
    fn failed(&self, plan: &Plan, error: toctou_sync::Error) -> Result<(), Refusal> {
        let open = self.policy.open_on_loss && error.is_unavailable();
        self.metrics.backend_failed(open);
        let source = std::error::Error::source(&error).map(ToString::to_string);
        log!(
            Error,
            "backend-failed",
            error = error.to_string(),
            because = source,
            let_through = open
        );
        if open {
            return Ok(());
        }
        Err(self.refuse(&plan.tool, &plan.keys, Reason::BackendLost))
    }

    /// The key of a record: a caller's own, for one tool.
    pub(super) fn scoped(&self, plan: &Plan, key: &str) -> String {
        format!(
            "{}\n{}\n{}\n{key}",
            plan.tool.namespace, plan.caller.principal, plan.tool.name
        )
    }

    pub(super) fn counted(&self, plan: &Plan, kind: &str, by: By) -> String {
        let tool = &plan.tool;
        let who = match by {
            By::Everybody => "",
            By::Caller => &format!("{}\n{}", plan.caller.principal, plan.caller.connection),
        };
        // Tools of one entry are counted together.
        format!(
            "{kind}\n{}\n{}\n{who}",
            tool.namespace,
            tool.entry.unwrap_or(usize::MAX)
        )
    }
}
