//! Advisory locks.
//!
//! What is free is taken by the common session, without waiting. (The turn within this process has been taken before: the
//! server does not tell apart who of us holds a lock.) For what is not free a session of its own waits in the server's
//! queue, and then holds the lock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::sleep;

use super::session::{Session, Sessions, detached, failed};
use crate::backends::remote::{Claim, Id};
use crate::deadline::Deadline;
use crate::lock::Release;
use crate::{BoxFuture, Error, Fence, Mode, Result};

/// The numbers of a request's locks, in the order in which everybody takes them.
#[derive(Clone)]
pub struct Numbers {
    gates: Vec<i64>,
    propers: Vec<i64>,
    exclusive: Vec<bool>,
}

impl Numbers {
    pub fn of(keys: &[(Id, Mode)]) -> Self {
        let number = |id: &Id, from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&id[from..from + 8]);
            i64::from_le_bytes(bytes)
        };
        let mut sorted: Vec<_> = keys
            .iter()
            .map(|(id, mode)| (number(id, 0), number(id, 8), *mode == Mode::Exclusive))
            .collect();
        sorted.sort_unstable();
        Self {
            gates: sorted.iter().map(|lock| lock.0).collect(),
            propers: sorted.iter().map(|lock| lock.1).collect(),
            exclusive: sorted.iter().map(|lock| lock.2).collect(),
        }
    }

    async fn ask(&self, session: &Session, query: &str) -> Result<Option<Fence>> {
        let row = session
            .row(query, &[&self.gates, &self.propers, &self.exclusive])
            .await?;
        let fence: Option<i64> = row.try_get(0).map_err(failed)?;
        Ok(fence.map(|fence| Fence::new(fence.unsigned_abs())))
    }

    async fn unlock(&self, session: &Session) -> Result<()> {
        let query = "SELECT toctou.unlock($1, $2, $3)";
        session
            .row(query, &[&self.gates, &self.propers, &self.exclusive])
            .await
            .map(|_| ())
    }
}

/// Locks that are held by a session.
struct HeldLocks {
    sessions: Arc<Sessions>,
    numbers: Numbers,
    by: Option<Holder>,
}

enum Holder {
    Common(Arc<Session>),
    Own(Session, OwnedSemaphorePermit),
}

impl HeldLocks {
    fn give_back(&mut self) -> impl Future<Output = Result<()>> + Send + use<> {
        let (sessions, numbers, by) = (self.sessions.clone(), self.numbers.clone(), self.by.take());
        async move {
            match by {
                None => Ok(()),
                Some(Holder::Common(session)) => match numbers.unlock(&session).await {
                    Err(_) if *session.lost.borrow() => Err(lost()),
                    released => released,
                },
                Some(Holder::Own(session, waiter)) => {
                    let released = numbers.unlock(&session).await;
                    // A session that cannot say so is closed, and that releases too.
                    if released.is_ok() {
                        sessions.give_back(session);
                    }
                    drop(waiter);
                    released
                }
            }
        }
    }

    fn claim(self) -> Claim {
        let lost = match &self.by {
            Some(Holder::Common(session)) => Some(session.lost.clone()),
            Some(Holder::Own(session, _)) => Some(session.lost.clone()),
            None => None,
        };
        Claim {
            held: Box::new(self),
            lost,
        }
    }
}

fn lost() -> Error {
    Error::Lost {
        what: "the connection".into(),
    }
}

impl Release for HeldLocks {
    fn release(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let given_back = self.give_back();
        Box::pin(detached(&self.sessions.runtime, given_back))
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        if self.by.is_some() {
            let given_back = self.give_back();
            self.sessions.runtime.spawn(given_back);
        }
    }
}

pub async fn acquire(
    sessions: &Arc<Sessions>,
    numbers: Numbers,
    deadline: &Deadline,
) -> Result<Option<(Fence, Claim)>> {
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some((fence, held)) = try_lock(sessions, &numbers).await? {
            return Ok(Some((fence, held.claim())));
        }
        if !deadline.waits() {
            return Ok(None);
        }
        if let Ok(waiter) = sessions.waiters.clone().try_acquire_owned() {
            let waiting = wait(sessions, &numbers, waiter);
            return match deadline.run(waiting).await {
                Ok(locked) => locked.map(|(fence, held)| Some((fence, held.claim()))),
                Err(_) => Ok(None),
            };
        }
        if deadline
            .run(sleep(pause.mul_f64(0.5 + fastrand::f64())))
            .await
            .is_err()
        {
            return Ok(None);
        }
        pause = (pause * 2).min(Duration::from_millis(40));
    }
}

async fn try_lock(
    sessions: &Arc<Sessions>,
    numbers: &Numbers,
) -> Result<Option<(Fence, HeldLocks)>> {
    let (sessions, numbers) = (sessions.clone(), numbers.clone());
    let runtime = sessions.runtime.clone();
    let step = async move {
        let session = sessions.current().await?;
        let fence = numbers
            .ask(&session, "SELECT toctou.try_lock($1, $2, $3)")
            .await?;
        let by = Some(Holder::Common(session));
        Ok(fence.map(|fence| {
            (
                fence,
                HeldLocks {
                    sessions,
                    numbers,
                    by,
                },
            )
        }))
    };
    detached(&runtime, step).await
}

/// Waits in the server's queue. When the caller goes away, the wait is cancelled and the session closed.
async fn wait(
    sessions: &Arc<Sessions>,
    numbers: &Numbers,
    waiter: OwnedSemaphorePermit,
) -> Result<(Fence, HeldLocks)> {
    let (sessions, numbers) = (sessions.clone(), numbers.clone());
    let runtime = sessions.runtime.clone();
    let (mut send, receive) = oneshot::channel();
    runtime.spawn(async move {
        let session = match sessions.waiter().await {
            Ok(session) => session,
            Err(error) => {
                let _ = send.send(Err(error));
                return;
            }
        };
        let locked = tokio::select! {
            locked = numbers.ask(&session, "SELECT toctou.lock($1, $2, $3)") => locked,
            () = send.closed() => {
                let _ = session.client.cancel_token().cancel_query(sessions.tls.clone()).await;
                return;
            }
        };
        let locked = locked.and_then(|fence| fence.ok_or_else(|| failed("no fence")));
        let _ = send.send(locked.map(|fence| {
            let by = Some(Holder::Own(session, waiter));
            (
                fence,
                HeldLocks {
                    sessions,
                    numbers,
                    by,
                },
            )
        }));
    });
    receive.await.map_err(failed)?
}
