//! The record of a call that runs here.

use std::sync::Arc;

use super::server::{self, Server, failed};
use crate::idempotency::{Finish, Outcome};
use crate::{BoxFuture, Error, Result};

/// `None` for an outcome that is not known.
pub async fn finish(
    server: &Server,
    record: &str,
    ticket: &str,
    outcome: Option<&Outcome>,
) -> Result<bool> {
    server
        .call(&server::FINISH, |call| {
            call.arg(&server.prefix).arg(record).arg(ticket);
            match outcome {
                Some(Outcome::Done(result)) => call.arg("done").arg(result.as_slice()),
                Some(Outcome::NotRun) => call.arg("not run").arg(""),
                None => call.arg("unknown").arg(""),
            };
        })
        .await
}

pub struct Running {
    server: Arc<Server>,
    record: String,
    ticket: String,
    state: Progress,
}

#[derive(PartialEq, Eq)]
enum Progress {
    /// The caller does not know yet that it may run: dropped, nothing has happened.
    Asked,
    Running,
    Ended,
}

impl Running {
    /// From before the request is sent: the answer may not come.
    pub fn asked(server: Arc<Server>, record: String, ticket: String) -> Self {
        Self {
            server,
            record,
            ticket,
            state: Progress::Asked,
        }
    }

    pub fn was_not_made(mut self) {
        self.state = Progress::Ended;
    }
}

impl Finish for Running {
    fn hand_over(&mut self) {
        self.state = Progress::Running;
    }

    fn finish(mut self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, Result<()>> {
        self.state = Progress::Ended;
        self.server.claims.remove(&self.ticket);
        // In a task: it is recorded even if the caller goes away.
        let runtime = self.server.runtime.clone();
        let recorded = runtime.spawn(async move {
            match finish(&self.server, &self.record, &self.ticket, Some(&outcome)).await {
                Ok(true) => Ok(()),
                // Somebody settled it, or it was not kept so long.
                Ok(false) => Err(Error::Lost {
                    what: "the record".into(),
                }),
                Err(error) => Err(error),
            }
        });
        Box::pin(async move { recorded.await.map_err(failed)? })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.state == Progress::Ended {
            return;
        }
        self.server.claims.remove(&self.ticket);
        let not_run = self.state == Progress::Asked;
        let (server, record) = (self.server.clone(), std::mem::take(&mut self.record));
        let ticket = std::mem::take(&mut self.ticket);
        // If it does not get there, it is unknown when the lease ends.
        self.server.runtime.spawn(async move {
            let outcome = not_run.then_some(Outcome::NotRun);
            finish(&server, &record, &ticket, outcome.as_ref()).await
        });
    }
}
