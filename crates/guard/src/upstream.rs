//! The servers behind the guard.

mod child;
mod http;

use std::sync::Arc;

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
