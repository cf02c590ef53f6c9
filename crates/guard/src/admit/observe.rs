//! What would have happened to a call, without letting it happen.
//!
//! An observed call takes what it would take, at once or not at all, under
//! keys of its own: so it holds up no call of a guard that means it.

use std::time::Duration;

use toctou_sync::{Begin, Decision, InFlight, Limit, LockGuard, Permit, Ticket, Wait};

use super::{Gatekeeper, Pass, Plan, Taken, Tool};
use crate::log::log;
use crate::policy::ToolPolicy;
use crate::refusal::{Reason, Refusal};

impl Gatekeeper {
    /// Decides on a call that runs already, and logs what would have become of
    /// it. What it would hold is held until it ends, for those that come meanwhile.
    pub async fn observe(&self, plan: Plan) -> Option<Box<Pass>> {
        let mut taken = Taken::default();
        if let Some(entry) = self.entry(&plan.tool) {
            self.observe_rate(&plan, entry).await;
            taken.permit = self.observe_permit(&plan, entry).await;
        }
        taken.locks = self.observe_locks(&plan).await;
        if let Some(entry) = self.entry(&plan.tool) {
            taken.ticket = self.observe_record(&plan, entry).await;
        }
        match self.enter(plan.tool, plan.keys, taken) {
            Ok(pass) => Some(pass),
            Err((_, ticket)) => {
                if let Some(ticket) = ticket {
                    self.forget(ticket).await;
                }
                None
            }
        }
    }

    async fn observe_rate(&self, plan: &Plan, entry: &ToolPolicy) {
        let Some(rate) = &entry.rate else { return };
        let key = self.counted(plan, "observed rate", rate.by);
        match self.backend.take(&key, rate.quota(), 1).await {
            Ok(Decision::Allowed { .. }) => {}
            Ok(Decision::Denied { retry_after }) => {
                self.would_refuse(&plan.tool, &[], Reason::Rate { retry_after });
            }
            Err(error) => self.would_fail(plan, &error),
        }
    }

    async fn observe_permit(&self, plan: &Plan, entry: &ToolPolicy) -> Option<Permit> {
        let limit = entry.in_flight.as_ref()?;
        let key = self.counted(plan, "observed in-flight", limit.by);
        match self.backend.enter(&key, Limit::at_most(limit.max)).await {
            Ok(permit) => return Some(permit),
            Err(error) if !error.is_contention() => self.would_fail(plan, &error),
            Err(_) if limit.queue > 0 => self.would_wait(plan, "at-limit"),
            Err(_) => {
                let reason = Reason::AtLimit { limit: limit.max };
                self.would_refuse(&plan.tool, &[], reason);
            }
        }
        None
    }

    async fn observe_locks(&self, plan: &Plan) -> Option<LockGuard> {
        let request = self.request(plan, "observed")?;
        match self.backend.acquire(request.wait(Wait::No)).await {
            Ok(locks) => return Some(locks),
            Err(error) if error.is_contention() => self.would_wait(plan, "busy"),
            Err(error) => self.would_fail(plan, &error),
        }
        None
    }

    async fn observe_record(&self, plan: &Plan, entry: &ToolPolicy) -> Option<Ticket> {
        let (key, arguments) = plan.record.as_ref()?;
        let scoped = format!("observed\n{}", self.scoped(plan, key));
        let keep = entry.idempotency.as_ref()?.keep;
        let call = toctou_sync::Call::new(&scoped, arguments)
            .keep(keep)
            .in_flight(InFlight::Wait(Duration::ZERO));
        let keys = std::slice::from_ref(key);
        let reason = match self.backend.begin(call).await {
            Ok(Begin::First(ticket)) => return Some(ticket),
            Ok(Begin::Replay(_)) => {
                self.would("would-replay", &plan.tool, keys, "replay");
                return None;
            }
            Ok(Begin::InFlight) => Reason::InFlight,
            Ok(Begin::OtherArguments) => Reason::OtherArguments,
            Ok(Begin::Unknown) => Reason::Unknown,
            Err(error) => {
                self.would_fail(plan, &error);
                return None;
            }
        };
        self.would_refuse(&plan.tool, keys, reason);
        None
    }

    pub(super) fn would_refuse(&self, tool: &Tool, keys: &[String], reason: Reason) -> Refusal {
        let refusal = Refusal {
            reason,
            tool: tool.name.as_ref().into(),
            keys: keys.to_vec(),
        };
        self.would("would-refuse", tool, keys, refusal.name());
        refusal
    }

    fn would_wait(&self, plan: &Plan, reason: &'static str) {
        self.would("would-wait", &plan.tool, &plan.keys, reason);
    }

    fn would_fail(&self, plan: &Plan, error: &toctou_sync::Error) {
        self.metrics.backend_failed(false);
        log!(Error, "backend-failed", error = error.to_string());
        if !self.policy.open_on_loss {
            self.would("would-refuse", &plan.tool, &plan.keys, "backend-lost");
        }
    }

    fn would(&self, event: &'static str, tool: &Tool, keys: &[String], reason: &'static str) {
        self.metrics.observed(&tool.server, &tool.label, reason);
        if crate::log::enabled(crate::log::Level::Warn) {
            let fields = serde_json::json!({
                "server": &*tool.server, "tool": &*tool.name, "keys": keys, "reason": reason,
            });
            crate::log::write(crate::log::Level::Warn, event, fields);
        }
    }
}
