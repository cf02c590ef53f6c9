//! Copies bytes between standard input and output and a command, and nothing
//! else: for `benches/guard`, what any process in between costs.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut child = Command::new(args.next().unwrap_or_default())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut there), Some(mut back)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(());
    };
    let (mut input, mut output) = (
        std::fs::File::open("/dev/stdin")?,
        std::fs::File::options().write(true).open("/dev/stdout")?,
    );
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
