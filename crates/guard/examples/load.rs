//! A client that costs little, for `benches/guard`: keeps a call under way on each of many connections.
//!
//! `load ADDRESS CONNECTIONS SECONDS`: standard input has the request, head and body, with `%ID%` where the id
//! goes (as wide as that id is, so that its length stays true); what is written is the calls, and the calls per second.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

type Anything = Result<(), Box<dyn std::error::Error>>;

/// Ids have as many digits as their place in the request has letters.
const PLACE: &[u8] = b"%ID%";
const FIRST: usize = 1000;
const IDS: usize = 9000;

struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

fn main() -> Anything {
    let mut args = std::env::args().skip(1);
    let mut arg = || args.next().ok_or("load ADDRESS CONNECTIONS SECONDS");
    let (address, connections) = (arg()?, arg()?.parse()?);
    let time = Duration::try_from_secs_f64(arg()?.parse()?)?;
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    let place = request
        .windows(PLACE.len())
        .position(|bytes| bytes == PLACE)
        .ok_or("the request has no place for an id")?;
    let open = |_| -> std::io::Result<Connection> {
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            answer: Vec::with_capacity(4096),
        })
    };
    let mut connections = (0..connections).map(open).collect::<Result<Vec<_>, _>>()?;

    let (mut sent, mut done): (usize, usize) = (0, 0);
    let mut send = |stream: &mut TcpStream| {
        let id = FIRST + sent % IDS;
        request[place..place + PLACE.len()].copy_from_slice(id.to_string().as_bytes());
        sent += 1;
        stream.write_all(&request)
    };
    let begin = Instant::now();
    for connection in &mut connections {
        send(&mut connection.stream)?;
    }
    let mut bytes = vec![0; 1 << 16];
    while begin.elapsed() < time {
        let heard: Vec<usize> = {
            let mut polled: Vec<_> = connections
                .iter()
                .map(|connection| {
                    PollFd::from_borrowed_fd(connection.stream.as_fd(), PollFlags::IN)
                })
                .collect();
            poll(&mut polled, None)?;
            let ready = |(_, fd): &(usize, &PollFd<'_>)| !fd.revents().is_empty();
            polled
                .iter()
                .enumerate()
                .filter(ready)
                .map(|(at, _)| at)
                .collect()
        };
        for at in heard {
            let connection = &mut connections[at];
            match connection.stream.read(&mut bytes)? {
                0 => return Err("a connection was closed".into()),
                count => connection.answer.extend_from_slice(&bytes[..count]),
            }
            if is_whole(&connection.answer) {
                connection.answer.clear();
                done += 1;
                send(&mut connection.stream)?;
            }
        }
    }
    let rate = done as f64 / begin.elapsed().as_secs_f64();
    println!("{done} {rate:.0}");
    Ok(())
}

/// Whether an answer is complete.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = find(answer, b"\r\n\r\n") else {
        return false;
    };
    let (head, body) = (answer[..end].to_ascii_lowercase(), &answer[end + 4..]);
    match find(&head, b"content-length:") {
        Some(at) => {
            let digits = head[at + 15..].iter().skip_while(|byte| **byte == b' ');
            let length = digits
                .take_while(|byte| byte.is_ascii_digit())
                .fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
            body.len() >= length
        }
        None => body.ends_with(b"0\r\n\r\n"),
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
