//! Bytes to text, with a reason when there is none to be had.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::Overlay;

pub(super) struct Text {
    pub(super) text: String,
    /// Bytes that are not UTF-8 were replaced.
    pub(super) lossy: bool,
}

pub(super) fn text(path: &Path, max_size: u64, overlay: Option<&Overlay>) -> Result<Text, String> {
    if let Some(text) = overlay.and_then(|overlay| overlay.get(path)) {
        return open_in_an_editor(text, max_size);
    }
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let file = File::open(path).map_err(cannot)?;
    let meta = file.metadata().map_err(cannot)?;
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    if meta.len() > max_size {
        return Err(too_large(max_size));
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    // It may grow while it is read.
    file.take(max_size)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.contains(&0) {
        return Err("not text".to_owned());
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Text { text, lossy: false },
        Err(error) => Text {
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            lossy: true,
        },
    })
}

fn open_in_an_editor(text: &str, max_size: u64) -> Result<Text, String> {
    if text.len() as u64 > max_size {
        return Err(too_large(max_size));
    }
    if text.contains('\0') {
        return Err("not text".to_owned());
    }
    Ok(Text {
        text: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        lossy: false,
    })
}

fn too_large(max_size: u64) -> String {
    format!(
        "larger than {} MB (--max-file-size)",
        max_size / (1024 * 1024)
    )
}
