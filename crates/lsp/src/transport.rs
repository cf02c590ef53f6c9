//! Messages from and to an editor on standard input and output.
//!
//! `lsp-server` has this too, and ends at the first message that is not JSON
//! as its parser has it. Texts are strings of an editor, and half a surrogate
//! pair in one of them must not end the session: it counts as one unknown
//! character, which leaves all positions as they are.

use std::io::{self, BufRead, Read as _};
use std::thread::JoinHandle;

use crossbeam_channel::{bounded, unbounded};
use lsp_server::{Connection, Message};

/// No text is that large; a length that is wrong must not cost memory.
const MAX_MESSAGE: usize = 256 << 20;
const MAX_HEADER: u64 = 4096;

/// The writer ends when the connection is dropped.
pub(crate) fn stdio() -> (Connection, JoinHandle<io::Result<()>>) {
    let (sender, outgoing) = bounded::<Message>(64);
    let (incoming, receiver) = unbounded();
    let writer = std::thread::spawn(move || {
        let mut stdout = io::stdout().lock();
        outgoing
            .into_iter()
            .try_for_each(|message| message.write(&mut stdout))
    });
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        // What cannot be told apart into messages any more is the end.
        while let Ok(Some(body)) = body(&mut stdin) {
            let Some(message) = parse(&body) else {
                continue;
            };
            let is_exit = matches!(&message, Message::Notification(n) if n.method == "exit");
            if incoming.send(message).is_err() || is_exit {
                break;
            }
        }
    });
    (Connection { sender, receiver }, writer)
}

/// The bytes of the next message; nothing at the end of the stream.
fn body(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(MAX_HEADER).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if !line.ends_with('\n') {
            return Err(wrong());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        if name.eq_ignore_ascii_case("Content-Length") {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let length = length.filter(|length| *length <= MAX_MESSAGE);
    let length = length.ok_or_else(wrong)?;
    // Grown as it comes, not as it is announced.
    let mut bytes = Vec::new();
    let read = reader.take(length as u64).read_to_end(&mut bytes)?;
    Ok((read == length).then_some(bytes))
}

fn parse(body: &[u8]) -> Option<Message> {
    let text = String::from_utf8_lossy(body);
    serde_json::from_str(&text)
        .or_else(|_| serde_json::from_str(&whole_characters(&text)))
        .ok()
}

/// Half a surrogate pair, written as `\ud800`, becomes `\ufffd`.
fn whole_characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            // `\\` and the like.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out + rest
}

/// The number in an escape that `text` begins with.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_is_one_character() {
        for (sent, read) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\udc00\ud83e\udd80\ud83e""#, "\u{fffd}🦀\u{fffd}"),
            (r#""\\ud800 \" é""#, "\\ud800 \" é"),
            (r#""\ud800\ud800\udc00""#, "\u{fffd}\u{10000}"),
        ] {
            let text: String = serde_json::from_str(&whole_characters(sent)).expect("json");
            assert_eq!(text, read);
        }
        assert_eq!(whole_characters("\\"), "\\");
        assert_eq!(whole_characters("\\u12"), "\\u12");
        assert_eq!(whole_characters("\\é"), "\\é");
    }

    #[test]
    fn lengths_are_not_believed() {
        let read = |text: &str| body(&mut text.as_bytes());
        assert_eq!(
            read("Content-Length: 2\r\nX: y\r\n\r\n{}").expect("read"),
            Some(b"{}".to_vec())
        );
        assert_eq!(read("").expect("the end"), None);
        assert_eq!(read("Content-Length: 99\r\n\r\n{}").expect("cut"), None);
        for text in [
            "Content-Length: 18446744073709551615\r\n\r\n",
            "Content-Length: -1\r\n\r\n",
            "\r\n{}",
            "garbage\r\n",
            &"x".repeat(10_000),
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
