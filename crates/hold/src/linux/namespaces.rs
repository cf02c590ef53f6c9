//! What a server sees: the host, read-only; its state, at fixed paths; nothing else.
//!
//! The root is a new one, with the host's folders bound into it, because fixed paths need mount
//! points that the host does not have. `/dev`, `/run`, `/tmp` and `/proc` are made new: through
//! devices and sockets one could reach outside even if all files are read-only.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::sys::init::{Failure, Init, Maps, Plan, Planned, Step, ids};
use crate::error::Error;
use crate::sandbox::{HOME, SIDE, SandboxSpec, WORKSPACE, copy_package};
use crate::scratch::{Area, State};
use crate::snapshot::{UPPER, WORK};

/// Folders of the host's root that are not taken over.
const MADE_NEW: [&str; 5] = ["dev", "proc", "run", "tmp", "toctou"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];
/// Programs live here on some systems.
const RUN_PROGRAMS: [&str; 2] = ["/run/current-system", "/run/wrappers"];
/// What `/etc/resolv.conf` may lead to.
const RUN_RESOLVER: [&str; 2] = ["/run/systemd/resolve", "/run/resolvconf"];

/// A sandbox by namespaces.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub init: Init,
    /// What servers have to enter.
    pub kinds: libc::c_int,
    pub notes: Vec<String>,
    /// Paths that can be written, as seen from within.
    pub writable: Vec<PathBuf>,
}

/// How the attempt failed, in words.
#[derive(Debug)]
pub(crate) enum Refused {
    /// To be had in another way, or not at all.
    Why(String),
    /// Not a matter of namespaces.
    Error(Error),
}

/// With overlays for the packages if possible, else with copies.
pub(crate) fn open(spec: &SandboxSpec, state: &State, side: &Path) -> Result<Namespaces, Refused> {
    match open_with(spec, state, side, true) {
        Err(Attempt::Overlay(why)) => {
            let mut got = open_with(spec, state, side, false).map_err(Attempt::refused)?;
            got.notes
                .push(format!("package folders are copied: no overlay ({why})"));
            Ok(got)
        }
        other => other.map_err(Attempt::refused),
    }
}

enum Attempt {
    Overlay(io::Error),
    Why(String),
    Error(Error),
}

impl Attempt {
    fn refused(self) -> Refused {
        match self {
            Self::Overlay(e) => Refused::Why(format!("no overlay: {e}")),
            Self::Why(why) => Refused::Why(why),
            Self::Error(e) => Refused::Error(e),
        }
    }
}

fn open_with(
    spec: &SandboxSpec,
    state: &State,
    side: &Path,
    overlay: bool,
) -> Result<Namespaces, Attempt> {
    let root = side.join("root");
    fs::create_dir_all(&root).map_err(|e| Attempt::Error(Error::file("create", &root)(e)))?;
    let mut kinds =
        libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if !spec.network {
        kinds |= libc::CLONE_NEWNET;
    }
    let mut failure = None;
    for way in ways(kinds) {
        let mut build = Builder::new(root.clone(), way.kinds & libc::CLONE_NEWUSER != 0, overlay);
        build.all(spec, state, side).map_err(Attempt::Error)?;
        let plan = Plan {
            namespaces: way.kinds,
            maps: way.maps,
            steps: build.steps,
        };
        match Init::start(&plan) {
            Ok(init) => {
                for (step, error) in &init.failed {
                    if let Some(note) = build.told.get(step) {
                        build.notes.push(format!("{note} ({error})"));
                    }
                }
                return Ok(Namespaces {
                    init,
                    kinds: way.kinds,
                    notes: build.notes,
                    writable: build.writable,
                });
            }
            Err(Failure::Step(n, e))
                if matches!(
                    plan.steps.get(n).map(|p| &p.step),
                    Some(Step::Overlay { .. })
                ) =>
            {
                return Err(Attempt::Overlay(e));
            }
            // The first way is the best one, and its failure the one to be told.
            Err(f) => {
                failure.get_or_insert_with(|| why(&f, &plan));
            }
        }
    }
    Err(Attempt::Why(failure.unwrap_or_default()))
}

struct Way {
    kinds: libc::c_int,
    maps: Option<Maps>,
}

/// Root keeps all users as they are, if it may; anybody else is only themselves. Root does not
/// need a user namespace, but with one, less can go wrong.
fn ways(kinds: libc::c_int) -> Vec<Way> {
    let (uid, gid) = ids();
    let alone = Way {
        kinds,
        maps: Some(Maps {
            uid: format!("{uid} {uid} 1"),
            gid: format!("{gid} {gid} 1"),
            deny_setgroups: true,
        }),
    };
    if uid != 0 {
        return vec![alone];
    }
    let all = Way {
        kinds,
        maps: Some(Maps {
            uid: same_as("/proc/self/uid_map"),
            gid: same_as("/proc/self/gid_map"),
            deny_setgroups: false,
        }),
    };
    let plain = Way {
        kinds: kinds & !libc::CLONE_NEWUSER,
        maps: None,
    };
    vec![all, alone, plain]
}

/// Maps everyone who exists here to themselves.
fn same_as(map: &str) -> String {
    let text = fs::read_to_string(map).unwrap_or_default();
    let mut out = String::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(first), Some(_), Some(count)) = (words.next(), words.next(), words.next()) {
            out.push_str(&format!("{first} {first} {count}\n"));
        }
    }
    out
}

fn why(failure: &Failure, plan: &Plan) -> String {
    match failure {
        Failure::Clone(e) => match e.raw_os_error() {
            Some(libc::EPERM) => {
                "namespaces are forbidden here, by the kernel's settings or a container's policy"
                    .to_owned()
            }
            Some(libc::ENOSPC | libc::EUSERS) => {
                "no more user namespaces are allowed (user.max_user_namespaces)".to_owned()
            }
            _ => format!("cannot make namespaces: {e}"),
        },
        Failure::Maps(e) => format!("cannot map users into a namespace: {e}"),
        Failure::Step(n, e) => match plan.steps.get(*n).map(|p| &p.step) {
            Some(Step::ReadOnly(_)) if e.raw_os_error() == Some(libc::ENOSYS) => {
                "the kernel is older than 5.12: cannot make a tree read-only".to_owned()
            }
            Some(Step::Private) => {
                format!(
                    "mounting is forbidden in user namespaces, by a policy such as AppArmor's: {e}"
                )
            }
            step => format!("cannot build the sandbox: {step:?}: {e}"),
        },
        Failure::Lost(e) => format!("the sandbox's first process was lost: {e}"),
    }
}

struct Builder {
    root: PathBuf,
    /// Overlays then keep their notes in attributes that a user may set.
    user_namespace: bool,
    overlay: bool,
    steps: Vec<Planned>,
    /// What to say if an optional step fails.
    told: std::collections::BTreeMap<usize, String>,
    notes: Vec<String>,
    writable: Vec<PathBuf>,
}

impl Builder {
    fn new(root: PathBuf, user_namespace: bool, overlay: bool) -> Self {
        Self {
            root,
            user_namespace,
            overlay,
            steps: Vec::new(),
            told: Default::default(),
            notes: Vec::new(),
            writable: Vec::new(),
        }
    }

    fn all(&mut self, spec: &SandboxSpec, state: &State, side: &Path) -> Result<(), Error> {
        self.must(Step::Private);
        self.must(Step::Tmpfs(text(&self.root)));
        self.must(Step::Unbindable(text(&self.root)));
        self.host();
        for name in MADE_NEW {
            self.folder(name);
        }
        for at in [WORKSPACE, HOME, SIDE] {
            self.folder(&at[1..]);
        }
        self.must(Step::ReadOnly(text(&self.root)));
        self.proc();
        self.devices();
        self.run(spec.network);

        self.area(state, Area::Workspace, WORKSPACE);
        self.area(state, Area::Home, HOME);
        self.area(state, Area::Tmp, "/tmp");
        self.area(state, Area::Shm, "/dev/shm");
        self.bind(side, Path::new(SIDE));
        self.must(Step::ReadOnly(self.within(Path::new(SIDE))));

        for path in &spec.readable {
            self.bind_read_only(path);
        }
        self.packages(spec, state)?;
        for path in &spec.writable {
            self.mount_point(path);
            self.bind(path, path);
            self.writable.push(path.clone());
        }
        if !spec.network {
            self.may(Step::Loopback, Some("the sandbox has no loopback"));
        }
        self.must(Step::Pivot(text(&self.root)));
        Ok(())
    }

    fn must(&mut self, step: Step) {
        self.steps.push(Planned {
            step,
            optional: false,
        });
    }

    fn may(&mut self, step: Step, note: Option<&str>) {
        if let Some(note) = note {
            self.told.insert(self.steps.len(), note.to_owned());
        }
        self.steps.push(Planned {
            step,
            optional: true,
        });
    }

    /// An absolute path, as it is called before the root is exchanged.
    fn within(&self, path: &Path) -> CString {
        text(&self.root.join(path.strip_prefix("/").unwrap_or(path)))
    }

    fn folder(&mut self, below_root: &str) {
        let at = self.within(Path::new(below_root));
        self.must(Step::Folder(at));
    }

    fn bind(&mut self, from: &Path, to: &Path) {
        let to = self.within(to);
        self.must(Step::Bind {
            from: text(from),
            to,
        });
    }

    fn area(&mut self, state: &State, area: Area, at: &str) {
        self.bind(&state.area(area), Path::new(at));
        self.writable.push(PathBuf::from(at));
    }

    /// What is in the host's root.
    fn host(&mut self) {
        let Ok(entries) = fs::read_dir("/") else {
            return;
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            if MADE_NEW.iter().any(|m| name == *m) {
                continue;
            }
            let (host, Ok(kind)) = (entry.path(), entry.file_type()) else {
                continue;
            };
            let at = self.within(&host);
            if kind.is_symlink() {
                if let Ok(to) = fs::read_link(&host) {
                    self.may(Step::Link { to: text(&to), at }, None);
                }
            } else if kind.is_dir() {
                self.must(Step::Folder(at.clone()));
                let from = text(&host);
                self.may(Step::Bind { from, to: at }, None);
            }
        }
    }

    fn proc(&mut self) {
        let at = self.within(Path::new("/proc"));
        // A container that hides parts of /proc does not allow a new one. The host's then shows
        // processes by other numbers than they have within. The new one goes on top of it.
        self.must(Step::Bind {
            from: text(Path::new("/proc")),
            to: at.clone(),
        });
        self.must(Step::ReadOnly(at.clone()));
        self.may(
            Step::Proc(at),
            Some("/proc is the host's: process numbers in it differ from those within"),
        );
    }

    fn devices(&mut self) {
        let at = self.within(Path::new("/dev"));
        self.must(Step::Tmpfs(at));
        for name in DEVICES {
            let path = PathBuf::from(format!("/dev/{name}"));
            let at = self.within(&path);
            self.must(Step::File(at.clone()));
            self.may(
                Step::Bind {
                    from: text(&path),
                    to: at,
                },
                None,
            );
        }
        for (to, name) in DEVICE_LINKS {
            let at = self.within(Path::new(&format!("/dev/{name}")));
            self.must(Step::Link {
                to: text(Path::new(to)),
                at,
            });
        }
        self.folder("dev/pts");
        self.folder("dev/shm");
        let pts = self.within(Path::new("/dev/pts"));
        self.may(Step::Devpts(pts), None);
    }

    fn run(&mut self, network: bool) {
        let at = self.within(Path::new("/run"));
        self.must(Step::Tmpfs(at));
        let resolver: &[&str] = if network { &RUN_RESOLVER } else { &[] };
        for path in RUN_PROGRAMS.iter().chain(resolver).map(Path::new) {
            if path.exists() {
                self.bind_read_only(path);
            }
        }
    }

    fn bind_read_only(&mut self, path: &Path) {
        self.mount_point(path);
        self.bind(path, path);
        let at = self.within(path);
        self.must(Step::ReadOnly(at));
    }

    /// Makes a place to mount on, where the host's folders are not seen.
    fn mount_point(&mut self, path: &Path) {
        let below = path.strip_prefix("/").unwrap_or(path);
        let first = below.components().next();
        if !first.is_some_and(|c| MADE_NEW.iter().any(|m| c.as_os_str() == *m)) {
            return;
        }
        let is_dir = path.is_dir();
        let mut at = PathBuf::new();
        let mut rest = below.components().peekable();
        while let Some(component) = rest.next() {
            at.push(component);
            let place = self.within(&at);
            if rest.peek().is_some() || is_dir {
                self.must(Step::Folder(place));
            } else {
                self.must(Step::File(place));
            }
        }
    }

    fn packages(&mut self, spec: &SandboxSpec, state: &State) -> Result<(), Error> {
        for (n, package) in spec.packages.iter().enumerate() {
            if state.dir().starts_with(package) {
                self.notes.push(format!(
                    "{} stays read-only: the scratch folder is in it",
                    package.display()
                ));
                continue;
            }
            self.mount_point(package);
            if self.overlay {
                let (upper, work) = (state.package(n).join(UPPER), state.package(n).join(WORK));
                for dir in [&upper, &work] {
                    fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
                }
                let mut options = b"lowerdir=".to_vec();
                options.extend(escaped(package));
                options.extend(b",upperdir=");
                options.extend(escaped(&upper));
                options.extend(b",workdir=");
                options.extend(escaped(&work));
                if self.user_namespace {
                    options.extend(b",userxattr");
                }
                let at = self.within(package);
                self.must(Step::Overlay {
                    options: c_text(options),
                    at,
                });
            } else {
                let copy = copy_package(state, n, package)?;
                self.bind(&copy, package);
            }
            self.writable.push(package.clone());
        }
        Ok(())
    }
}

/// Paths come from the file system or were checked by `SandboxSpec`, so they have no zero bytes.
fn text(path: &Path) -> CString {
    c_text(path.as_os_str().as_bytes().to_vec())
}

fn c_text(bytes: Vec<u8>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// Characters that separate options of an overlay.
fn escaped(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'\\' | b':' | b',') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_in_paths_are_escaped() {
        assert_eq!(escaped(Path::new("/a:b,c\\d")), b"/a\\:b\\,c\\\\d");
    }
}
