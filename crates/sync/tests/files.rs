//! Files under attack: many writers, readers that look all the time, links that are swapped.
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags, renameat_with};
use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use toctou_sync::files::{self, Root};
use toctou_sync::{Error, Host, HostOptions, Wait};

fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::File { source, .. } => source.kind(),
        other => panic!("{other:?}"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn exactly_one_creates() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let created = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let (file, created) = (&file, &created);
            scope.spawn(move || match files::create(file, &[thread; 10_000]) {
                Ok(()) => {
                    created.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => assert_eq!(kind(&error), ErrorKind::AlreadyExists),
            });
        }
    });
    assert_eq!(created.into_inner(), 1);
    let contents = std::fs::read(&file).unwrap();
    assert!(contents.len() == 10_000 && contents.iter().all(|byte| *byte == contents[0]));
    assert_eq!(names(folder.path()), ["file"], "temporary files are left");
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_link_counts_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link"), folder.path().join("target"));
    symlink(&target, &link).unwrap();
    assert_eq!(
        kind(&files::create(&link, b"x").unwrap_err()),
        ErrorKind::AlreadyExists
    );
    assert!(!target.exists());
    files::replace(&link, b"x").unwrap();
    assert!(!target.exists() && link.symlink_metadata().unwrap().is_file());
}

#[test]
fn readers_never_see_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    files::replace(&file, &[0; 50_000]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !stop.load(Ordering::SeqCst) {
                let seen = std::fs::read(&file).unwrap();
                assert!(seen.len() >= 50_000, "{} bytes", seen.len());
                assert!(seen.iter().all(|byte| *byte == seen[0]), "parts of two");
                looks += 1;
            }
            looks
        });
        for round in 1..60u8 {
            files::replace(&file, &vec![round; 50_000 + usize::from(round)]).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
    assert_eq!(
        file.metadata().unwrap().mode() & 0o777,
        0o640,
        "permissions are kept"
    );
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_failure_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("directory");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("inside"), "x").unwrap();
    assert!(files::replace(&directory, b"y").is_err());
    assert_eq!(names(folder.path()), ["directory"]);
    assert_eq!(
        kind(&files::create(folder.path().join("no/such"), b"").unwrap_err()),
        ErrorKind::NotFound
    );
    assert!(matches!(files::create("/", b""), Err(Error::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_update_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counter");
    let open = || Host::open(HostOptions::in_directory(folder.path().join("locks"))).unwrap();
    let hosts = [Arc::new(open()), Arc::new(open())];
    // Two paths to one file.
    symlink(folder.path(), folder.path().join("detour")).unwrap();
    let paths = [file.clone(), folder.path().join("detour/counter")];
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..20 {
        let (host, path) = (hosts[task % 2].clone(), paths[task / 2 % 2].clone());
        tasks.spawn(async move {
            files::update(&*host, path, Wait::Forever, |old| {
                let old: u32 =
                    old.map_or(0, |old| String::from_utf8(old).unwrap().parse().unwrap());
                Ok((old + 1).to_string().into_bytes())
            })
            .await
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap().unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "20");

    let refused = files::update(&*hosts[0], &file, Wait::Forever, |_| {
        Err(Error::Invalid("no".into()))
    });
    assert!(matches!(refused.await, Err(Error::Invalid(_))));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "20");
    symlink(&file, folder.path().join("link")).unwrap();
    let link = files::update(
        &*hosts[0],
        folder.path().join("link"),
        Wait::Forever,
        |_| Ok(vec![]),
    );
    assert!(link.await.is_err());
}

/// The update goes on when nobody waits for it, and keeps others out until it is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_update_is_finished_under_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let host = Host::open(HostOptions::in_directory(folder.path().join("locks"))).unwrap();
    let slow = files::update(&host, &file, Wait::Forever, |_| {
        std::thread::sleep(Duration::from_millis(150));
        Ok(b"slow".to_vec())
    });
    assert!(
        tokio::time::timeout(Duration::from_millis(30), slow)
            .await
            .is_err()
    );
    files::update(&host, &file, Wait::Forever, |old| {
        assert_eq!(old.as_deref(), Some(b"slow".as_slice()));
        Ok(b"next".to_vec())
    })
    .await
    .unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "next");
}

/// Somebody puts a link to a secret place where a directory was, again and again. Checking first would be a matter of
/// luck. `link`: what is swapped for the trap is a link itself, to a directory inside.
fn swap(link: bool) {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    let outside = folder.path().join("outside");
    for directory in [&inside.join("real"), &outside] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::write(inside.join("real/file"), "public").unwrap();
    std::fs::write(outside.join("file"), "secret").unwrap();
    symlink("../outside", inside.join("trap")).unwrap();
    if link {
        symlink("real", inside.join("swapped")).unwrap();
    } else {
        std::fs::rename(inside.join("real"), inside.join("swapped")).unwrap();
    }
    let root = Root::open(&inside).unwrap();
    let stop = AtomicBool::new(false);
    let public = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let (one, other) = (inside.join("swapped"), inside.join("trap"));
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (mut public, mut round) = (0, 0);
        // On a busy machine the other thread may not have run yet.
        while round < 2000 || (public == 0 && round < 1_000_000) {
            if let Ok(contents) = root.read("swapped/file", 1000) {
                assert_eq!(contents, b"public", "the secret got out");
                public += 1;
            }
            if round % 20 == 0 {
                let _ = root.replace("swapped/written", b"x");
            }
            round += 1;
        }
        stop.store(true, Ordering::SeqCst);
        public
    });
    assert!(public > 0);
    assert_eq!(names(&outside), ["file"], "something was written outside");
}

#[test]
fn swapped_links_lead_nowhere() {
    swap(true);
    swap(false);
}

/// Everything that a root can do, and what it must not.
fn confined() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let root = Root::open(folder.path()).unwrap();
    root.create("sub/file", b"one").unwrap();
    assert_eq!(
        kind(&root.create("sub/file", b"two").unwrap_err()),
        ErrorKind::AlreadyExists
    );
    root.replace("sub/file", b"three").unwrap();
    assert_eq!(root.read("sub/file", 5).unwrap(), b"three");
    assert_eq!(
        kind(&root.read("sub/file", 4).unwrap_err()),
        ErrorKind::FileTooLarge
    );
    root.remove("sub/file").unwrap();
    for out in ["../x", "/tmp/x", "sub/../../x", "", "..", "sub/.."] {
        assert!(root.create(out, b"x").is_err(), "{out}");
        assert!(root.remove(out).is_err(), "{out}");
    }
    rustix::fs::mknodat(
        CWD,
        folder.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    // It would wait for a writer.
    assert_eq!(
        kind(&root.read("pipe", 10).unwrap_err()),
        ErrorKind::InvalidInput
    );
}

#[test]
fn confined_operations() {
    confined();
}

/// Runs in a thread for which `openat2` does not exist (an old kernel) or is forbidden (a container).
fn without_openat2(answer: Errno, run: impl FnOnce() + Send) {
    let filter = SeccompFilter::new(
        [(libc::SYS_openat2, vec![])].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(answer.raw_os_error() as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let filter: BpfProgram = filter.unwrap().try_into().unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            seccompiler::apply_filter(&filter).unwrap();
            let (flags, inside) = (OFlags::RDONLY, ResolveFlags::BENEATH);
            let asked = rustix::fs::openat2(CWD, ".", flags, Mode::empty(), inside);
            assert_eq!(asked.unwrap_err(), answer, "there is no filter");
            run();
        });
        thread.join().unwrap();
    });
}

#[test]
fn where_the_kernel_does_not_confine() {
    for answer in [Errno::PERM, Errno::NOSYS] {
        without_openat2(answer, || {
            confined();
            swap(false);
        });
        // Links that stay inside are refused as well: nobody can tell them from others in one step.
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "x").unwrap();
        symlink("file", folder.path().join("link")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert_eq!(root.read("link", 10).unwrap(), b"x");
        without_openat2(answer, || {
            assert_eq!(root.read("file", 10).unwrap(), b"x");
            match root.read("link", 10).unwrap_err() {
                Error::File { source, .. } => {
                    assert_eq!(source.raw_os_error(), Some(libc::ELOOP));
                }
                other => panic!("{other:?}"),
            }
        });
    }
}
