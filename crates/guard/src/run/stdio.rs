//! Standard input and output as the client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Guard, GuardError, Signals};
use crate::awake::AWAKE;
use crate::io::{Inlet, Outlet, TOGETHER};
use crate::log::log;
use crate::servers::Upstream;
use crate::session::{Origin, Session, Sink};
use crate::upstream::Supervised;
use crate::wire::Fault;

/// Unwritten bytes towards the client before its server is no longer read.
const BACKLOG: usize = 4 << 20;

impl Sink for Arc<Outlet> {
    fn deliver(&self, message: Bytes, _last: bool) {
        Outlet::push(self, &message);
    }
    fn close(&self) {}
    fn flush(&self) {
        Outlet::flush(self);
    }
}

pub(super) async fn serve(guard: &Guard, upstream: &Upstream) -> Result<(), GuardError> {
    let io = |doing| move |source| GuardError::Io { doing, source };
    let mut signals = Signals::new()?;
    let mut inlet = crate::io::stdin(guard.limits.bytes).map_err(io("opening standard input"))?;
    let out = crate::io::stdout(BACKLOG).map_err(io("opening standard output"))?;
    let sink: Arc<dyn Sink> = Arc::new(Arc::clone(&out));
    let session = guard.session(upstream.server(), Arc::clone(&sink), false, false);
    let server = guard.start(upstream, &session, Some(Arc::clone(&out)))?;
    let origin = Origin {
        sink,
        subject: None,
    };
    let told = tokio::select! {
        () = read(&session, &mut inlet, &server, &origin) => false,
        () = signals.recv() => true,
    };
    if told {
        // What runs may finish; what waits is told that it will not start.
        drop(guard.keeper.gate.close());
        session.close();
    }
    let answering = async {
        if told {
            // Whoever still asks is told, too.
            read(&session, &mut inlet, &server, &origin).await;
        }
        std::future::pending::<()>().await;
    };
    // At the end of input the client may still read: what it asked for is done.
    tokio::select! {
        () = answering => {}
        finished = session.idle(guard.grace) => {
            if !finished {
                log!(Warn, "calls-cut-off", in_flight = session.in_flight(), after_ms = guard.grace.as_millis() as u64);
            }
        }
        () = signals.recv() => log!(Warn, "calls-cut-off", in_flight = session.in_flight()),
    }
    drop(guard.keeper.gate.close());
    session.close();
    server.stop().await;
    let _ = tokio::time::timeout(Duration::from_secs(2), out.drained()).await;
    Ok(())
}

/// Passes messages on until the client ends its input.
async fn read(session: &Arc<Session>, inlet: &mut Inlet, server: &Supervised, origin: &Origin) {
    loop {
        let mut messages = 0;
        while let Some(line) = inlet.buffered() {
            messages += 1;
            if messages % TOGETHER == 0 {
                session.flush();
            }
            match line {
                Ok(frame) => session.from_client(&frame, origin),
                Err(error) => session.bad_message(&Fault::TooLarge(error.limit), &origin.sink),
            }
        }
        session.flush();
        AWAKE.stir(messages);
        server.ready().await;
        match inlet.fill().await {
            Ok(true) => {}
            Ok(false) => {
                if let Some(rest) = inlet.rest() {
                    session.from_client(&rest, origin);
                    session.flush();
                }
                return;
            }
            Err(error) => {
                log!(Error, "client-unreadable", because = error.to_string());
                return;
            }
        }
    }
}
