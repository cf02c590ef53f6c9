//! Real servers, started by the tests and gone with them.
//!
//! A shell stands between: it stops the server and removes its folder when its standard input ends, which also happens
//! when the test is killed.
#![allow(dead_code, clippy::unwrap_used)] // each test uses a part

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    kind: Kind,
    port: u16,
    folder: PathBuf,
    secure: bool,
    shell: Option<Child>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Postgres,
}

fn program(name: &str) -> PathBuf {
    let versions = glob("/usr/lib/postgresql")
        .into_iter()
        .map(|version| version.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(versions)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{name} was not found: run ./scripts/services install"))
}

fn glob(folder: &str) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// PostgreSQL does not run as root.
fn unprivileged(script: String) -> String {
    if rustix::process::geteuid().is_root() {
        format!("exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -c '{script}'")
    } else {
        script
    }
}

impl Server {
    pub fn start(kind: Kind) -> Self {
        Self::prepare(kind, None)
    }

    /// One that speaks TLS, with `server.pem` and `server.key` of a folder. Redis then speaks nothing else; PostgreSQL
    /// does, to those who do not ask.
    pub fn start_secure(kind: Kind, certificates: &Path) -> Self {
        Self::prepare(kind, Some(certificates))
    }

    fn prepare(kind: Kind, certificates: Option<&Path>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("toctou-server-")
            .tempdir()
            .unwrap()
            .keep();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        for file in ["server.pem", "server.key"] {
            if let Some(certificates) = certificates {
                std::fs::copy(certificates.join(file), folder.join(file)).unwrap();
            }
        }
        if kind == Kind::Postgres {
            let data = folder.join("data");
            std::fs::create_dir(&data).unwrap();
            if rustix::process::geteuid().is_root() {
                let owned = Command::new("chown")
                    .arg("-R")
                    .arg("postgres")
                    .arg(&folder)
                    .status();
                assert!(owned.unwrap().success());
            }
            let made = unprivileged(format!(
                "cd / && {} -D {} -U toctou --auth=trust --no-sync --no-instructions",
                program("initdb").display(),
                data.display()
            ));
            let made = Command::new("sh")
                .args(["-c", &made])
                .stdout(Stdio::null())
                .output();
            let made = made.unwrap();
            assert!(
                made.status.success(),
                "initdb: {}",
                String::from_utf8_lossy(&made.stderr)
            );
        }
        let mut server = Self {
            kind,
            port,
            folder,
            secure: certificates.is_some(),
            shell: None,
        };
        server.run();
        server
    }

    pub fn url(&self) -> String {
        match self.kind {
            Kind::Redis => format!("redis://127.0.0.1:{}/", self.port),
            Kind::Postgres => format!("postgres://toctou@127.0.0.1:{}/postgres", self.port),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What makes the server speak TLS.
    fn options_of_tls(&self) -> String {
        let folder = self.folder.display();
        match self.kind {
            _ if !self.secure => String::new(),
            Kind::Redis => format!(
                "--port 0 --tls-port {} --tls-auth-clients no --tls-cert-file {folder}/server.pem --tls-key-file {folder}/server.key",
                self.port
            ),
            Kind::Postgres => format!(
                "-c ssl=on -c ssl_cert_file={folder}/server.pem -c ssl_key_file={folder}/server.key"
            ),
        }
    }

    /// Starts it (again), and waits until it takes connections.
    pub fn run(&mut self) {
        let (folder, port) = (self.folder.display(), self.port);
        let tls = self.options_of_tls();
        let (command, stop) = match self.kind {
            Kind::Redis => (
                format!(
                    "{} --port {port} --bind 127.0.0.1 --save \"\" --appendonly no --dir {folder} {tls}",
                    program("redis-server").display()
                ),
                "KILL",
            ),
            Kind::Postgres => (
                format!(
                    "{} -D {folder}/data -p {port} -k {folder} -c fsync=off -c listen_addresses=127.0.0.1 {tls}",
                    program("postgres").display()
                ),
                "QUIT",
            ),
        };
        let script = format!(
            "cd /; {command} >{folder}/log 2>&1 </dev/null & server=$!; read word; kill -{stop} $server; wait $server; [ \"$word\" = stop ] || rm -rf {folder}"
        );
        let script = match self.kind {
            Kind::Redis => script,
            Kind::Postgres => unprivileged(script),
        };
        let shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.shell = Some(shell);
        let start = Instant::now();
        while !self.is_ready() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the server did not start: {}",
                std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn is_ready(&self) -> bool {
        match self.kind {
            Kind::Redis => TcpStream::connect(("127.0.0.1", self.port)).is_ok(),
            Kind::Postgres => Command::new(program("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status()
                .unwrap()
                .success(),
        }
    }

    /// Whoever connects to this PostgreSQL from now on needs a password.
    pub fn demand_password(&self, password: &str) {
        let access = "host all all all scram-sha-256\n";
        std::fs::write(self.folder.join("data/pg_hba.conf"), access).unwrap();
        let set = format!(
            "SET password_encryption = 'scram-sha-256'; ALTER USER toctou PASSWORD '{password}'"
        );
        let done = Command::new(program("psql"))
            .args(["-q", "-d", &self.url()])
            .args(["-c", &set, "-c", "SELECT pg_reload_conf()"])
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "psql: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Stops it at once, and waits until it is gone.
    pub fn stop(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            // Told to, it leaves the folder for the next run.
            let _ = shell.stdin.take().unwrap().write_all(b"stop\n");
            shell.wait().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        remove(&self.folder);
    }
}

/// An authority (`authority.pem`) and, by it, a server's certificate for these names (`DNS:localhost,IP:127.0.0.1`).
pub fn certificates(folder: &Path, names: &str) {
    let script = format!(
        "set -e; cd {}
        new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'
        openssl req -x509 $new -keyout authority.key -out authority.pem -subj '/CN=an authority'
        openssl req $new -keyout server.key -out server.csr -subj '/CN=a server'
        printf 'subjectAltName={names}\nbasicConstraints=CA:FALSE\n' >server.ext
        openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
        chmod 600 server.key",
        folder.display()
    );
    let made = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(
        made.status.success(),
        "openssl: {}",
        String::from_utf8_lossy(&made.stderr)
    );
}

fn remove(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}
