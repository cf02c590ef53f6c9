//! A Git server and hostile archives, made by the tests.
#![allow(dead_code, clippy::unwrap_used)] // each test uses a part

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs git with nothing of the user's in it.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git is installed");
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with these files in one commit; gives the commit.
pub fn repository(folder: &Path, files: &[(&str, &str)]) -> String {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet"]);
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(folder, &["add", "-A", "-f"]);
    git(folder, &["commit", "--quiet", "-m", "files"]);
    git(folder, &["rev-parse", "HEAD"])
}

/// Serves the repositories of a folder by Git's own `http-backend`, until the test ends.
pub struct GitServer {
    pub port: u16,
    asked: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl GitServer {
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = folder.canonicalize().unwrap();
        let asked = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
        let count = std::sync::Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let folder = folder.clone();
                std::thread::spawn(move || {
                    let _ = answer(stream, &folder);
                });
            }
        });
        Self { port, asked }
    }

    /// How often somebody came.
    pub fn asked(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }
}

fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (
        words.next().unwrap_or_default().to_owned(),
        words.next().unwrap_or_default().to_owned(),
    );
    let (mut length, mut chunked) = (0, false);
    let (mut kind, mut encoding, mut protocol) = Default::default();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "transfer-encoding" => chunked = value == "chunked",
            "content-type" => kind = value.to_owned(),
            "content-encoding" => encoding = value.to_owned(),
            "git-protocol" => protocol = value.to_owned(),
            "expect" => stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            _ => {}
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    if let Some(to) = path.strip_prefix("/redirect/") {
        // Away from here, whatever is asked.
        let answer = format!(
            "HTTP/1.1 302 Found\r\nLocation: /{to}?{query}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        return stream.write_all(answer.as_bytes());
    }
    // Time enough for a test to do something to whoever asks.
    let path = match path.strip_prefix("/slow") {
        Some(path) => {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            path
        }
        None => path,
    };
    if path.starts_with("/silent/") {
        std::thread::sleep(std::time::Duration::from_secs(60));
        return Ok(());
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    } else {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    }
    let mut backend = Command::new("git");
    backend
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", kind)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", encoding)
        .env("GIT_PROTOCOL", protocol)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = backend.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || {
            let _ = stdin.write_all(&body);
        });
    }
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let (mut status, mut head) = ("200 OK".to_owned(), String::new());
    loop {
        let mut line = String::new();
        output.read_line(&mut line)?;
        match line.trim().split_once(": ") {
            Some(("Status", value)) => value.clone_into(&mut status),
            Some(_) => head += &format!("{}\r\n", line.trim()),
            None => break,
        }
    }
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n"
    )?;
    let _ = std::io::copy(&mut output, &mut stream);
    child.wait().map(|_| ())
}

/// Bytes of a tar file, entry by entry, without any checks.
#[derive(Default)]
pub struct Tar(Vec<u8>);

impl Tar {
    pub fn entry(mut self, name: &str, kind: u8, link: &str, content: &[u8]) -> Self {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub fn write(mut self, folder: &Path, name: &str) -> PathBuf {
        self.0.extend_from_slice(&[0; 1024]);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&self.0).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, packed.finish().unwrap()).unwrap();
        path
    }
}

/// Bytes of a zip file, entry by entry, without any checks. The mode is that of Unix.
#[derive(Default)]
pub struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    pub fn entry(mut self, name: &str, mode: u32, content: &[u8]) -> Self {
        let mut packed =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(content).unwrap();
        let packed = packed.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let offset = self.bytes.len() as u32;
        let mut common = Vec::new();
        for number in [20_u16, 0x0800, 8, 0, 0x21] {
            common.extend_from_slice(&number.to_le_bytes());
        }
        for number in [crc.sum(), packed.len() as u32, content.len() as u32] {
            common.extend_from_slice(&number.to_le_bytes());
        }
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(b"PK\x03\x04");
        self.bytes.extend_from_slice(&common);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(&packed);
        self.directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        self.directory.extend_from_slice(&common);
        self.directory.extend_from_slice(&[0; 6]);
        self.directory
            .extend_from_slice(&(mode << 16).to_le_bytes());
        self.directory.extend_from_slice(&offset.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.count += 1;
        self
    }

    pub fn bytes(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        let size = self.directory.len() as u32;
        self.bytes.append(&mut self.directory);
        self.bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend_from_slice(&self.count.to_le_bytes());
        self.bytes.extend_from_slice(&self.count.to_le_bytes());
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(&start.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes
    }

    pub fn write(self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }
}
