//! Runs a command in a sandbox, with this program's standard input and output, and tells what it
//! does to its state: `cargo run -p toctou-hold --example trace -- [--awaits] COMMAND…`.
//!
//! To see why a server cannot be started, or which points a call has.

use std::path::PathBuf;

use toctou_hold::{Hooks, Launch, Limits, Sandbox, SandboxSpec, Scratch, Supervisor};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut argv: Vec<_> = std::env::args_os().skip(1).collect();
    let awaits = argv.first().is_some_and(|a| a == "--awaits");
    if awaits {
        argv.remove(0);
    }
    let hooks = Hooks {
        syscalls: !awaits,
        reads: false,
        awaits,
    };
    let supervisor = Supervisor::new();
    let spec = SandboxSpec {
        packages: vec![std::env::current_dir()?],
        ..SandboxSpec::default()
    };
    let state = Scratch::create()?.new_state()?;
    let sandbox = Sandbox::open(&spec, state, &supervisor)?;
    for note in &sandbox.isolation().notes {
        eprintln!("note: {note}");
    }
    let workspace = sandbox.paths().workspace.clone();
    for argument in &mut argv {
        if *argument == "{workspace}" {
            *argument = workspace.clone().into();
        }
    }
    let launch = Launch {
        argv,
        hooks,
        ..Launch::default()
    };
    let mut process = sandbox.launch(&launch).await?;
    if let Some(why) = process.blind() {
        eprintln!("note: system calls are not seen: {why}");
    }
    let (mut stdin, mut stdout, mut stderr) = (
        process.stdin.take().ok_or("no pipe")?,
        process.stdout.take().ok_or("no pipe")?,
        process.stderr.take().ok_or("no pipe")?,
    );
    tokio::spawn(async move { tokio::io::copy(&mut tokio::io::stdin(), &mut stdin).await });
    let out =
        tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::stdout()).await });
    let mark = supervisor.mark();
    tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::stderr()).await });
    let status = process.wait().await;
    let _ = out.await;
    for event in supervisor.events_since(mark) {
        eprintln!(
            "{:9.3} ms  {:?} {event}",
            event.at.as_secs_f64() * 1e3,
            event.class
        );
    }
    let state = sandbox.close().await;
    for (key, entry) in state.snapshot(&Limits::default())?.entries {
        if let Some(bytes) = entry.bytes() {
            eprintln!("{} ({} bytes)", PathBuf::from(key).display(), bytes.len());
        }
    }
    eprintln!("ended: {status:?}");
    Ok(())
}
