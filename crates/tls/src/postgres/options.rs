//! The options about TLS, taken out of an address: the client knows some of them, and refuses the others.

/// An address and its options, in either form.
pub(super) struct Options {
    /// What stands before the query of a URL.
    url: Option<String>,
    pairs: Vec<Pair>,
}

struct Pair {
    name: String,
    value: String,
    /// As it was written.
    text: String,
}

impl Options {
    pub(super) fn split(address: &str) -> Self {
        if !address.contains("://") {
            return Self {
                url: None,
                pairs: words(address),
            };
        }
        let (url, query) = address.split_once('?').unwrap_or((address, ""));
        let pairs = query.split('&').filter(|text| !text.is_empty());
        let pairs = pairs.map(|text| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Pair {
                name: decoded(name),
                value: decoded(value),
                text: text.to_owned(),
            }
        });
        Self {
            url: Some(url.to_owned()),
            pairs: pairs.collect(),
        }
    }

    /// The last one counts, as in libpq.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let mut found = None;
        self.pairs.retain(|pair| {
            let is_it = pair.name == name;
            if is_it {
                found = Some(pair.value.clone());
            }
            !is_it
        });
        found
    }

    /// The address without what was taken.
    pub(super) fn rest(&self) -> String {
        let pairs: Vec<&str> = self.pairs.iter().map(|pair| pair.text.as_str()).collect();
        match &self.url {
            Some(url) if pairs.is_empty() => url.clone(),
            Some(url) => format!("{url}?{}", pairs.join("&")),
            None => pairs.join(" "),
        }
    }
}

/// `name = value name='a value'`, with `\` before what is meant as it stands. What is no such thing is left to the client
/// to refuse.
fn words(text: &str) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let whole = rest;
        let Some((name, after)) = rest.split_once('=') else {
            pairs.push(Pair {
                name: String::new(),
                value: String::new(),
                text: whole.to_owned(),
            });
            break;
        };
        let after = after.trim_start();
        let quoted = after.starts_with('\'');
        let mut value = String::new();
        let mut end = after.len();
        let mut escaped = false;
        for (at, letter) in after.char_indices().skip(usize::from(quoted)) {
            if escaped {
                value.push(letter);
                escaped = false;
            } else if letter == '\\' {
                escaped = true;
            } else if quoted && letter == '\'' {
                end = at + 1;
                break;
            } else if !quoted && letter.is_whitespace() {
                end = at;
                break;
            } else {
                value.push(letter);
            }
        }
        rest = after[end..].trim_start();
        let length = whole.len() - after.len() + end;
        pairs.push(Pair {
            name: name.trim().to_owned(),
            value,
            text: whole[..length].to_owned(),
        });
    }
    pairs
}

/// `%2F` and the like.
fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        let hex = bytes.as_slice().get(..2).filter(|_| byte == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) => {
                out.push(value);
                bytes.nth(1);
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_options_out_of_both_forms() {
        let mut url = Options::split("postgres://u:p%40@h/d?a=1&sslrootcert=%2Fa%20b&c=%26");
        assert_eq!(url.take("sslrootcert").as_deref(), Some("/a b"));
        assert_eq!(url.rest(), "postgres://u:p%40@h/d?a=1&c=%26");
        let mut words = Options::split(r" host = h  sslrootcert='/a \'b' password=p\ q sslmode=x");
        assert_eq!(words.take("sslrootcert").as_deref(), Some("/a 'b"));
        assert_eq!(words.take("sslmode").as_deref(), Some("x"));
        assert_eq!(words.take("sslmode"), None);
        assert_eq!(words.rest(), r"host = h password=p\ q");
        assert_eq!(Options::split("nonsense").rest(), "nonsense");
        assert_eq!(Options::split("a='b").rest(), "a='b");
    }
}
