//! Who may come in.
//!
//! A web page anywhere can make a browser send requests to this machine, and
//! with a name that it points here even read the answers. So pages are refused
//! unless they are local or allowed, and so are names of this machine that it
//! does not have.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{StatusCode, Uri};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Tokens that let a caller in, by the caller's name.
#[derive(Clone, Debug)]
pub struct Tokens(Vec<(Arc<str>, [u8; 32])>);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum AccessError {
    #[error("the token file has no token")]
    NoToken,
    #[error("line {0} of the token file is neither `TOKEN` nor `NAME TOKEN`")]
    Line(usize),
    #[error("line {0} of the token file: a token has at least 16 characters")]
    Short(usize),
    #[error("{0} can be reached from elsewhere, and there is no token")]
    Open(SocketAddr),
}

impl Tokens {
    /// One a line, with the caller's name before it if there are several callers.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        let mut tokens = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, token) = match words.as_slice() {
                [] => continue,
                [comment, ..] if comment.starts_with('#') => continue,
                [token] => ("token", *token),
                [name, token] => (*name, *token),
                _ => return Err(AccessError::Line(at + 1)),
            };
            if token.len() < 16 {
                return Err(AccessError::Short(at + 1));
            }
            tokens.push((Arc::from(name), Sha256::digest(token).into()));
        }
        if tokens.is_empty() {
            return Err(AccessError::NoToken);
        }
        Ok(Self(tokens))
    }

    /// Compares digests: how long that takes says nothing about the token.
    fn find(&self, token: &[u8]) -> Option<Arc<str>> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.0
            .iter()
            .find(|(_, known)| *known == digest)
            .map(|(name, _)| Arc::clone(name))
    }
}

/// The rules for one address.
#[derive(Debug)]
pub struct Access {
    tokens: Option<Tokens>,
    origins: BTreeSet<String>,
    local_only: bool,
}

/// Why a request is turned away.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) status: StatusCode,
    pub(super) because: &'static str,
}

impl Access {
    pub fn new(
        address: SocketAddr,
        tokens: Option<Tokens>,
        origins: &[String],
        anonymous: bool,
    ) -> Result<Self, AccessError> {
        let local_only = address.ip().is_loopback();
        if !local_only && tokens.is_none() && !anonymous {
            return Err(AccessError::Open(address));
        }
        Ok(Self {
            tokens,
            origins: origins
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
            local_only,
        })
    }

    /// Who is asking; nobody in particular where no token is asked for.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, Denied> {
        let forbidden = |because| Denied {
            status: StatusCode::FORBIDDEN,
            because,
        };
        if self.local_only && !headers.get(HOST).is_some_and(is_local_host) {
            return Err(forbidden("the Host header is not a name of this machine"));
        }
        if let Some(origin) = headers.get(ORIGIN)
            && !self.allows(origin)
        {
            return Err(forbidden("this Origin is not allowed"));
        }
        // A page's pictures and scripts have no Origin, but browsers say where they are from.
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if !headers.contains_key(ORIGIN) && matches!(site, Some(b"cross-site" | b"same-site")) {
            return Err(forbidden("requests of other pages are not allowed"));
        }
        let Some(tokens) = &self.tokens else {
            return Ok(None);
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.as_bytes().split_at_checked(7)?;
            scheme
                .eq_ignore_ascii_case(b"bearer ")
                .then(|| token.trim_ascii())
        });
        match given.and_then(|token| tokens.find(token)) {
            Some(name) => Ok(Some(name)),
            None => Err(Denied {
                status: StatusCode::UNAUTHORIZED,
                because: "a valid bearer token is needed",
            }),
        }
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let origin = origin.to_ascii_lowercase();
        if !self.origins.is_empty() {
            return self.origins.contains(&origin);
        }
        let Ok(uri) = origin.parse::<Uri>() else {
            return false;
        };
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(is_local_name)
    }
}

fn is_local_host(host: &HeaderValue) -> bool {
    host.to_str()
        .ok()
        .and_then(|host| host.parse::<hyper::http::uri::Authority>().ok())
        .is_some_and(|authority| is_local_name(authority.host()))
}

fn is_local_name(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    name.parse().expect("a name"),
                    value.parse().expect("a value"),
                )
            })
            .collect()
    }

    fn local(tokens: Option<&str>) -> Access {
        let tokens = tokens.map(|text| Tokens::parse(text).expect("tokens"));
        Access::new(([127, 0, 0, 1], 1).into(), tokens, &[], false).expect("access")
    }

    #[test]
    fn pages_and_names_from_elsewhere_are_refused() {
        let access = local(None);
        for (host, origin, allowed) in [
            ("localhost:80", None, true),
            ("127.0.0.1", Some("http://localhost:3000"), true),
            ("[::1]:9", Some("https://[::1]"), true),
            ("evil.example", None, false),
            ("localhost.evil.example", None, false),
            ("localhost", Some("http://evil.example"), false),
            ("localhost", Some("http://localhost.evil.example"), false),
            ("localhost", Some("null"), false),
            ("localhost", Some("file://"), false),
        ] {
            let mut map = headers(&[("host", host)]);
            if let Some(origin) = origin {
                map.insert(ORIGIN, origin.parse().expect("a value"));
            }
            assert_eq!(access.check(&map).is_ok(), allowed, "{host} {origin:?}");
        }
        assert!(access.check(&HeaderMap::new()).is_err());
        for (site, allowed) in [("cross-site", false), ("same-site", false), ("none", true)] {
            let map = headers(&[("host", "localhost"), ("sec-fetch-site", site)]);
            assert_eq!(access.check(&map).is_ok(), allowed, "{site}");
        }
    }

    #[test]
    fn tokens_name_their_callers() {
        let access = local(Some(
            "# callers\nalice 0123456789abcdef\nbob fedcba9876543210\n",
        ));
        let who = |token: &'static str| {
            access.check(&headers(&[("host", "localhost"), ("authorization", token)]))
        };
        assert_eq!(
            who("Bearer 0123456789abcdef").ok().flatten().as_deref(),
            Some("alice")
        );
        assert_eq!(
            who("bearer fedcba9876543210").ok().flatten().as_deref(),
            Some("bob")
        );
        for wrong in [
            "Bearer",
            "Bearer 0123456789abcde",
            "Basic 0123456789abcdef",
            "",
        ] {
            let denied = who(wrong).expect_err(wrong);
            assert_eq!(denied.status, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(Tokens::parse("short").err(), Some(AccessError::Short(1)));
        assert_eq!(Tokens::parse("\n#x\n").err(), Some(AccessError::NoToken));
        assert_eq!(Tokens::parse("a b c").err(), Some(AccessError::Line(1)));
    }

    #[test]
    fn an_open_address_needs_a_token() {
        let open = SocketAddr::from(([0, 0, 0, 0], 1));
        assert_eq!(
            Access::new(open, None, &[], false).err(),
            Some(AccessError::Open(open))
        );
        assert!(Access::new(open, None, &[], true).is_ok());
        let tokens = Tokens::parse("0123456789abcdef").ok();
        assert!(Access::new(open, tokens, &[], false).is_ok());
    }
}
