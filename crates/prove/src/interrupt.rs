//! Ctrl-C: everybody who waits is told, and cleans up on the way out.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::budget::Budget;

/// From now on a signal to stop ends the budget instead of the process.
pub fn on_signal(budget: &Budget) -> io::Result<()> {
    let budget = budget.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        )
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                budget.interrupt();
            });
        })?;
    Ok(())
}
