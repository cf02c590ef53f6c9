//! A backend that does not answer: closed by default, open if the policy says so.

use std::sync::Arc;

use toctou_guard::admit::{Admitted, Caller, Gatekeeper};
use toctou_guard::metrics::Metrics;
use toctou_guard::policy;
use toctou_guard::wire::Raw;
use toctou_sync::{
    Backend, Begin, BoxFuture, Call, Cells, CloseGate, Decision, Error, Fence, Idempotency, Limit,
    LockGuard, LockRequest, Locks, Permit, Quota, RateLimits, Result, Semaphores, Swap, Version,
    Versioned,
};

/// Whatever it is asked, nobody is there.
#[derive(Debug)]
struct Gone;

fn gone<'a, T>() -> BoxFuture<'a, Result<T>> {
    Box::pin(async {
        Err(Error::Unavailable {
            backend: "gone",
            source: "connection refused".into(),
        })
    })
}

impl Locks for Gone {
    fn acquire(&self, _: LockRequest) -> BoxFuture<'_, Result<LockGuard>> {
        gone()
    }
}

impl Semaphores for Gone {
    fn enter<'a>(&'a self, _: &'a str, _: Limit) -> BoxFuture<'a, Result<Permit>> {
        gone()
    }
}

impl RateLimits for Gone {
    fn take<'a>(&'a self, _: &'a str, _: Quota, _: u32) -> BoxFuture<'a, Result<Decision>> {
        gone()
    }
}

impl Cells for Gone {
    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Versioned>>> {
        gone()
    }
    fn compare_and_swap<'a>(
        &'a self,
        _: &'a str,
        _: Option<Version>,
        _: Option<Vec<u8>>,
    ) -> BoxFuture<'a, Result<Swap>> {
        gone()
    }
    fn write_fenced<'a>(
        &'a self,
        _: &'a str,
        _: Fence,
        _: Vec<u8>,
    ) -> BoxFuture<'a, Result<Version>> {
        gone()
    }
}

impl Idempotency for Gone {
    fn begin<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Result<Begin>> {
        gone()
    }
    fn settle<'a>(&'a self, _: &'a str, _: Option<Vec<u8>>) -> BoxFuture<'a, Result<bool>> {
        gone()
    }
}

impl Backend for Gone {
    fn name(&self) -> &'static str {
        "gone"
    }
    fn check(&self) -> BoxFuture<'_, Result<()>> {
        gone()
    }
}

const ENTRIES: [&str; 4] = [
    "lock = \"k\"",
    "lock = []\nrate = { calls = 1, per = \"1s\" }",
    "lock = []\nin-flight = { max = 1 }",
    "lock = []\nidempotency = { key = \"{k}\" }",
];

#[tokio::test]
async fn closed_unless_told_otherwise_and_counted() {
    for entry in ENTRIES {
        for (loss, runs) in [("closed", false), ("open", true)] {
            let text = format!("on-backend-loss = \"{loss}\"\n[[tool]]\nmatch = \"*\"\n{entry}\n");
            let (policy, _) = policy::parse(&text).expect("a policy");
            let keeper = Gatekeeper {
                policy,
                backend: Arc::new(Gone),
                metrics: Arc::new(Metrics::default()),
                gate: CloseGate::new(),
            };
            let tool = Arc::new(keeper.tool(&"s".into(), &"s".into(), "t", false, true));
            let caller = Caller {
                principal: "p".into(),
                connection: "c".into(),
            };
            let plan = keeper
                .plan(&tool, Some(Raw::new(r#"{"k":1}"#)), &caller)
                .expect("a plan");
            match keeper.admit(plan).await {
                Ok(Admitted::Run(_)) => assert!(runs, "{text}"),
                Ok(Admitted::Replay(_)) => panic!("{text}"),
                Err(refusal) => {
                    assert!(!runs, "{text}");
                    assert_eq!(refusal.name(), "backend-lost");
                }
            }
            let metrics = keeper.metrics.text();
            assert!(
                metrics.contains("toctou_guard_backend_failures_total 1"),
                "{metrics}"
            );
            let unprotected = format!("toctou_guard_unprotected_calls_total {}", u8::from(runs));
            assert!(metrics.contains(&unprotected), "{metrics}");
        }
    }
}
