//! The other process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use toctou_sync::{Backend, Begin, Call, Fence, Limit, LockRequest};

/// A process with a role. Killed when it is dropped.
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(role: &str, url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["other_process", "--exact", "--nocapture"])
            .env("TOCTOU_TEST_ROLE", role)
            .env("TOCTOU_TEST_URL", url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// The next line that it says with `say`.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.stdout.read_line(&mut line).unwrap(),
                0,
                "the other process is gone"
            );
            if let Some((_, said)) = line.trim_end().split_once("said: ") {
                return said.to_owned();
            }
        }
    }

    pub fn tell(&mut self) {
        self.stdin.write_all(b"go\n").unwrap();
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(text: impl std::fmt::Display) {
    println!("said: {text}");
    std::io::stdout().flush().unwrap();
}

fn wait_to_be_told() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

async fn open(url: &str) -> std::sync::Arc<dyn Backend> {
    // A short lease, so that the tests need not wait long for its end.
    #[cfg(feature = "redis")]
    if url.starts_with("redis:") {
        let options = toctou_sync::RedisOptions::new(url).lease(Duration::from_millis(600));
        return std::sync::Arc::new(toctou_sync::Redis::connect(options).await.unwrap());
    }
    toctou_sync::connect(url).await.unwrap()
}

pub async fn play_role() {
    let Ok(role) = std::env::var("TOCTOU_TEST_ROLE") else {
        return;
    };
    let backend = open(&std::env::var("TOCTOU_TEST_URL").unwrap()).await;
    match role.as_str() {
        // Holds everything there is to hold, until it is killed.
        "holder" => {
            let lock = backend
                .acquire(LockRequest::new().exclusive("key"))
                .await
                .unwrap();
            let permit = backend.enter("caller", Limit::at_most(1)).await.unwrap();
            let Begin::First(ticket) = backend.begin(Call::new("order", b"")).await.unwrap() else {
                panic!("not the first");
            };
            say(lock.fence());
            wait_to_be_told();
            drop((lock, permit, ticket));
        }
        // Waits in line, until it is killed.
        "waiter" => {
            say("waiting");
            let _guard = backend
                .acquire(LockRequest::new().exclusive("key"))
                .await
                .unwrap();
            say("inside");
            wait_to_be_told();
        }
        // Is stopped while it holds the lock, and writes when it goes on.
        "sleeper" => {
            let lock = backend
                .acquire(LockRequest::new().exclusive("key"))
                .await
                .unwrap();
            say(lock.fence());
            wait_to_be_told();
            let late = backend
                .write_fenced("cell", lock.fence(), b"late".to_vec())
                .await;
            say(format!("{late:?}"));
            tokio::time::timeout(Duration::from_secs(5), lock.lost())
                .await
                .expect("not told");
            say(format!("{:?}", lock.release().await));
        }
        // Adds to a counter in a file that nothing but the lock protects.
        "counter" => {
            let file = std::env::var("TOCTOU_TEST_FILE").unwrap();
            let mut last = Fence::new(0);
            for _ in 0..200 {
                let lock = backend
                    .acquire(LockRequest::new().exclusive("counter"))
                    .await
                    .unwrap();
                assert!(lock.fence() > last);
                last = lock.fence();
                let number: u64 = std::fs::read_to_string(&file).unwrap().parse().unwrap();
                tokio::task::yield_now().await;
                std::fs::write(&file, (number + 1).to_string()).unwrap();
            }
            say("done");
        }
        other => panic!("no role {other}"),
    }
}
