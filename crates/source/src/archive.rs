//! Zip files (wheels are some) and gzipped tar files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

use crate::tree::Tree;
use crate::{Job, LeftOut, SourceError};

/// A longer name is not one, and it would be held in memory.
const LONGEST_NAME: u64 = 64 << 10;

/// Unpacks into the scratch folder. If all is in one folder, as in what GitHub
/// and npm pack, that one is the root.
pub(crate) fn unpack(path: &Path, job: &Job<'_>) -> Result<(PathBuf, Vec<LeftOut>), SourceError> {
    let what = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let io = |error| SourceError::Io {
        path: path.to_owned(),
        error,
    };
    job.say("unpacking");
    let file = File::open(path).map_err(io)?;
    let packed = file.metadata().map_err(io)?.len();
    if packed > job.limits().bytes {
        return Err(SourceError::TooLarge {
            what,
            limit: crate::error::megabytes(job.limits().bytes),
        });
    }
    let root = job.scratch.join("tree");
    let mut tree = Tree::new(&what, &root, packed, job.limits())?;
    let lower = what.to_ascii_lowercase();
    if lower.ends_with(".zip") || lower.ends_with(".whl") {
        zip(file, &mut tree, job)?;
    } else {
        tar(file, &mut tree, job)?;
    }
    let left_out = tree.finish();
    Ok((only_folder(&root).unwrap_or(root), left_out))
}

/// The folder that everything is in.
fn only_folder(root: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(root).ok()?;
    let first = entries.next()?.ok()?;
    (entries.next().is_none() && first.file_type().ok()?.is_dir()).then(|| first.path())
}

fn in_time(job: &Job<'_>) -> Result<(), SourceError> {
    if std::time::Instant::now() > job.deadline {
        return Err(SourceError::TooSlow {
            what: "unpacking".to_owned(),
            limit: job.limits().time,
        });
    }
    Ok(())
}

fn zip(file: File, tree: &mut Tree<'_>, job: &Job<'_>) -> Result<(), SourceError> {
    let mut archive = zip::ZipArchive::new(BufReader::new(file))
        .map_err(|error| tree.broken("the list of files", &error))?;
    if archive.metadata().has_duplicate_names() {
        return Err(tree.refused("the list of files", "a name is there twice"));
    }
    for index in 0..archive.len() {
        in_time(job)?;
        tree.entry()?;
        let mut entry = archive
            .by_index(index)
            .map_err(|error| tree.broken(&format!("entry {}", index + 1), &error))?;
        let name = match entry.name() {
            // Some that pack on Windows write `\`.
            Ok(name) => name.replace('\\', "/"),
            Err(error) => return Err(tree.broken(&format!("entry {}", index + 1), &error)),
        };
        if name.as_bytes().get(1) == Some(&b':') {
            return Err(tree.refused(&name, "an absolute path"));
        }
        let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
        if entry.is_dir() {
            tree.folder(&name)?;
        } else if kind == 0o120_000 {
            tree.leave_out(&name, "symbolic link");
        } else if kind != 0 && kind != 0o100_000 {
            return Err(tree.refused(&name, "a device or a pipe"));
        } else {
            tree.file(&name, &mut entry)?;
        }
    }
    Ok(())
}

/// Entries are read raw: long names come as entries of their own, and have a limit here.
fn tar(file: File, tree: &mut Tree<'_>, job: &Job<'_>) -> Result<(), SourceError> {
    // Also bounds what is skipped and never written.
    let room = job.limits().bytes.saturating_add(64 << 20);
    let mut archive = tar::Archive::new(MultiGzDecoder::new(BufReader::new(file)).take(room));
    let entries = archive
        .entries()
        .map_err(|error| tree.broken("the first entry", &error))?;
    let mut long_name: Option<String> = None;
    for entry in entries.raw(true) {
        in_time(job)?;
        tree.entry()?;
        let mut entry = entry.map_err(|error| tree.broken("an entry", &error))?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                let bytes = extension(&mut entry, tree)?;
                let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                long_name = Some(String::from_utf8_lossy(&bytes[..end]).into_owned());
                continue;
            }
            EntryType::XHeader => {
                let bytes = extension(&mut entry, tree)?;
                if let Some(name) = pax(&bytes, tree)? {
                    long_name = Some(name);
                }
                continue;
            }
            EntryType::XGlobalHeader | EntryType::GNULongLink => continue,
            _ => {}
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
        };
        match kind {
            EntryType::Directory => tree.folder(&name)?,
            EntryType::Regular | EntryType::Continuous => tree.file(&name, &mut entry)?,
            EntryType::Symlink => tree.leave_out(&name, "symbolic link"),
            EntryType::Link => tree.leave_out(&name, "hard link"),
            EntryType::GNUSparse => tree.leave_out(&name, "sparse file"),
            _ => return Err(tree.refused(&name, "a device or a pipe")),
        }
    }
    Ok(())
}

fn extension(entry: &mut impl Read, tree: &Tree<'_>) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    entry
        .take(LONGEST_NAME + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| tree.broken("a long name", &error))?;
    if bytes.len() as u64 > LONGEST_NAME {
        return Err(tree.refused("a long name", "longer than any name"));
    }
    Ok(bytes)
}

/// The name in an extended header. A size there would be another than the one we go by.
fn pax(bytes: &[u8], tree: &Tree<'_>) -> Result<Option<String>, SourceError> {
    let mut name = None;
    for field in tar::PaxExtensions::new(bytes) {
        let field = field.map_err(|error| tree.broken("an extended header", &error))?;
        match field.key_bytes() {
            b"path" => name = Some(String::from_utf8_lossy(field.value_bytes()).into_owned()),
            b"size" => return Err(tree.refused("an extended header", "a second size")),
            _ => {}
        }
    }
    Ok(name)
}
