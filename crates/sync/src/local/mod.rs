//! What one process needs to keep its own callers in order: a table of locks and a table of permits.
//!
//! Both are a map behind a mutex, with wakers in it, and nothing else: no timer, no channel, no runtime. So they can be
//! model-checked as they are (`tests/models.rs`), and every backend can put them in front of its own means.

pub mod keyed;
pub mod permits;
pub mod shim;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashMap;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::keyed::{Acquire, Held, KeyedLocks};
    use crate::Mode;

    type Request = Vec<(u8, bool)>;

    fn poll(turn: &mut Acquire) -> Option<Held> {
        match Pin::new(turn).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(held) => Some(held),
            Poll::Pending => None,
        }
    }

    proptest! {
        /// Requests come, go and give up in any order. Nobody is inside with somebody he conflicts with, nobody who could
        /// be inside waits, nobody is overtaken by one that conflicts with him, and nothing is left.
        #[test]
        fn locks_are_exact(steps in proptest::collection::vec(
            (0u8..4, proptest::collection::btree_map(0u8..4, any::<bool>(), 1..4), any::<prop::sample::Index>()),
            1..60,
        )) {
            let locks = Arc::new(KeyedLocks::default());
            let mut waiting: Vec<(Request, Acquire)> = Vec::new();
            let mut inside: Vec<(Request, Held)> = Vec::new();
            for (step, keys, which) in steps {
                let request: Request = keys.into_iter().collect();
                match step {
                    0 | 1 => {
                        let keys = request
                            .iter()
                            .map(|(key, alone)| {
                                (key.to_string().into(), if *alone { Mode::Exclusive } else { Mode::Shared })
                            })
                            .collect();
                        waiting.push((request, locks.acquire(keys, usize::MAX).unwrap()));
                    }
                    2 if !inside.is_empty() => drop(inside.swap_remove(which.index(inside.len()))),
                    3 if !waiting.is_empty() => drop(waiting.remove(which.index(waiting.len()))),
                    _ => {}
                }
                let mut still = Vec::new();
                for (request, mut turn) in waiting {
                    match poll(&mut turn) {
                        Some(held) => inside.push((request, held)),
                        None => still.push((request, turn)),
                    }
                }
                waiting = still;
                let mut weight: HashMap<u8, u32> = HashMap::new();
                for (key, alone) in inside.iter().flat_map(|(request, _)| request) {
                    *weight.entry(*key).or_default() += if *alone { 1000 } else { 1 };
                }
                prop_assert!(weight.values().all(|weight| *weight <= 1000), "two inside: {weight:?}");
                let mut ahead: HashMap<u8, bool> = HashMap::new();
                for (request, _) in &waiting {
                    let could = request.iter().all(|(key, alone)| {
                        let holders = weight.get(key).copied().unwrap_or(0);
                        let free = if *alone { holders == 0 } else { holders < 1000 };
                        // Nobody before, or readers before a reader.
                        free && ahead.get(key).is_none_or(|exclusive| !exclusive && !alone)
                    });
                    prop_assert!(!could, "{request:?} waits for nothing");
                    for (key, alone) in request {
                        *ahead.entry(*key).or_default() |= alone;
                    }
                }
            }
            drop((waiting, inside));
            prop_assert_eq!(locks.len(), (0, 0));
        }
    }
}
