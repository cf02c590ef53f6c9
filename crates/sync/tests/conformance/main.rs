//! What every backend promises, tried on each of them.
//!
//! A case is a function of a [`Place`]: somewhere where state lives, and where several clients can be opened. For all
//! backends but `memory`, two clients share nothing but that place, as two processes would.
#![allow(clippy::unwrap_used)]

mod cells;
mod idempotency;
mod locks;
mod rates;
mod semaphores;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use toctou_sync::Backend;

/// Somewhere where state lives.
pub struct Place {
    pub url: String,
    shared: Option<Arc<dyn Backend>>,
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    /// Another client.
    pub async fn client(&self) -> Arc<dyn Backend> {
        match &self.shared {
            Some(shared) => shared.clone(),
            None => toctou_sync::connect(&self.url).await.unwrap(),
        }
    }
}

async fn memory() -> Place {
    let shared = toctou_sync::connect("memory:").await.unwrap();
    Place {
        url: "memory:".into(),
        shared: Some(shared),
        _folder: None,
    }
}

async fn host() -> Place {
    let folder = tempfile::tempdir().unwrap();
    Place {
        url: format!("host:{}", folder.path().display()),
        shared: None,
        _folder: Some(folder),
    }
}

/// Cases share a server, and use keys of their own.
#[cfg(any(feature = "redis", feature = "postgres"))]
fn server(kind: support::Kind, server: &'static std::sync::OnceLock<support::Server>) -> Place {
    let url = server.get_or_init(|| support::Server::start(kind)).url();
    Place {
        url,
        shared: None,
        _folder: None,
    }
}

#[cfg(feature = "redis")]
async fn redis() -> Place {
    static SERVER: std::sync::OnceLock<support::Server> = std::sync::OnceLock::new();
    server(support::Kind::Redis, &SERVER)
}

#[cfg(feature = "postgres")]
async fn postgres() -> Place {
    static SERVER: std::sync::OnceLock<support::Server> = std::sync::OnceLock::new();
    server(support::Kind::Postgres, &SERVER)
}

macro_rules! cases {
    ($place:ident: $($group:ident { $($case:ident)* })*) => {
        mod $place {
            $(mod $group {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let place = crate::$place().await;
                    let case = crate::$group::$case(&place);
                    // A case that hangs fails, and says which it is.
                    tokio::time::timeout(std::time::Duration::from_secs(60), case).await.expect("hangs");
                })*
            })*
        }
    };
}

/// The list of cases, once for all backends.
macro_rules! conformance {
    ($place:ident) => {
        cases! { $place:
            locks {
                excludes shares writers_do_not_starve readers_do_not_starve several_keys_without_deadlock
                same_key_twice refuses_and_times_out cancelled_waiters_leave_nothing queue_is_bounded
                fences_grow release_lets_the_next_in a_cancelled_release_releases stress_never_two_inside odd_keys
            }
            semaphores {
                never_more_than_the_limit refuses_at_once queue_is_bounded cancelled_waiters_leave_nothing
                callers_are_apart a_cancelled_release_releases limit_of_zero_is_refused
            }
            rates { burst_then_refused refills exact_under_concurrency cost_and_refusals keys_are_apart }
            cells {
                compares_and_swaps versions_are_never_reused no_update_is_lost deletes
                fences_are_checked fence_survives_deletion binary_values gives_up
            }
            idempotency {
                first_then_replay other_arguments in_flight waits_for_the_result dropped_is_unknown
                forgotten_runs_again settles only_one_is_first is_forgotten_after_its_time
            }
        }
    };
}

conformance!(memory);
conformance!(host);
#[cfg(feature = "redis")]
conformance!(redis);
#[cfg(feature = "postgres")]
conformance!(postgres);
