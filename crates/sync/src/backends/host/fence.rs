//! Numbers that grow, for all processes of the host.
//!
//! The number is the length of a file. To append a byte is atomic and says where it landed, so that there is nothing to
//! read and write back, and a process that is stopped in the middle is in nobody's way.
//!
//! The file begins with a number to add, the time in microseconds at which it was made, and with the start of the machine
//! that it was made in. After another start it is made anew, because a power cut may have taken back its last bytes; its
//! numbers go on above the old ones. The part that was counted is given back to the file system from time to time.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use crate::local::shim::lock;
use crate::{Fence, key};

const HEADER: u64 = 16;
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
    /// Only one process at a time is in here. `boot` names the start of the machine.
    pub fn open(path: &Path, boot: &str) -> io::Result<Self> {
        let boot = u64::from_le_bytes(
            key::digest(boot.as_bytes())
                .first_chunk()
                .copied()
                .unwrap_or_default(),
        );
        let old = Header::read(path)?;
        if old.as_ref().is_none_or(|old| old.boot != boot) {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX / 2);
            // Should the clock have been set back, then above what is known of the old numbers.
            let known = old.map_or(0, |old| {
                old.base.saturating_add(old.length).saturating_add(1 << 20)
            });
            let fresh = path.with_extension("new");
            fs::write(
                &fresh,
                [now.max(known).to_le_bytes(), boot.to_le_bytes()].concat(),
            )?;
            fs::rename(&fresh, path)?;
        }
        let base = Header::read(path)?.map(|header| header.base);
        let base = base.ok_or(io::ErrorKind::InvalidData)?;
        let file = File::options().append(true).open(path)?;
        Ok(Self {
            base,
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

/// How the file begins.
struct Header {
    base: u64,
    boot: u64,
    length: u64,
}

impl Header {
    /// `None` if there is no file, or none that can be understood.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let (mut base, mut boot) = ([0; 8], [0; 8]);
        if file
            .read_exact(&mut base)
            .and_then(|()| file.read_exact(&mut boot))
            .is_err()
        {
            return Ok(None);
        }
        let length = file.metadata()?.len();
        Ok(Some(Self {
            base: u64::from_le_bytes(base),
            boot: u64::from_le_bytes(boot),
            length,
        }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_over_a_restart_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fence");
        let mut last = Fence::new(0);
        for boot in ["one", "one", "two", "three"] {
            let fences = FenceFile::open(&path, boot).unwrap();
            for _ in 0..70_000 {
                let next = fences.next().unwrap();
                assert!(next > last, "{next} after {last}");
                last = next;
            }
        }
        // What was counted is given back: two pages and the rest since the last time.
        let blocks = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(blocks < 64 << 10, "{blocks} bytes on the disk");
    }
}
