//! Close gate, keyed lock and semaphore under a model checker: every order of steps with up to two or three preemptions,
//! and a deadlock or lost wake-up is a failure.
//!
//! Each of these changes to `permits.rs` makes a test here fail: check and add in two steps; `<=` for `<` when entering, or
//! when granting; a permit that is not given back, or twice; a grant that is not counted, or wakes nobody; a caller that
//! goes away after its grant and keeps it, or before it and stays in the queue, or lets nobody in who stood behind.
#![allow(clippy::unwrap_used)]

#[path = "../../src/gate.rs"]
#[allow(dead_code)]
mod gate;
#[allow(dead_code)]
mod local;

/// What the sources name from the rest of the crate.
mod lock {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Mode {
        Shared,
        Exclusive,
    }

    impl Mode {
        pub fn passes(self, waiting: Self) -> bool {
            self == Self::Shared && waiting == Self::Shared
        }
    }
}

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use gate::CloseGate;
use local::keyed::{KeyedLocks, Keys};
use local::permits::{Enter, Permits};
use lock::Mode::{self, Exclusive, Shared};
use loom::future::block_on;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Asks once, and goes away whatever the answer is.
fn ask_once<F: Future>(future: F) {
    let mut future = pin!(future);
    let _ = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
}

#[test]
fn nothing_is_inside_after_closing() {
    check(3, || {
        let gate = CloseGate::new();
        let open = Arc::new(AtomicBool::new(true));
        let calls: Vec<_> = (0..2)
            .map(|_| {
                let (gate, open) = (gate.clone(), open.clone());
                thread::spawn(move || {
                    if let Ok(inside) = gate.enter() {
                        assert!(open.load(SeqCst), "a call runs after closing");
                        drop(inside);
                    }
                })
            })
            .collect();
        block_on(gate.close());
        open.store(false, SeqCst);
        assert!(gate.enter().is_err());
        for call in calls {
            call.join().unwrap();
        }
        assert_eq!(gate.inside(), 0);
    });
}

#[test]
fn two_may_close() {
    check(3, || {
        let gate = CloseGate::new();
        let inside = gate.enter().unwrap();
        let other = {
            let gate = gate.clone();
            thread::spawn(move || block_on(gate.close()))
        };
        let call = thread::spawn(move || drop(inside));
        // One that is dropped does not take the wake-up of the other with it.
        ask_once(gate.close());
        block_on(gate.close());
        other.join().unwrap();
        call.join().unwrap();
    });
}

fn keys(wanted: &[(&str, Mode)]) -> Keys {
    wanted
        .iter()
        .map(|(key, mode)| (Arc::from(*key), *mode))
        .collect()
}

/// Each request as a thread; writers weigh 100, readers 1, and a sum that is not allowed fails.
fn locking(
    preemptions: usize,
    requests: &'static [&'static [(&'static str, Mode)]],
    cancelled: usize,
) {
    check(preemptions, move || {
        let locks = Arc::new(KeyedLocks::default());
        let inside: Arc<[AtomicUsize; 2]> = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let threads: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(number, request)| {
                let (locks, inside) = (locks.clone(), inside.clone());
                thread::spawn(move || {
                    let turn = locks.acquire(keys(request), usize::MAX).unwrap();
                    if number < cancelled {
                        return ask_once(turn);
                    }
                    let held = block_on(turn);
                    for (key, mode) in *request {
                        let weight = if *mode == Exclusive { 100 } else { 1 };
                        let place = &inside[usize::from(*key == "b")];
                        let before = place.fetch_add(weight, SeqCst);
                        assert!(before < 100 && (weight == 1 || before == 0), "two inside");
                        place.fetch_sub(weight, SeqCst);
                    }
                    drop(held);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(locks.len(), (0, 0), "something is left");
    });
}

#[test]
fn writers_and_readers() {
    locking(
        2,
        &[&[("a", Exclusive)], &[("a", Shared)], &[("a", Exclusive)]],
        0,
    );
}

#[test]
fn two_keys_in_two_orders() {
    locking(
        2,
        &[
            &[("a", Exclusive), ("b", Exclusive)],
            &[("b", Exclusive), ("a", Shared)],
        ],
        0,
    );
}

#[test]
fn two_keys_and_one_between() {
    locking(
        2,
        &[
            &[("a", Exclusive), ("b", Shared)],
            &[("b", Exclusive)],
            &[("a", Shared)],
        ],
        0,
    );
}

#[test]
fn a_waiter_that_goes_away() {
    locking(3, &[&[("a", Exclusive)], &[("a", Exclusive)]], 1);
    locking(
        2,
        &[&[("a", Exclusive)], &[("a", Exclusive)], &[("a", Shared)]],
        1,
    );
    locking(
        2,
        &[
            &[("a", Exclusive), ("b", Exclusive)],
            &[("a", Exclusive)],
            &[("b", Shared)],
        ],
        1,
    );
}

fn enter(permits: &Arc<Permits>, limit: u32) -> Enter {
    permits.enter("caller", limit, usize::MAX).unwrap()
}

/// Waits for a permit, and looks how many run while it has it.
fn run_once(permits: &Arc<Permits>, running: &AtomicUsize, limit: u32) {
    let permit = block_on(enter(permits, limit));
    let before = running.fetch_add(1, SeqCst);
    assert!(before < limit as usize, "above the limit");
    running.fetch_sub(1, SeqCst);
    drop(permit);
}

fn permits(preemptions: usize, limit: u32, callers: usize, cancelled: usize) {
    check(preemptions, move || {
        let permits = Arc::new(Permits::default());
        let running = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..callers)
            .map(|number| {
                let (permits, running) = (permits.clone(), running.clone());
                thread::spawn(move || match number < cancelled {
                    true => ask_once(enter(&permits, limit)),
                    false => run_once(&permits, &running, limit),
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(permits.len(), (0, 0), "something is left");
    });
}

#[test]
fn never_above_the_limit() {
    permits(2, 1, 3, 0);
    permits(2, 2, 3, 0);
}

#[test]
fn a_caller_that_goes_away() {
    permits(3, 1, 2, 1);
    permits(2, 1, 3, 1);
}

/// One of two permits is kept: who gives the other back makes room for one, not for two.
#[test]
fn a_permit_is_given_back_once() {
    check(2, || {
        let permits = Arc::new(Permits::default());
        let running = Arc::new(AtomicUsize::new(1));
        let (kept, given) = (block_on(enter(&permits, 2)), block_on(enter(&permits, 2)));
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let (permits, running) = (permits.clone(), running.clone());
                thread::spawn(move || run_once(&permits, &running, 2))
            })
            .collect();
        drop(given);
        for caller in callers {
            caller.join().unwrap();
        }
        drop(kept);
        assert_eq!(permits.len(), (0, 0), "something is left");
    });
}

/// There is room for the second, but it stands behind the first, which has a lower limit and goes away.
#[test]
fn who_stands_behind_one_that_goes_away_is_let_in() {
    check(3, || {
        let permits = Arc::new(Permits::default());
        let kept = block_on(enter(&permits, 1));
        let (first, second) = (enter(&permits, 1), enter(&permits, 2));
        let leaves = thread::spawn(move || ask_once(first));
        drop(block_on(second));
        leaves.join().unwrap();
        drop(kept);
        assert_eq!(permits.len(), (0, 0), "something is left");
    });
}
