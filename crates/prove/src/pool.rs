//! Servers started ahead: a start takes longer than a run.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::budget::Stop;
use crate::cell::{Cell, Maker, StartError};

/// Makes cells in the background, of the kind that was asked for last.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    maker: Arc<Maker>,
    state: Mutex<Stock>,
    changed: Condvar,
}

#[derive(Default)]
struct Stock {
    ready: VecDeque<(usize, Result<Cell, StartError>)>,
    /// Being made, by number of processes.
    making: Vec<usize>,
    /// What will be needed next.
    wanted: usize,
    closed: bool,
}

/// So many are kept ready.
const AHEAD: usize = 2;
const WORKERS: usize = 2;

impl Pool {
    pub fn new(maker: Arc<Maker>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            maker,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let workers = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name("starter".to_owned())
                    .spawn(move || shared.work())
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self { shared, workers })
    }

    pub fn maker(&self) -> &Maker {
        &self.shared.maker
    }

    /// Says what will be asked for, so that it is there by then.
    pub fn want(&self, processes: usize) {
        self.shared.lock().wanted = processes;
        self.shared.changed.notify_all();
    }

    /// A cell with that many servers, which nobody has used.
    pub fn take(&self, processes: usize) -> Result<Cell, StartError> {
        let mut stock = self.shared.lock();
        stock.wanted = processes;
        self.shared.changed.notify_all();
        loop {
            if let Some(at) = stock
                .ready
                .iter()
                .position(|(count, _)| *count == processes)
                && let Some((_, cell)) = stock.ready.remove(at)
            {
                self.shared.changed.notify_all();
                return cell;
            }
            self.shared.maker.budget.check()?;
            let wait = Duration::from_millis(50);
            stock = self
                .shared
                .changed
                .wait_timeout(stock, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Stock> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let processes = {
                let mut stock = self.lock();
                loop {
                    if stock.closed {
                        return;
                    }
                    let wanted = stock.wanted;
                    let there = stock
                        .ready
                        .iter()
                        .filter(|(count, _)| *count == wanted)
                        .count()
                        + stock
                            .making
                            .iter()
                            .filter(|count| **count == wanted)
                            .count();
                    if wanted > 0 && there < AHEAD {
                        stock.making.push(wanted);
                        break wanted;
                    }
                    stock = self
                        .changed
                        .wait(stock)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            };
            let made = self.maker.make(processes);
            let mut stock = self.lock();
            if let Some(at) = stock.making.iter().position(|count| *count == processes) {
                stock.making.swap_remove(at);
            }
            let stopped = matches!(
                made,
                Err(StartError::Stopped(Stop::Budget | Stop::Interrupted))
            );
            stock.ready.push_back((processes, made));
            if stopped {
                stock.closed = true;
            }
            self.changed.notify_all();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        // Nobody needs what is being started.
        self.shared.maker.budget.call_off();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
