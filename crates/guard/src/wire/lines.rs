//! One message per line, out of bytes as they come.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

/// A line that passed the limit. What follows, up to the end of the line, is
/// dropped; the next line is read as usual.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a line is longer than {limit} bytes")]
pub struct LineTooLong {
    pub limit: usize,
}

/// Less room than this is not worth a system call.
const LEAST_ROOM: usize = 8 << 10;

/// Cuts a stream into lines. Holds at most one line and one read.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// Up to here there is no end of line.
    looked: usize,
    limit: usize,
    skipping: bool,
}

impl Lines {
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            looked: 0,
            limit,
            skipping: false,
        }
    }

    /// Where the next bytes go, with room for some.
    pub fn room(&mut self) -> &mut BytesMut {
        // What a pipe holds, at a time: lines that are still in use keep the
        // rest from being used again, and so each would cost as much otherwise.
        if self.buffer.capacity() - self.buffer.len() < LEAST_ROOM {
            self.buffer.reserve(64 << 10);
        }
        &mut self.buffer
    }

    /// The next line without its end, if one is complete.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.looked..]) else {
                self.looked = self.buffer.len();
                if self.skipping {
                    self.forget();
                } else if self.buffer.len() > self.limit {
                    self.skipping = true;
                    self.forget();
                    return Some(Err(LineTooLong { limit: self.limit }));
                }
                return None;
            };
            let mut line = self.buffer.split_to(self.looked + found + 1);
            self.looked = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            line.truncate(line.len() - 1);
            if line.len() > self.limit {
                return Some(Err(LineTooLong { limit: self.limit }));
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return Some(Ok(line.freeze()));
        }
    }

    /// What is left when the stream ends without an end of line.
    pub fn rest(&mut self) -> Option<Bytes> {
        let rest = self.buffer.split();
        self.looked = 0;
        let wanted = !self.skipping && rest.iter().any(|byte| !byte.is_ascii_whitespace());
        wanted.then(|| rest.freeze())
    }

    fn forget(&mut self) {
        // The memory too: it may be as large as the limit.
        self.buffer = BytesMut::new();
        self.looked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(lines: &mut Lines, bytes: &[u8]) -> Vec<Result<Bytes, LineTooLong>> {
        lines.room().extend_from_slice(bytes);
        std::iter::from_fn(|| lines.next_line()).collect()
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = "{\"a\":1}\r\n\n  \n{\"b\":\"\u{2028}\"}\nrest".as_bytes();
        for size in 1..text.len() {
            let mut lines = Lines::new(100);
            let got: Vec<Bytes> = text
                .chunks(size)
                .flat_map(|chunk| feed(&mut lines, chunk))
                .map(|line| line.expect("short"))
                .collect();
            assert_eq!(
                got,
                ["{\"a\":1}\r".as_bytes(), "{\"b\":\"\u{2028}\"}".as_bytes()]
            );
            assert_eq!(lines.rest().as_deref(), Some(&b"rest"[..]));
        }
    }

    #[test]
    fn a_line_without_end_is_dropped_and_costs_no_memory() {
        let mut lines = Lines::new(1000);
        let mut errors = 0;
        for _ in 0..1000 {
            errors += feed(&mut lines, &[b'x'; 999]).len();
            assert!(lines.buffer.len() <= 2000);
        }
        assert_eq!(errors, 1);
        let after = feed(&mut lines, b"xx\nok\n");
        assert_eq!(after, [Ok(Bytes::from_static(b"ok"))]);
    }

    #[test]
    fn the_limit_holds_for_a_line_that_comes_at_once() {
        let mut lines = Lines::new(3);
        let got = feed(&mut lines, b"abcd\nabc\n");
        assert_eq!(
            got,
            [
                Err(LineTooLong { limit: 3 }),
                Ok(Bytes::from_static(b"abc"))
            ]
        );
    }
}
