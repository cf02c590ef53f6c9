//! The servers behind the guard.

mod child;
mod http;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::io::Outlet;

pub use child::{ChildSpec, Shutdown, StartError, supervise};
pub use http::HttpSpec;

/// A server that is kept at a session's service.
pub struct Supervised {
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
    /// The pipe to the present child, for backpressure.
    outlet: watch::Receiver<Option<Arc<Outlet>>>,
}

impl Supervised {
    /// Waits while the server does not read what it is sent.
    pub async fn ready(&self) {
        let outlet = self.outlet.borrow().clone();
        if let Some(outlet) = outlet {
            outlet.ready().await;
        }
    }

    /// Ends the server, or the connection to it, and waits for that.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

/// How long to wait before a server is tried again: longer each time, until one lasts.
struct Pause(Duration);

impl Pause {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);
    /// One that lived this long has not died at its start.
    const SETTLED: Duration = Duration::from_secs(10);

    fn length(&self) -> Duration {
        self.0
    }

    /// One has lived for so long, and died.
    fn after(&mut self, lived: Duration) {
        if lived > Self::SETTLED {
            self.0 = Self::FIRST;
        }
    }

    async fn rest(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Self::LONGEST);
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self(Self::FIRST)
    }
}
