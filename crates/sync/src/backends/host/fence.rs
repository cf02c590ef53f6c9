//! Numbers that grow, for all processes of the host.
//!
//! The number is the length of a file. To append a byte is atomic and says where it landed, so that there is nothing to
//! read and write back, and a process that is stopped in the middle is in nobody's way.
//!
//! The file begins with a number to add, the time in microseconds at which it was made: when the directory is lost (it is
//! usually in memory, and gone after a reboot), numbers go on above the old ones. The part that was counted is given back
//! to the file system from time to time.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use crate::Fence;
use crate::local::shim::lock;

const HEADER: u64 = 8;
/// So many bytes are kept at least, and the first page always.
const PAGE: u64 = 4096;
/// How many acquisitions lie between two times of giving back.
const GIVE_BACK_EACH: u64 = 1 << 16;

/// How often to look whether the file is still there: a system call that each lock would otherwise pay for.
const LOOK_EACH: Duration = Duration::from_millis(100);

pub struct FenceFile {
    base: u64,
    /// The position of the file is shared by all threads.
    file: Mutex<Counted>,
}

struct Counted {
    file: File,
    /// When to look again whether it is still there.
    look_at: Instant,
}

impl FenceFile {
    /// Only one process at a time is in here.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !fs::exists(path)? {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            let base = u64::try_from(now.as_micros()).unwrap_or(u64::MAX / 2);
            let fresh = path.with_extension("new");
            fs::write(&fresh, base.to_le_bytes())?;
            fs::rename(&fresh, path)?;
        }
        let mut file = File::options()
            .read(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let mut base = [0; HEADER as usize];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut base)?;
        Ok(Self {
            base: u64::from_le_bytes(base),
            file: Mutex::new(Counted {
                file,
                look_at: Instant::now(),
            }),
        })
    }

    pub fn next(&self) -> io::Result<Fence> {
        let mut counted = lock(&self.file);
        let now = Instant::now();
        if now >= counted.look_at {
            // Somebody removed the directory. Others who open it now lock other files than we.
            if counted.file.metadata()?.nlink() == 0 {
                let text = "the lock directory was removed";
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
            counted.look_at = now + LOOK_EACH;
        }
        let file = &mut counted.file;
        file.write_all(&[0])?;
        let length = file.stream_position()?;
        if length.is_multiple_of(GIVE_BACK_EACH) {
            let counted = (length - PAGE) & !(PAGE - 1);
            let flags =
                rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            // A file system that cannot keeps a byte for each acquisition.
            let _ = rustix::fs::fallocate(file, flags, PAGE, counted - PAGE);
        }
        Ok(Fence::new(self.base.saturating_add(length - HEADER)))
    }
}
