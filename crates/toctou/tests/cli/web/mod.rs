//! `toctou serve` as a process, and a client by hand, so that a test can send what no browser would.

#![allow(unreachable_pub)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub struct Site {
    pub child: Child,
    pub address: String,
    said: Arc<Mutex<String>>,
}

impl Site {
    /// In a folder of its own, with its store there unless the options name one.
    pub fn start(folder: &Path, options: &[&str]) -> Self {
        let tmp = folder.join("tmp");
        std::fs::create_dir_all(&tmp).expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_toctou"));
        command.arg("serve").args(options).current_dir(folder);
        if !options.contains(&"--store") {
            command.args(["--store", "serve.db"]);
        }
        if !options.contains(&"--worker") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command
            .env("TMPDIR", &tmp)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("toctou serve");
        let mut lines = BufReader::new(child.stderr.take().expect("errors")).lines();
        let said = Arc::<Mutex<String>>::default();
        let address = loop {
            let line = lines.next().expect("a line before the end").expect("text");
            eprintln!("{line}");
            if let Some(rest) = line.strip_prefix("toctou serve: ") {
                break rest
                    .trim_start_matches("http://")
                    .trim_end_matches('/')
                    .to_owned();
            }
        };
        let all = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("{line}");
                *all.lock().expect("text") += &(line + "\n");
            }
        });
        Self {
            child,
            address,
            said,
        }
    }

    pub fn said(&self) -> String {
        self.said.lock().expect("text").clone()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    }

    pub fn stop(mut self) {
        self.signal("TERM");
        self.child.wait().expect("an end");
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a timeout");
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if method == "POST" {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "Connection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("sent");
        // A server may answer before it has read all.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub fn submit(&self, source: &str) -> Answer {
        let body = serde_json::json!({ "source": source }).to_string();
        let kind = ("Content-Type", "application/json");
        self.send("POST", "/api/scans", &[kind], body.as_bytes())
    }

    pub fn upload(&self, name: &str, bytes: &[u8]) -> Answer {
        let kind = ("Content-Type", "application/zip");
        self.send("POST", &format!("/api/scans?name={name}"), &[kind], bytes)
    }

    pub fn scan(&self, id: &str) -> Value {
        self.get(&format!("/api/scans/{id}")).json()
    }

    /// Waits until a scan is over.
    pub fn wait(&self, id: &str) -> Value {
        let start = Instant::now();
        loop {
            let scan = self.scan(id);
            if scan["state"] == "done" || scan["state"] == "failed" {
                return scan;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "still {scan}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Submits, waits, and gives why it failed.
    pub fn failure(&self, answer: &Answer) -> String {
        if answer.status != 202 {
            assert_eq!(answer.status, 400, "{}", answer.body);
            return answer.json()["error"]["what"]
                .as_str()
                .expect("text")
                .to_owned();
        }
        let scan = self.wait(&answer.id());
        assert_eq!(scan["state"], "failed", "{scan}");
        scan["error"].as_str().expect("text").to_owned()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        let mut body = body.to_owned();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = dechunked(&body);
        }
        Self {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub fn id(&self) -> String {
        assert_eq!(self.status, 202, "{}", self.body);
        self.json()["id"].as_str().expect("an id").to_owned()
    }
}

fn dechunked(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out += &after[..size];
        rest = after[size..].trim_start_matches("\r\n");
    }
    out
}
