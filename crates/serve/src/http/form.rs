//! What a form sends: names and values, or files.

use memchr::memmem;

/// A field of a form. `file` is the name of the file, if it is one.
#[derive(Debug, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) name: String,
    pub(super) file: Option<String>,
    pub(super) value: &'a [u8],
}

/// The boundary in a `Content-Type` of `multipart/form-data`.
pub(super) fn boundary(kind: &str) -> Option<&str> {
    let (kind, rest) = kind.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = rest.split(';').find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        name.eq_ignore_ascii_case("boundary").then_some(value)
    })?;
    let value = value.trim_matches('"');
    (!value.is_empty() && value.len() <= 70).then_some(value)
}

/// The fields, or nothing if it is not well formed.
pub(super) fn multipart<'a>(body: &'a [u8], boundary: &str) -> Option<Vec<Field<'a>>> {
    let first = format!("--{boundary}");
    let next = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(first.as_bytes())?;
    let mut fields = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(fields);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let head_end = memmem::find(rest, b"\r\n\r\n")?;
        let head = std::str::from_utf8(rest.get(..head_end)?).ok()?;
        rest = rest.get(head_end + 4..)?;
        let end = memmem::find(rest, next.as_bytes())?;
        let value = rest.get(..end)?;
        rest = rest.get(end + next.len()..)?;
        let disposition = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-disposition")
                .then_some(value)
        })?;
        fields.push(Field {
            name: parameter(disposition, "name")?,
            file: parameter(disposition, "filename"),
            value,
        });
        if fields.len() > 16 {
            return None;
        }
    }
}

/// `name="value"`; browsers write a quote in a name as `%22`.
fn parameter(text: &str, wanted: &str) -> Option<String> {
    text.split(';').find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        let value = value.strip_prefix('"')?.strip_suffix('"')?;
        name.eq_ignore_ascii_case(wanted).then(|| value.to_owned())
    })
}

/// A value of `a=b&c=d`.
pub(super) fn urlencoded(text: &str, wanted: &str) -> Option<String> {
    text.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        (decoded(name)? == wanted).then(|| decoded(value))?
    })
}

/// `+` is a space, `%41` is `A`.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digit = |b: u8| char::from(b).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read() {
        let kind = "multipart/form-data; boundary=----x";
        let body = b"------x\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\n\r\n------x\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"a.zip\"\r\nContent-Type: application/zip\r\n\r\nPK\r\n--x\r\n------x--\r\n";
        let fields = multipart(body, boundary(kind).expect("one")).expect("well formed");
        assert_eq!(fields.len(), 2);
        assert_eq!((&*fields[0].name, fields[0].value), ("source", &b""[..]));
        assert_eq!(fields[1].file.as_deref(), Some("a.zip"));
        assert_eq!(fields[1].value, b"PK\r\n--x");
        assert_eq!(
            urlencoded("x=1&source=owner%2Fname+a", "source").as_deref(),
            Some("owner/name a")
        );
    }

    #[test]
    fn what_is_cut_off_is_no_form() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--";
        assert!(multipart(body, "x").is_some());
        for length in 0..body.len() - 1 {
            assert!(multipart(&body[..length], "x").is_none(), "{length}");
        }
        for text in ["%", "%4", "%zz", "a=%ff"] {
            assert!(decoded(text).is_none(), "{text}");
        }
        assert_eq!(boundary("multipart/form-data; boundary="), None);
        assert_eq!(boundary("text/plain; boundary=x"), None);
    }
}
