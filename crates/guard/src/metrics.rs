//! Counters for Prometheus.
//!
//! Labels are bounded: names of tools come from the server's list or the
//! policy (anything else is `other`), and keys are counted by their class, the
//! template, never by their value.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    server: Arc<str>,
    tool: Arc<str>,
    class: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    server: Arc<str>,
    tool: Arc<str>,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabels {
    server: Arc<str>,
}

/// From a tenth of a millisecond to a minute.
const BUCKETS: [f64; 12] = [
    0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0,
];

/// All counters of one guard.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    waits: Family<CallLabels, Histogram>,
    holds: Family<CallLabels, Histogram>,
    refusals: Family<RefusalLabels, Counter>,
    observed: Family<RefusalLabels, Counter>,
    restarts: Family<ServerLabels, Counter>,
    backend_failures: Counter,
    let_through: Counter,
    lost: Counter,
    strays: Counter,
    waiting: Gauge<i64>,
    running: Gauge<i64>,
    messages: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram = || Histogram::new(BUCKETS);
        let mut metrics = Self {
            registry: Registry::with_prefix("toctou_guard"),
            calls: Family::default(),
            waits: Family::new_with_constructor(histogram),
            holds: Family::new_with_constructor(histogram),
            refusals: Family::default(),
            observed: Family::default(),
            restarts: Family::default(),
            backend_failures: Counter::default(),
            let_through: Counter::default(),
            lost: Counter::default(),
            strays: Counter::default(),
            waiting: Gauge::default(),
            running: Gauge::default(),
            messages: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "calls",
            "Tool calls let in, by key class",
            metrics.calls.clone(),
        );
        registry.register(
            "wait_seconds",
            "Time a call waited to be let in",
            metrics.waits.clone(),
        );
        registry.register("hold_seconds", "Time a call was in", metrics.holds.clone());
        registry.register("refusals", "Tool calls refused", metrics.refusals.clone());
        registry.register(
            "observed",
            "Tool calls that would not have run at once, or not at all",
            metrics.observed.clone(),
        );
        registry.register(
            "restarts",
            "Servers started again",
            metrics.restarts.clone(),
        );
        registry.register(
            "backend_failures",
            "Times the backend did not answer",
            metrics.backend_failures.clone(),
        );
        registry.register(
            "unprotected_calls",
            "Calls let through because the backend was lost",
            metrics.let_through.clone(),
        );
        registry.register(
            "lost_locks",
            "Locks lost while a call ran",
            metrics.lost.clone(),
        );
        registry.register(
            "stray_answers",
            "Answers and notifications of servers that are for nobody",
            metrics.strays.clone(),
        );
        registry.register("waiting", "Calls that wait now", metrics.waiting.clone());
        registry.register("running", "Calls that run now", metrics.running.clone());
        registry.register("messages", "Messages passed on", metrics.messages.clone());
        metrics
    }
}

/// The counters of one tool, looked up once.
#[derive(Debug)]
pub struct ToolMetrics {
    calls: Counter,
    waits: Histogram,
    holds: Histogram,
}

impl ToolMetrics {
    pub fn entered(&self, waited: Duration) {
        self.calls.inc();
        self.waits.observe(waited.as_secs_f64());
    }

    pub fn left(&self, held: Duration) {
        self.holds.observe(held.as_secs_f64());
    }
}

impl Metrics {
    pub fn tool(&self, server: &Arc<str>, tool: &str, class: &str) -> ToolMetrics {
        let labels = CallLabels {
            server: Arc::clone(server),
            tool: tool.into(),
            class: class.into(),
        };
        ToolMetrics {
            calls: self.calls.get_or_create(&labels).clone(),
            waits: self.waits.get_or_create(&labels).clone(),
            holds: self.holds.get_or_create(&labels).clone(),
        }
    }

    pub fn refused(&self, server: &Arc<str>, tool: &str, reason: &'static str) {
        self.refusals
            .get_or_create(&RefusalLabels {
                server: Arc::clone(server),
                tool: tool.into(),
                reason,
            })
            .inc();
    }

    pub fn observed(&self, server: &Arc<str>, tool: &str, reason: &'static str) {
        self.observed
            .get_or_create(&RefusalLabels {
                server: Arc::clone(server),
                tool: tool.into(),
                reason,
            })
            .inc();
    }

    pub fn restarted(&self, server: &Arc<str>) {
        self.restarts
            .get_or_create(&ServerLabels {
                server: Arc::clone(server),
            })
            .inc();
    }

    pub fn backend_failed(&self, let_through: bool) {
        self.backend_failures.inc();
        if let_through {
            self.let_through.inc();
        }
    }

    pub fn lock_lost(&self) {
        self.lost.inc();
    }

    pub fn stray(&self) {
        self.strays.inc();
    }

    pub fn waiting(&self, change: i64) {
        self.waiting.inc_by(change);
    }

    pub fn running(&self, change: i64) {
        self.running.inc_by(change);
    }

    pub fn message(&self) {
        self.messages.inc();
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
