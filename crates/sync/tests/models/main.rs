//! Close gate, keyed lock and semaphore under a model checker: every order of steps with up to two or three preemptions,
//! and a deadlock or lost wake-up is a failure.
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
use local::permits::Permits;
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

fn permits(preemptions: usize, limit: u32, callers: usize, cancelled: usize) {
    check(preemptions, move || {
        let permits = Arc::new(Permits::default());
        let running = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..callers)
            .map(|number| {
                let (permits, running) = (permits.clone(), running.clone());
                thread::spawn(move || {
                    let turn = permits.enter("caller", limit, usize::MAX).unwrap();
                    if number < cancelled {
                        return ask_once(turn);
                    }
                    let permit = block_on(turn);
                    assert!(
                        running.fetch_add(1, SeqCst) < limit as usize,
                        "above the limit"
                    );
                    running.fetch_sub(1, SeqCst);
                    drop(permit);
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

/// The model can fail: to count and to take in two steps lets one too many in.
#[test]
#[should_panic]
fn counting_in_two_steps_is_found() {
    check(2, || {
        let taken = Arc::new(AtomicUsize::new(0));
        let running = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (taken, running) = (taken.clone(), running.clone());
                thread::spawn(move || {
                    if taken.load(SeqCst) < 1 {
                        taken.fetch_add(1, SeqCst);
                        assert!(running.fetch_add(1, SeqCst) < 1, "above the limit");
                        running.fetch_sub(1, SeqCst);
                        taken.fetch_sub(1, SeqCst);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
