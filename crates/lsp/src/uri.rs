//! `file:` addresses, as editors write them. Others are not files, and are passed over.

use std::path::{Path, PathBuf};

pub(crate) fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    // A host, if any, is this one: `file://localhost/a`.
    let path = rest.get(rest.find('/')?..)?;
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = decode(path)?;
    // `/c:/a` is `c:/a`.
    let bytes = path.as_bytes();
    let drive = bytes.len() > 2 && bytes[1].is_ascii_alphabetic() && bytes[2] == b':';
    let path = if drive { &path[1..] } else { &path };
    (!path.contains('\0')).then(|| PathBuf::from(path))
}

pub(crate) fn of_path(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut out = String::from("file://");
    if !text.starts_with('/') {
        out.push('/');
    }
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
        out.push((high * 16 + low) as u8);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for path in ["/a/b.ts", "/a b/ä%23#?.ts", "/名/[x].py"] {
            let uri = of_path(Path::new(path));
            assert!(uri.is_ascii(), "{uri}");
            assert_eq!(to_path(&uri), Some(PathBuf::from(path)));
        }
    }

    #[test]
    fn as_editors_write_them() {
        assert_eq!(to_path("file:///c%3A/x.ts"), Some(PathBuf::from("c:/x.ts")));
        assert_eq!(to_path("file://localhost/a.ts"), Some("/a.ts".into()));
        for no in [
            "untitled:Untitled-1",
            "git:/a.ts?x",
            "file://",
            "file:///%",
            "file:///%zz",
            "file:///%ff",
            "file:///a%00b",
            "",
        ] {
            assert_eq!(to_path(no), None, "{no}");
        }
    }
}
