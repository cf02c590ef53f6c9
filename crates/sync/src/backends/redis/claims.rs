//! What this process holds on the server, and the task that prolongs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::server::{Server, failed};
use crate::local::shim::lock;
use crate::lock::Release;
use crate::{BoxFuture, Error, Result};

#[derive(Default)]
pub struct Claims {
    held: Mutex<HashMap<String, Lease>>,
}

struct Lease {
    /// When the last request to prolong it that succeeded was *sent*: the lease cannot have begun before.
    since: Instant,
    /// Keys on the server that live as long as the claim, and for how long each time.
    keys: Arc<[String]>,
    kept: Duration,
    lost: watch::Sender<bool>,
}

impl Claims {
    pub fn add(
        &self,
        claim: &str,
        since: Instant,
        keys: Vec<String>,
        kept: Duration,
    ) -> watch::Receiver<bool> {
        let (lost, receiver) = watch::channel(false);
        let lease = Lease {
            since,
            keys: keys.into(),
            kept,
            lost,
        };
        lock(&self.held).insert(claim.to_owned(), lease);
        receiver
    }

    pub fn remove(&self, claim: &str) {
        lock(&self.held).remove(claim);
    }

    /// Prolongs all claims, three times in each lease, until the server object is gone.
    pub async fn renew(server: Weak<Server>, lease: Duration) {
        let mut ticks = ticks(lease / 3);
        loop {
            ticks.tick().await;
            let Some(server) = server.upgrade() else {
                return;
            };
            let due: Vec<_> = lock(&server.claims.held)
                .iter()
                .map(|(claim, lease)| (claim.clone(), lease.keys.clone(), lease.kept))
                .collect();
            for (claim, keys, kept) in due {
                let sent = Instant::now();
                let renewed = server.renew(&claim, &keys, kept).await;
                let mut held = lock(&server.claims.held);
                let Some(entry) = held.get_mut(&claim) else {
                    continue;
                };
                match renewed {
                    Ok(true) => entry.since = sent,
                    Ok(false) => {
                        entry.lost.send_replace(true);
                        held.remove(&claim);
                    }
                    // The others would fail too. Perhaps the next time it comes through.
                    Err(_) => break,
                }
            }
        }
    }

    /// Says of claims that they are lost when their lease is over, whether the server can be asked or not.
    pub async fn watch(server: Weak<Server>, lease: Duration) {
        let mut ticks = ticks(lease / 20);
        loop {
            ticks.tick().await;
            let Some(server) = server.upgrade() else {
                return;
            };
            lock(&server.claims.held).retain(|_, entry| {
                let over = entry.since.elapsed() >= lease;
                if over {
                    entry.lost.send_replace(true);
                }
                !over
            });
        }
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Something held on the server: sets, and as which member.
pub struct HeldClaim {
    pub server: Arc<Server>,
    pub claim: String,
    pub members: Vec<(String, String)>,
    pub released: bool,
}

impl Release for HeldClaim {
    fn release(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.released = true;
        self.server.claims.remove(&self.claim);
        // In a task: it happens even if the caller goes away.
        let runtime = self.server.runtime.clone();
        let released = runtime.spawn(async move {
            match self.server.release(&self.claim, &self.members).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(Error::Lost {
                    what: "the lease".into(),
                }),
                Err(error) => Err(error),
            }
        });
        Box::pin(async move { released.await.map_err(failed)? })
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        self.server.claims.remove(&self.claim);
        let (server, claim) = (self.server.clone(), std::mem::take(&mut self.claim));
        let members = std::mem::take(&mut self.members);
        // If it does not get there, it ends with the lease.
        self.server
            .runtime
            .spawn(async move { server.release(&claim, &members).await });
    }
}
