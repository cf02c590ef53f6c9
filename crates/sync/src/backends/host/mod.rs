//! State on this host: byte locks in files, and a SQLite database for the rest.

mod fence;
mod locks;
mod owners;
mod range;
mod records;
mod store;
mod values;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::fence::FenceFile;
use self::locks::{HeldPlace, LockFiles, Place};
use self::store::Store;
use super::front::{Front, delegate};
use super::remote::{Claim, Id, Remote, RemoteBegin};
use crate::deadline::Deadline;
use crate::lock::Release;
use crate::rate::Microseconds;
use crate::{BoxFuture, Decision, Error, Fence, Mode, Result, Swap, Version, Versioned};

/// Where the host backend keeps its files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HostOptions {
    /// The directory; all who should exclude each other must name the same. Default: `toctou` in `XDG_RUNTIME_DIR`, or,
    /// if that is not set, `toctou-UID` in the directory for temporary files. It must be on a local file system.
    pub directory: Option<PathBuf>,
    /// Keys of one namespace do not meet those of another. Default: empty.
    pub namespace: String,
}

impl HostOptions {
    /// In this directory, which is made if it is not there.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: Some(directory.into()),
            ..Self::default()
        }
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }
}

/// The backend for all processes of one user on one host (Linux).
///
/// - **Crash:** the kernel releases what a dead process held, at once, however it died.
/// - **Pause:** a stopped process keeps what it holds. If it is stopped within a write to the database (microseconds),
///   limits and records of others fail with [`Error::Unavailable`] after 5 seconds until it goes on; locks do not.
/// - **Reboot:** locks are free. If the directory is in memory, limits and records are gone; fences go on above the old
///   ones as long as the clock was not set back.
/// - **The directory is removed** while processes use it: locks fail with [`Error::Unavailable`] within a tenth of a
///   second, rather than going on with files that nobody else sees.
/// - It does not work on network file systems, and not between containers that do not share the directory.
#[derive(Debug)]
pub struct Host {
    front: Front<HostRemote>,
}

impl Host {
    /// Opens the directory, and makes what is not there.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if files cannot be made there, or if the default directory belongs to somebody else.
    pub fn open(options: HostOptions) -> Result<Self> {
        let remote = HostRemote::open(options.directory).map_err(failed)?;
        Ok(Self {
            front: Front::new(Arc::new(remote), options.namespace),
        })
    }
}

delegate!(Host);

struct HostRemote {
    locks: Arc<LockFiles>,
    fence: FenceFile,
    store: Store,
    directory: PathBuf,
}

impl std::fmt::Debug for HostRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRemote")
            .field("directory", &self.directory)
            .finish()
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::unavailable(HostRemote::NAME, error)
}

impl HostRemote {
    fn open(directory: Option<PathBuf>) -> io::Result<Self> {
        let directory = match directory {
            Some(directory) => {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&directory)?;
                directory
            }
            None => own_directory()?,
        };
        // One at a time makes what is not there.
        let opening = open_file(&directory.join("opening"))?;
        opening.lock()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let fence = FenceFile::open(&directory.join("fence"), &boot)?;
        let store = Store::open(&directory, boot)?;
        let locks = Arc::new(LockFiles::open(directory.clone())?);
        drop(opening);
        Ok(Self {
            locks,
            fence,
            store,
            directory,
        })
    }
}

/// The default directory. In a directory that all can write to, somebody else may have made it first.
fn own_directory() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let directory = match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
        Some(runtime) => Path::new(&runtime).join("toctou"),
        None => std::env::temp_dir().join(format!("toctou-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&directory)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        let text = format!(
            "{} is not a directory of this user alone",
            directory.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(directory)
}

fn open_file(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

impl Release for Vec<HeldPlace> {
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        drop(self);
        Box::pin(async { Ok(()) })
    }
}

impl Remote for HostRemote {
    const NAME: &'static str = "host";

    async fn lock(
        self: &Arc<Self>,
        keys: &[(Id, Mode)],
        deadline: &Deadline,
    ) -> Result<Option<(Fence, Claim)>> {
        // In the same order by everybody, so that no two wait for each other.
        let mut places: Vec<(Place, Mode)> = keys
            .iter()
            .map(|(id, mode)| (Place::of(id), *mode))
            .collect();
        places.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        places.dedup_by_key(|(place, _)| *place);
        let mut held = Vec::with_capacity(places.len());
        for (place, mode) in places {
            let locked = match self.locks.try_lock(place, mode)? {
                Some(locked) => locked,
                None if !deadline.waits() => return Ok(None),
                None => match deadline.run(self.locks.lock(place, mode)).await {
                    Ok(locked) => locked?,
                    Err(_) => return Ok(None),
                },
            };
            held.push(locked);
        }
        let fence = self.fence.next().map_err(failed)?;
        Ok(Some((
            fence,
            Claim {
                held: Box::new(held),
                lost: None,
            },
        )))
    }

    async fn permit(self: &Arc<Self>, caller: Id, limit: u32) -> Result<Option<Claim>> {
        let permit = self.store.permit(caller, limit).await?;
        Ok(permit.map(|permit| Claim {
            held: Box::new(permit),
            lost: None,
        }))
    }

    async fn take(&self, key: Id, quota: Microseconds) -> Result<Decision> {
        self.store.take(key, quota).await
    }

    async fn read(&self, key: Id) -> Result<Option<Versioned>> {
        self.store.read(key).await
    }

    async fn compare_and_swap(
        &self,
        key: Id,
        expected: Option<Version>,
        value: Option<Vec<u8>>,
    ) -> Result<Swap> {
        self.store.compare_and_swap(key, expected, value).await
    }

    async fn write_fenced(
        &self,
        key: Id,
        fence: Fence,
        value: Vec<u8>,
    ) -> Result<Result<Version, Fence>> {
        self.store.write_fenced(key, fence, value).await
    }

    async fn begin(
        self: &Arc<Self>,
        key: Id,
        arguments: Id,
        keep: Duration,
    ) -> Result<RemoteBegin> {
        self.store.begin(key, arguments, keep).await
    }

    async fn settle(&self, key: Id, result: Option<Vec<u8>>) -> Result<bool> {
        self.store.settle(key, result).await
    }

    async fn check(&self) -> Result<()> {
        self.fence.next().map_err(failed)?;
        self.store.check().await
    }
}
