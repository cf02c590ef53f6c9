//! Archives, honest and hostile.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Tar, Zip};
use toctou_source::{Fetched, Limits, Options, Reach, SourceError, Spec, fetch};

fn unpack_within(path: &Path, limits: Limits) -> Result<Fetched, SourceError> {
    let options = Options {
        limits,
        reach: Reach::User,
        hosts: &[],
        plain_http: &[],
        progress: &|_| {},
    };
    fetch(&Spec::Archive(path.to_owned()), &options)
}

fn unpack(path: &Path) -> Result<Fetched, SourceError> {
    unpack_within(path, Limits::default())
}

fn refused(path: &Path, word: &str) {
    match unpack(path) {
        Err(error) => assert!(error.to_string().contains(word), "{error}"),
        Ok(fetched) => panic!("{} was unpacked to {:?}", path.display(), fetched.root),
    }
}

#[test]
fn honest_ones_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let zip = Zip::default()
        .entry("name-main/", 0o040_755, b"")
        .entry("name-main/src/a.ts", 0o100_644, b"export {}")
        .entry("name-main/src/b.ts", 0, b"// b")
        .entry("name-main/link.ts", 0o120_777, b"src/a.ts")
        .write(folder.path(), "source.zip");
    let fetched = unpack(&zip).unwrap();
    assert!(fetched.root.ends_with("name-main"));
    let text = std::fs::read_to_string(fetched.root.join("src/a.ts")).unwrap();
    assert_eq!(text, "export {}");
    assert!(!fetched.root.join("link.ts").exists());
    assert_eq!(fetched.left_out.len(), 1);
    assert_eq!(fetched.left_out[0].path, "name-main/link.ts");
    // Nothing stays behind.
    let root = fetched.root.clone();
    drop(fetched);
    assert!(!root.exists());

    let long = format!("package/{}/c.js", "d/".repeat(50).trim_end_matches('/'));
    let pax = format!("path={long}\n");
    let length = pax.len() + 4;
    let tar = Tar::default()
        .entry("package/package.json", b'0', "", b"{}")
        .entry("PaxHeader", b'x', "", format!("{length} {pax}").as_bytes())
        .entry("package/short", b'0', "", b"x")
        .entry("././@LongLink", b'L', "", b"package/from-gnu.js\0")
        .entry("package/other", b'0', "", b"y")
        .write(folder.path(), "source.tgz");
    let fetched = unpack(&tar).unwrap();
    assert!(fetched.root.ends_with("package"));
    assert!(fetched.root.parent().unwrap().join(long).is_file());
    assert!(fetched.root.join("from-gnu.js").is_file());
}

#[test]
fn paths_do_not_lead_out() {
    let folder = tempfile::tempdir().unwrap();
    for (name, word) in [
        ("../../evil.ts", "leads out"),
        ("a/../../../evil.ts", "leads out"),
        ("..\\..\\evil.ts", "leads out"),
        ("/tmp/evil.ts", "absolute"),
        ("\\evil.ts", "absolute"),
        ("C:\\evil.ts", "absolute"),
    ] {
        let zip = Zip::default().entry(name, 0o100_644, b"x");
        refused(&zip.write(folder.path(), "slip.zip"), word);
    }
    for (name, word) in [("../../evil.ts", "leads out"), ("/tmp/evil.ts", "absolute")] {
        let tar = Tar::default().entry(name, b'0', "", b"x");
        refused(&tar.write(folder.path(), "slip.tgz"), word);
    }
    let pax = "25 path=../../../evil.ts\n";
    let tar = Tar::default()
        .entry("PaxHeader", b'x', "", pax.as_bytes())
        .entry("fine.ts", b'0', "", b"x");
    refused(&tar.write(folder.path(), "pax.tgz"), "leads out");
    assert!(!Path::new("/tmp/evil.ts").exists());
}

#[test]
fn links_are_not_made_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    // A link to a folder elsewhere, and then a file through it.
    let target = tempfile::tempdir().unwrap();
    let place = target.path().display().to_string();
    let tar = Tar::default()
        .entry("out", b'2', &place, b"")
        .entry("out/evil.ts", b'0', "", b"x")
        .entry("hard.ts", b'1', "/etc/passwd", b"")
        .write(folder.path(), "links.tgz");
    let fetched = unpack(&tar).unwrap();
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
    assert!(!fetched.root.join("hard.ts").exists());
    assert_eq!(fetched.left_out.len(), 2);
    let zip = Zip::default()
        .entry("out", 0o120_777, place.as_bytes())
        .entry("out/evil.ts", 0o100_644, b"x")
        .write(folder.path(), "links.zip");
    unpack(&zip).unwrap();
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
}

#[test]
fn devices_and_doubles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [b'3', b'4', b'6'] {
        let tar = Tar::default().entry("x", kind, "", b"");
        refused(&tar.write(folder.path(), "device.tgz"), "device");
    }
    let zip = Zip::default().entry("x", 0o020_644, b"");
    refused(&zip.write(folder.path(), "device.zip"), "device");
    let zip = Zip::default()
        .entry("a.ts", 0o100_644, b"one")
        .entry("a.ts", 0o100_644, b"two");
    refused(&zip.write(folder.path(), "double.zip"), "twice");
    let zip = Zip::default()
        .entry("a.ts", 0o100_644, b"one")
        .entry("./a.ts", 0o100_644, b"two");
    refused(&zip.write(folder.path(), "alias.zip"), "twice");
    let zip = Zip::default()
        .entry("a", 0o100_644, b"one")
        .entry("a/b", 0o100_644, b"two");
    refused(&zip.write(folder.path(), "both.zip"), "a file and a folder");
    let tar = Tar::default()
        .entry("a.ts", b'0', "", b"one")
        .entry("a.ts", b'0', "", b"two");
    refused(&tar.write(folder.path(), "double.tgz"), "twice");
}

#[test]
fn bombs_are_not_set_off() {
    let folder = tempfile::tempdir().unwrap();
    let zeroes = vec![0_u8; 48 << 20];
    let bomb = Zip::default()
        .entry("zeroes", 0o100_644, &zeroes)
        .write(folder.path(), "bomb.zip");
    refused(&bomb, "times its packed size");
    let bomb = Tar::default()
        .entry("zeroes", b'0', "", &zeroes)
        .write(folder.path(), "bomb.tgz");
    refused(&bomb, "times its packed size");

    let small = Limits {
        bytes: 1 << 20,
        entries: 10,
        depth: 5,
        ..Limits::default()
    };
    let too_much = |path: &Path, word: &str| {
        let error = unpack_within(path, small).unwrap_err();
        assert!(matches!(error, SourceError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    let zip =
        Zip::default()
            .entry("a", 0, &zeroes[..600 << 10])
            .entry("b", 0, &zeroes[..600 << 10]);
    too_much(&zip.write(folder.path(), "bytes.zip"), "1 MB");
    let many = (0..11).fold(Zip::default(), |zip, n| zip.entry(&format!("{n}"), 0, b""));
    too_much(&many.write(folder.path(), "many.zip"), "10 entries");
    let deep = Zip::default().entry("a/b/c/d/e/f", 0, b"");
    too_much(&deep.write(folder.path(), "deep.zip"), "5 folders");
    let links = (0..11).fold(Tar::default(), |tar, n| {
        tar.entry(&format!("{n}"), b'2', "x", b"")
    });
    too_much(&links.write(folder.path(), "links.tgz"), "10 entries");

    // A name that would be held in memory.
    let name = vec![b'a'; 1 << 20];
    let tar = Tar::default().entry("././@LongLink", b'L', "", &name);
    refused(
        &tar.write(folder.path(), "name.tgz"),
        "longer than any name",
    );
    // Sizes that lie.
    let mut bytes = Zip::default().entry("a", 0, &zeroes[..1 << 20]).bytes();
    let at = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    bytes[at + 24..at + 28].copy_from_slice(&10_u32.to_le_bytes());
    let path = folder.path().join("lie.zip");
    std::fs::write(&path, bytes).unwrap();
    match unpack_within(&path, small) {
        Err(_) => {}
        Ok(fetched) => {
            let size = fetched.root.join("a").metadata().unwrap().len();
            assert!(size <= 1 << 20);
        }
    }
}

#[test]
fn what_is_no_archive_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["text.zip", "text.tgz", "text.whl"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "not an archive, whatever its name says").unwrap();
        refused(&path, "cannot be unpacked");
    }
    // Cut off in the middle.
    let whole = Zip::default().entry("a", 0, b"text").bytes();
    for length in 0..whole.len() {
        let path = folder.path().join("cut.zip");
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(unpack(&path).is_err());
    }
}
