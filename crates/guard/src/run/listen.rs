//! HTTP in front of all servers.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Guard, GuardError, Options, Signals, bind, serve_metrics};
use crate::http::{self, Listen, Service};
use crate::log::log;

pub(super) async fn serve(
    guard: Guard,
    options: &Options,
    listen: Listen,
) -> Result<(), GuardError> {
    let mut signals = Signals::new()?;
    // First the address: nothing is started if it is taken.
    let listener = bind(listen.address).await?;
    let address = listener.local_addr().unwrap_or(listen.address);
    serve_metrics(&guard, options).await?;
    let service = Arc::new(Service::start(guard, listen.access, &options.servers).await?);
    let (stop, stopped) = watch::channel(false);
    let accepting = tokio::spawn(http::accept(
        listener,
        listen.tls,
        Arc::clone(&service),
        stopped,
    ));
    let sweeping = tokio::spawn(Arc::clone(&service).sweep());
    let names: Vec<&str> = options.servers.iter().map(|server| &*server.name).collect();
    // Whoever started us waits for this line, whatever the level.
    crate::log::write(
        crate::log::Level::Info,
        "listening",
        serde_json::json!({ "address": address.to_string(), "servers": names }),
    );
    signals.recv().await;
    service.close();
    tokio::select! {
        () = service.idle() => {}
        () = signals.recv() => log!(Warn, "calls-cut-off"),
    }
    sweeping.abort();
    let _ = stop.send(true);
    service.stop().await;
    let _ = accepting.await;
    Ok(())
}
