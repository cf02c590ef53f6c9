//! A server on pipes.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc::{self, Receiver, Sender};

use serde_json::Value;
use toctou_guard::wire::Lines;

use super::{Incoming, Transport};

/// A longer line is no message of a server in its right mind.
const LONGEST: usize = 16 << 20;

/// Both ends of a server's standard input and output.
pub struct Pipes {
    pub stdin: File,
    pub stdout: File,
}

struct Stdio {
    // A server that does not read would block whoever writes.
    lines: Sender<Vec<u8>>,
}

impl Transport for Stdio {
    fn send(&mut self, messages: &[Value]) -> io::Result<()> {
        let mut all = Vec::new();
        for message in messages {
            serde_json::to_writer(&mut all, message)?;
            all.push(b'\n');
        }
        self.lines
            .send(all)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// Starts the threads that write and read.
pub fn connect(pipes: Pipes) -> io::Result<(Box<dyn Transport>, Receiver<Incoming>)> {
    let Pipes { mut stdin, stdout } = pipes;
    let (lines, to_write) = mpsc::channel::<Vec<u8>>();
    let (found, incoming) = mpsc::channel();
    std::thread::Builder::new()
        .name("to server".to_owned())
        .spawn(move || {
            for bytes in to_write {
                if stdin
                    .write_all(&bytes)
                    .and_then(|()| stdin.flush())
                    .is_err()
                {
                    return;
                }
            }
        })?;
    std::thread::Builder::new()
        .name("from server".to_owned())
        .spawn(move || read(stdout, &found))?;
    Ok((Box::new(Stdio { lines }), incoming))
}

fn read(mut stdout: File, found: &Sender<Incoming>) {
    let mut lines = Lines::new(LONGEST);
    let mut buffer = vec![0; 64 << 10];
    loop {
        while let Some(line) = lines.next_line() {
            let incoming = match line {
                Ok(line) => parse(&line),
                Err(error) => Incoming::Garbage(error.to_string()),
            };
            if found.send(incoming).is_err() {
                return;
            }
        }
        match stdout.read(&mut buffer) {
            Ok(count) if count > 0 => lines.room().extend_from_slice(&buffer[..count]),
            _ => {
                let _ = found.send(Incoming::End);
                return;
            }
        }
    }
}

fn parse(line: &[u8]) -> Incoming {
    match serde_json::from_slice::<Value>(line) {
        Ok(message) if message.is_object() => Incoming::Message(message),
        _ => {
            let text: String = String::from_utf8_lossy(line).chars().take(200).collect();
            Incoming::Garbage(text)
        }
    }
}
