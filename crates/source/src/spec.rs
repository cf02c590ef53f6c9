//! What a user may name: the text, and what it means.
//!
//! Addresses are taken apart here and put together again from parts that were
//! checked, so that what was checked is what the client sees.

use std::path::{Path, PathBuf};

use crate::SourceError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    Git(GitSpec),
    Npm {
        name: String,
        version: Option<String>,
    },
    Pypi {
        name: String,
        version: Option<String>,
    },
    Archive(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSpec {
    pub remote: Remote,
    /// A branch, a tag or a full commit id.
    pub reference: Option<String>,
    pub folder: Option<String>,
}

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// `http` or `https`; the host in small letters, IPv6 without its brackets.
    Http {
        secure: bool,
        host: String,
        port: Option<u16>,
        path: String,
    },
    Ssh {
        user: Option<String>,
        host: String,
        port: Option<u16>,
        path: String,
    },
    File(String),
}

const ARCHIVES: [&str; 4] = [".zip", ".tgz", ".tar.gz", ".whl"];

impl Spec {
    /// What `text` names, if it is not a path here: a path always wins. `None`
    /// is a plain file or folder, or one that is missing.
    ///
    /// # Errors
    ///
    /// When it can only be a source, and is not a valid one.
    pub fn of(text: &str) -> Result<Option<Self>, SourceError> {
        let path = Path::new(text);
        if path.exists() {
            return Ok((path.is_file() && is_archive(text)).then(|| Self::Archive(path.into())));
        }
        let is_shorthand = shorthand(text).is_some()
            // `src/tols` is a misspelt path where there is a `src`.
            && !text.split('/').next().is_some_and(|first| Path::new(first).exists());
        if is_shorthand || is_address(text) {
            return Self::parse(text).map(Some);
        }
        Ok(None)
    }

    /// What `text` names, whatever is here.
    ///
    /// # Errors
    ///
    /// When it is not a source.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let wrong = |because: &str| SourceError::NotASource {
            text: text.chars().take(200).collect(),
            because: because.to_owned(),
        };
        if text.len() > 2000 {
            return Err(wrong("it is too long"));
        }
        if let Some(rest) = text.strip_prefix("npm:") {
            return npm(rest).ok_or_else(|| wrong("not a package of npm: npm:name@version"));
        }
        if let Some(rest) = text.strip_prefix("pypi:") {
            return pypi(rest).ok_or_else(|| wrong("not a package of PyPI: pypi:name==version"));
        }
        git(text).map(Self::Git).map_err(|because| wrong(&because))
    }
}

impl GitSpec {
    /// Without reference and folder, as one would type it.
    pub fn name(&self) -> String {
        self.remote.to_string()
    }
}

impl std::fmt::Display for GitSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.remote)?;
        if let Some(reference) = &self.reference {
            write!(f, "@{reference}")?;
        }
        if let Some(folder) = &self.folder {
            write!(f, "#{folder}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (user, host, port, path) = match self {
            Self::File(path) => return write!(f, "file://{path}"),
            Self::Http {
                secure,
                host,
                port,
                path,
            } => {
                f.write_str(if *secure { "https://" } else { "http://" })?;
                (None, host, port, path)
            }
            Self::Ssh {
                user,
                host,
                port,
                path,
            } => {
                f.write_str("ssh://")?;
                (user.as_ref(), host, port, path)
            }
        };
        if let Some(user) = user {
            write!(f, "{user}@")?;
        }
        if host.contains(':') {
            write!(f, "[{host}]")?;
        } else {
            f.write_str(host)?;
        }
        if let Some(port) = port {
            write!(f, ":{port}")?;
        }
        f.write_str(path)
    }
}

pub(crate) fn is_archive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ARCHIVES.iter().any(|ending| name.ends_with(ending))
}

fn is_address(text: &str) -> bool {
    text.contains("://")
        || text.starts_with("npm:")
        || text.starts_with("pypi:")
        || scp(text).is_some()
}

/// `owner/name`, with what may follow.
fn shorthand(text: &str) -> Option<(&str, &str, &str)> {
    let (owner, rest) = text.split_once('/')?;
    let end = rest.find(['@', '#']).unwrap_or(rest.len());
    let (name, tail) = rest.split_at(end);
    let is_owner = !owner.is_empty()
        && owner.len() <= 39
        && !owner.starts_with('-')
        && owner
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_name = !name.is_empty()
        && name.len() <= 100
        && !matches!(name, "." | "..")
        && name.bytes().all(is_word);
    (is_owner && is_name).then_some((owner, name, tail))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// `git@host:path`, as ssh users know it.
fn scp(text: &str) -> Option<(&str, &str, &str)> {
    let (user, rest) = text.split_once('@')?;
    let (host, path) = rest.split_once(':')?;
    let plain =
        |part: &str| !part.is_empty() && !part.starts_with('-') && part.bytes().all(is_word);
    (plain(user) && plain(host) && !path.is_empty() && !path.starts_with("//"))
        .then_some((user, host, path))
}

fn git(text: &str) -> Result<GitSpec, String> {
    if let Some((owner, name, tail)) = shorthand(text) {
        let path = format!("/{owner}/{name}");
        let (rest, reference, folder) = tails(tail)?;
        debug_assert!(rest.is_empty());
        return Ok(GitSpec {
            remote: Remote::Http {
                secure: true,
                host: "github.com".to_owned(),
                port: None,
                path,
            },
            reference,
            folder,
        });
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (path, reference, folder) = tails(path)?;
        let path = checked_path(path)?;
        let remote = match scheme.to_ascii_lowercase().as_str() {
            "file" if matches!(authority, "" | "localhost") => Remote::File(path),
            "file" => return Err("a file address starts with file:///".to_owned()),
            scheme @ ("http" | "https") => {
                if authority.contains('@') {
                    return Err("an address with a user or a password in it".to_owned());
                }
                let (host, port) = host_and_port(authority)?;
                Remote::Http {
                    secure: scheme == "https",
                    host,
                    port,
                    path,
                }
            }
            "ssh" => {
                let (user, place) = match authority.split_once('@') {
                    Some((user, place)) => (Some(user), place),
                    None => (None, authority),
                };
                if user.is_some_and(|user| {
                    user.is_empty() || user.starts_with('-') || !user.bytes().all(is_word)
                }) {
                    return Err("a user name that is none".to_owned());
                }
                let (host, port) = host_and_port(place)?;
                Remote::Ssh {
                    user: user.map(str::to_owned),
                    host,
                    port,
                    path,
                }
            }
            _ => return Err("https, ssh and file addresses are known".to_owned()),
        };
        return Ok(GitSpec {
            remote,
            reference,
            folder,
        });
    }
    if let Some((user, host, path)) = scp(text) {
        let (path, reference, folder) = tails(path)?;
        let path = checked_path(&format!("/{}", path.trim_start_matches('/')))?;
        return Ok(GitSpec {
            remote: Remote::Ssh {
                user: Some(user.to_owned()),
                host: host.to_ascii_lowercase(),
                port: None,
                path,
            },
            reference,
            folder,
        });
    }
    Err("neither a path that exists nor a source".to_owned())
}

/// Cuts `@ref` and `#folder` off. An `@` after a slash belongs to the path (`/@scope/name`).
fn tails(text: &str) -> Result<(&str, Option<String>, Option<String>), String> {
    let (text, folder) = match text.split_once('#') {
        Some((text, folder)) => (text, Some(folder)),
        None => (text, None),
    };
    let at = text
        .char_indices()
        .find(|&(at, c)| c == '@' && !text[..at].ends_with('/'))
        .map(|(at, _)| at);
    let (path, reference) = match at {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    if let Some(reference) = reference
        && !is_reference(reference)
    {
        return Err(format!("`{reference}` is not a branch, a tag or a commit"));
    }
    let folder = match folder.map(|folder| folder.trim_matches('/')) {
        None | Some("") => None,
        Some(folder) if is_folder(folder) => Some(folder.to_owned()),
        Some(folder) => return Err(format!("`{folder}` is not a folder of a repository")),
    };
    Ok((path, reference.map(str::to_owned), folder))
}

/// Nothing that Git would take for an option, a range or a mapping of names.
fn is_reference(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 250
        && !text.starts_with(['-', '/', '.', '+'])
        && !text.ends_with(['/', '.'])
        && !text.contains("..")
        && !text.contains("//")
        && text
            .bytes()
            .all(|b| is_word(b) || matches!(b, b'/' | b'+' | b'@' | b'='))
        && !text.contains("@{")
}

fn is_folder(text: &str) -> bool {
    text.len() <= 1000
        && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !text
            .chars()
            .any(|c| c.is_control() || c == ':' || c == '\\')
}

fn checked_path(path: &str) -> Result<String, String> {
    let plain = |b: u8| is_word(b) || matches!(b, b'/' | b'~' | b'+' | b'@' | b'%' | b'=' | b',');
    if path.len() < 2 || !path.starts_with('/') {
        return Err("the address names no repository".to_owned());
    }
    match path.bytes().find(|&b| !plain(b)) {
        Some(b) => Err(format!(
            "there is a {:?} in the path of the address",
            char::from(b)
        )),
        None if path.split('/').any(|part| matches!(part, "." | "..")) => {
            Err("there is a `..` in the path of the address".to_owned())
        }
        None => Ok(path.to_owned()),
    }
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']').ok_or("a bracket is missing")?;
            let address: std::net::Ipv6Addr = host.parse().map_err(|_| "not an address of IPv6")?;
            let port = match tail {
                "" => None,
                tail => Some(tail.strip_prefix(':').ok_or("no port after the bracket")?),
            };
            (address.to_string(), port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_ascii_lowercase(), Some(port)),
            None => (text.to_ascii_lowercase(), None),
        },
    };
    let is_name = host.contains(':')
        || (!host.is_empty()
            && host.len() <= 253
            && host.split('.').all(|label| {
                !label.is_empty()
                    && !label.starts_with('-')
                    && label
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            }));
    if !is_name {
        return Err(format!("`{host}` is not the name of a host"));
    }
    let port = match port {
        None => None,
        Some(port) => Some(
            port.parse()
                .ok()
                .filter(|&number: &u16| number != 0 && port.bytes().all(|b| b.is_ascii_digit()))
                .ok_or("not a port")?,
        ),
    };
    Ok((host, port))
}

/// Names and versions only: no ranges, aliases, folders or addresses, which
/// npm would understand too.
fn npm(text: &str) -> Option<Spec> {
    let (name, version) = match text.char_indices().skip(1).find(|&(_, c)| c == '@') {
        Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_', '-'])
            && part.bytes().all(|b| is_word(b) || b == b'~')
    };
    let is_name = match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
        None => is_part(name),
    };
    (is_name && name.len() <= 214 && version.is_none_or(is_version)).then(|| Spec::Npm {
        name: name.to_owned(),
        version: version.map(str::to_owned),
    })
}

fn pypi(text: &str) -> Option<Spec> {
    let (name, version) = match text.split_once("==") {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let is_name = name.len() <= 200
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(is_word);
    (is_name && version.is_none_or(is_version)).then(|| Spec::Pypi {
        name: name.to_owned(),
        version: version.map(str::to_owned),
    })
}

fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| is_word(b) || matches!(b, b'+' | b'!'))
}

#[cfg(test)]
mod tests;
