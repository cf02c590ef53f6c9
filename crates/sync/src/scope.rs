//! Things that are built one after the other, and taken down again if a later one fails.

use std::fmt;
use std::future::Future;

use crate::BoxFuture;

type Cleanup = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Remembers how to undo what was built so far.
///
/// ```
/// # use toctou_sync::InitScope;
/// # async fn open(name: &str) -> Result<String, String> { if name == "b" { Err("no b".into()) } else { Ok(name.into()) } }
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let mut scope = InitScope::new();
/// let built = async {
///     let first = open("a").await?;
///     scope.defer(move || async move { drop(first) });
///     open("b").await
/// }
/// .await;
/// // The error comes back after `a` has been taken down.
/// assert_eq!(scope.finish(built).await, Err("no b".to_owned()));
/// # });
/// ```
///
/// # What is promised
///
/// - Unless [`InitScope::commit`] is called (or [`InitScope::finish`] with `Ok`), everything that was deferred runs, once,
///   the last one first.
/// - It also runs if the scope is dropped, by a panic or by cancellation: then in a task of its own, or, outside of a
///   runtime, in a thread of its own. Then nobody waits for it.
/// - A cleanup that panics does not keep the others from running.
///
/// # What is not
///
/// - A crash of the process runs nothing. A runtime that is being shut down does not run new tasks.
/// - What opens half and then fails has to clean up after itself: defer at once after each success.
#[derive(Default)]
pub struct InitScope {
    cleanups: Vec<Cleanup>,
}

impl InitScope {
    /// A scope with nothing in it.
    pub const fn new() -> Self {
        Self {
            cleanups: Vec::new(),
        }
    }

    /// Says how to undo the last step.
    pub fn defer<F, C>(&mut self, cleanup: C)
    where
        C: FnOnce() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.cleanups.push(Box::new(|| Box::pin(cleanup())));
    }

    /// Everything was built: forgets how to undo it.
    pub fn commit(mut self) {
        self.cleanups.clear();
    }

    /// Undoes everything, the last step first, and waits for it.
    pub async fn unwind(mut self) {
        run(std::mem::take(&mut self.cleanups)).await;
    }

    /// [`InitScope::commit`] for `Ok`, [`InitScope::unwind`] for `Err`.
    ///
    /// # Errors
    ///
    /// The error that was given.
    pub async fn finish<T, E>(self, result: Result<T, E>) -> Result<T, E> {
        match result {
            Ok(value) => {
                self.commit();
                Ok(value)
            }
            Err(error) => {
                self.unwind().await;
                Err(error)
            }
        }
    }
}

/// Runs cleanups, and goes on with the rest if it is dropped half way.
async fn run(cleanups: Vec<Cleanup>) {
    let mut rest = InitScope { cleanups };
    while let Some(cleanup) = rest.cleanups.pop() {
        // A task of its own: it outlives a caller that goes away, and its panic stays there.
        let _ = tokio::spawn(async move { cleanup().await }).await;
    }
}

impl Drop for InitScope {
    fn drop(&mut self) {
        let cleanups = std::mem::take(&mut self.cleanups);
        if cleanups.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(run(cleanups));
            return;
        }
        std::thread::spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            {
                runtime.block_on(run(cleanups));
            }
        });
    }
}

impl fmt::Debug for InitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitScope")
            .field("deferred", &self.cleanups.len())
            .finish()
    }
}
