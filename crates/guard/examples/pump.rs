//! Copies bytes between standard input and output, or one connection, and a
//! command, and nothing else: for `benches/guard`, what any process in between
//! costs. `pump [--listen] COMMAND ARG…`

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1).peekable();
    let listen = args.next_if(|arg| arg == "--listen").is_some();
    let mut child = Command::new(args.next().unwrap_or_default())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut there), Some(mut back)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(());
    };
    let (mut input, mut output) = if listen {
        connection()?
    } else {
        (
            File::open("/dev/stdin")?,
            File::options().write(true).open("/dev/stdout")?,
        )
    };
    let mut bytes = vec![0; 1 << 16];
    loop {
        let mut streams = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::new(&back, PollFlags::IN),
        ];
        poll(&mut streams, None)?;
        let [asked, answered] = streams.map(|stream| !stream.revents().is_empty());
        if asked {
            match input.read(&mut bytes)? {
                0 => break,
                count => there.write_all(&bytes[..count])?,
            }
        }
        if answered {
            match back.read(&mut bytes)? {
                0 => break,
                count => output.write_all(&bytes[..count])?,
            }
        }
    }
    drop(there);
    child.wait().map(|_| ())
}

/// The first who connects; where to is said on standard error.
fn connection() -> std::io::Result<(File, File)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    eprintln!("{}", listener.local_addr()?);
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let output = stream.try_clone()?;
    Ok((OwnedFd::from(stream).into(), OwnedFd::from(output).into()))
}
