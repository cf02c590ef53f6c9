//! Idempotency records.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::idempotency::{Finish, Outcome, Ticket};
use crate::local::keyed::shrink;
use crate::local::shim::lock;
use crate::{Begin, BoxFuture, Call, Error, InFlight, Result, key};

const SWEEP_FROM: usize = 1024;

pub struct Records {
    max: usize,
    max_bytes: usize,
    state: Mutex<Table>,
}

struct Table {
    records: HashMap<Box<str>, Record>,
    sweep_at: usize,
    bytes: usize,
}

struct Record {
    arguments: [u8; 32],
    keep: Duration,
    state: State,
}

enum State {
    /// Those who wait hold receivers; they wake when the sender is dropped.
    Running(watch::Sender<()>),
    Unknown {
        until: Option<Instant>,
    },
    Done {
        result: Vec<u8>,
        until: Option<Instant>,
    },
}

impl State {
    fn is_over(&self, now: Instant) -> bool {
        match self {
            Self::Running(_) => false,
            // A time too far ahead to be expressed never comes.
            Self::Unknown { until } | Self::Done { until, .. } => until.is_some_and(|t| t <= now),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Done { result, .. } => result.len(),
            _ => 0,
        }
    }
}

impl Table {
    fn remove(&mut self, key: &str) {
        if let Some(record) = self.records.remove(key) {
            self.bytes -= record.state.bytes();
        }
        shrink(&mut self.records);
    }

    fn sweep(&mut self, now: Instant, max: usize) {
        let bytes = &mut self.bytes;
        self.records.retain(|_, record| {
            let over = record.state.is_over(now);
            if over {
                *bytes -= record.state.bytes();
            }
            !over
        });
        shrink(&mut self.records);
        self.sweep_at = (self.records.len() * 2).clamp(SWEEP_FROM, max.max(SWEEP_FROM));
    }
}

impl Records {
    pub fn new(max: usize, max_bytes: usize) -> Self {
        let table = Table {
            records: HashMap::new(),
            sweep_at: SWEEP_FROM,
            bytes: 0,
        };
        Self {
            max,
            max_bytes,
            state: Mutex::new(table),
        }
    }

    pub fn len(&self) -> usize {
        lock(&self.state).records.len()
    }

    pub async fn begin(self: &Arc<Self>, call: Call<'_>) -> Result<Begin> {
        call.check()?;
        let arguments = key::digest(call.arguments);
        let end = match call.in_flight {
            InFlight::Refuse => None,
            InFlight::Wait(time) => Instant::now().checked_add(time),
        };
        loop {
            let mut ended = match self.look(&call, arguments)? {
                Looked::Answer(begin) => return Ok(begin),
                Looked::Running(ended) => ended,
            };
            if call.in_flight == InFlight::Refuse {
                return Ok(Begin::InFlight);
            }
            match end {
                Some(end) if timeout_at(end, ended.changed()).await.is_err() => {
                    return Ok(Begin::InFlight);
                }
                Some(_) => {}
                None => {
                    let _ = ended.changed().await;
                }
            }
        }
    }

    fn look(self: &Arc<Self>, call: &Call<'_>, arguments: [u8; 32]) -> Result<Looked> {
        let now = Instant::now();
        let mut table = lock(&self.state);
        if table
            .records
            .get(call.key)
            .is_some_and(|record| record.state.is_over(now))
        {
            table.remove(call.key);
        }
        if let Some(record) = table.records.get(call.key) {
            if record.arguments != arguments {
                return Ok(Looked::Answer(Begin::OtherArguments));
            }
            return Ok(match &record.state {
                State::Running(ended) => Looked::Running(ended.subscribe()),
                State::Unknown { .. } => Looked::Answer(Begin::Unknown),
                State::Done { result, .. } => Looked::Answer(Begin::Replay(result.clone())),
            });
        }
        if table.records.len() >= table.sweep_at || table.records.len() >= self.max {
            table.sweep(now, self.max);
        }
        if table.records.len() >= self.max {
            return Err(Error::Full {
                what: "idempotency records",
                max: self.max,
            });
        }
        let state = State::Running(watch::channel(()).0);
        table.records.insert(
            call.key.into(),
            Record {
                arguments,
                keep: call.keep,
                state,
            },
        );
        let running = Running {
            records: self.clone(),
            key: call.key.into(),
            ended: false,
        };
        Ok(Looked::Answer(Begin::First(Ticket::new(
            call.key,
            Box::new(running),
        ))))
    }

    pub fn settle(&self, key: &str, result: Option<Vec<u8>>) -> Result<bool> {
        key::check(key)?;
        let mut table = lock(&self.state);
        let Some(Record {
            state: State::Unknown { .. },
            ..
        }) = table.records.get(key)
        else {
            return Ok(false);
        };
        let outcome = result.map_or(Outcome::NotRun, Outcome::Done);
        self.end(&mut table, key, outcome).map(|()| true)
    }

    fn end(&self, table: &mut Table, key: &str, outcome: Outcome) -> Result<()> {
        let result = match outcome {
            Outcome::NotRun => {
                table.remove(key);
                return Ok(());
            }
            Outcome::Done(result) => result,
        };
        let now = Instant::now();
        let Some(record) = table.records.get_mut(key) else {
            return Ok(());
        };
        let until = now.checked_add(record.keep);
        if table.bytes + result.len() > self.max_bytes {
            record.state = State::Unknown { until };
            return Err(Error::Full {
                what: "bytes of results",
                max: self.max_bytes,
            });
        }
        table.bytes += result.len();
        record.state = State::Done { result, until };
        Ok(())
    }
}

enum Looked {
    Answer(Begin),
    Running(watch::Receiver<()>),
}

/// The record of a call that runs. Nobody else touches it until this is dropped.
struct Running {
    records: Arc<Records>,
    key: Box<str>,
    /// Set when the outcome was said. The record is then no longer ours: the same key may run again.
    ended: bool,
}

impl Finish for Running {
    fn finish(mut self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, Result<()>> {
        self.ended = true;
        // At once, not when the future is polled: the call is over.
        let ended = {
            let mut table = lock(&self.records.state);
            self.records.end(&mut table, &self.key, outcome)
        };
        Box::pin(async move { ended })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(record) = lock(&self.records.state).records.get_mut(&self.key) {
            record.state = State::Unknown {
                until: Instant::now().checked_add(record.keep),
            };
        }
    }
}
