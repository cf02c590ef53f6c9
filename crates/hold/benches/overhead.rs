//! What it costs a server to be watched: `cargo bench -p toctou-hold`.
//!
//! A small program makes the same calls many times, once as it is and once under the filter, and
//! prints microseconds for each. The last lines are what a run costs before its server starts.

use std::time::{Duration, Instant};

use toctou_hold::{Hooks, Launch, Sandbox, SandboxSpec, Scratch, Supervisor};
use tokio::io::AsyncReadExt as _;

const SCRIPT: &str = r#"
import os, sys, time
def each(name, n, f):
    began = time.perf_counter()
    for _ in range(n):
        f()
    print(f"{name:34} {(time.perf_counter() - began) / n * 1e6:8.2f}")
r, w = os.pipe()
state = os.open("state", os.O_RDWR | os.O_CREAT)
each("getppid (passes)", 200000, os.getppid)
each("open for reading and close (passes)", 20000, lambda: os.close(os.open("state", os.O_RDONLY)))
def through_pipe():
    os.write(w, b"x")
    os.read(r, 1)
each("write to a pipe and read (no event)", 5000, through_pipe)
each("write to a file (an event)", 5000, lambda: os.pwrite(state, b"x", 0))
def rename():
    os.rename("state", "other")
    os.rename("other", "state")
each("two renames (two events)", 2000, rename)
"#;

async fn run(hooks: Hooks) -> String {
    let state = Scratch::create()
        .and_then(|s| s.new_state())
        .expect("a state");
    let sandbox =
        Sandbox::open(&SandboxSpec::default(), state, &Supervisor::new()).expect("a sandbox");
    let launch = Launch {
        argv: ["python3", "-c", SCRIPT].map(Into::into).to_vec(),
        hooks,
        ..Launch::default()
    };
    let mut process = sandbox.launch(&launch).await.expect("a process");
    let mut said = String::new();
    let mut out = process.stdout.take().expect("a pipe");
    out.read_to_string(&mut said).await.expect("text");
    sandbox.close().await;
    said
}

/// Milliseconds for each part of a run that does nothing, on average.
async fn empty_runs(hooks: Hooks) -> [f64; 4] {
    const RUNS: u32 = 50;
    let scratch = Scratch::create().expect("a folder");
    let mut parts = [Duration::ZERO; 4];
    for _ in 0..RUNS {
        let mut began = Instant::now();
        let mut lap = |n: usize| {
            parts[n] += began.elapsed();
            began = Instant::now();
        };
        let state = scratch.new_state().expect("a state");
        let sandbox =
            Sandbox::open(&SandboxSpec::default(), state, &Supervisor::new()).expect("a sandbox");
        lap(0);
        let launch = Launch {
            argv: vec!["true".into()],
            hooks,
            ..Launch::default()
        };
        let process = sandbox.launch(&launch).await.expect("a process");
        lap(1);
        process.wait().await;
        lap(2);
        sandbox.close().await;
        lap(3);
    }
    parts.map(|p| p.as_secs_f64() * 1e3 / f64::from(RUNS))
}

#[tokio::main]
async fn main() {
    let watched = Hooks {
        syscalls: true,
        ..Hooks::default()
    };
    println!(
        "microseconds each, not watched\n{}",
        run(Hooks::default()).await
    );
    println!("microseconds each, watched\n{}", run(watched).await);
    println!("milliseconds to open a sandbox, to launch `true`, until it ends, to close");
    for (name, hooks) in [("not watched", Hooks::default()), ("watched", watched)] {
        let [open, launch, end, close] = empty_runs(hooks).await;
        println!("{name:14} {open:8.2} {launch:8.2} {end:8.2} {close:8.2}");
    }
}
