//! The address of a database server, taken apart as far as it has to be changed.

/// `scheme://user:password@host:port/path?query`
#[derive(Clone)]
pub struct Address {
    scheme: String,
    /// With the `@`.
    user: String,
    /// As it was given.
    place: String,
    pub host: Host,
    path: String,
    query: Vec<String>,
    /// As it was given.
    pub url: String,
}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Tcp(String, u16),
    Unix(std::path::PathBuf),
}

impl Address {
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let postgres = scheme.starts_with("postgres");
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (format!("{user}@"), place),
            None => (String::new(), place),
        };
        let query: Vec<String> = query
            .split('&')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let option = |name: &str| {
            query
                .iter()
                .filter_map(|part| part.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| decoded(value))
        };
        let usual = if postgres { 5432 } else { 6379 };
        let (name, port) = match place.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()?),
            _ => (place, usual),
        };
        let port = option("port").map_or(Some(port), |port| port.parse().ok())?;
        let name = option("host").unwrap_or_else(|| decoded(name));
        let host = match name.as_str() {
            // Several hosts are for servers that are copied: not for scratch places.
            name if name.contains(',') => return None,
            folder if folder.starts_with('/') => {
                Host::Unix(std::path::Path::new(folder).join(format!(".s.PGSQL.{port}")))
            }
            "" => Host::Tcp("localhost".to_owned(), port),
            name => Host::Tcp(name.trim_matches(['[', ']']).to_owned(), port),
        };
        Some(Self {
            scheme: scheme.to_owned(),
            user,
            place: place.to_owned(),
            host,
            path: decoded(path),
            query,
            url: url.to_owned(),
        })
    }

    /// The database that it names.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Another path and, if given, another place; `more` is added to the query.
    pub fn with(&self, path: &str, at: Option<(&str, u16)>, more: &[String]) -> String {
        let mut query: Vec<&str> = self.query.iter().map(String::as_str).collect();
        let place = match (at, &self.host) {
            (Some((host, port)), _) => {
                let names_place = |part: &&str| {
                    ["host=", "port=", "hostaddr="]
                        .iter()
                        .any(|name| part.starts_with(name))
                };
                query.retain(|part| !names_place(part));
                format!("{host}:{port}")
            }
            (None, Host::Tcp(host, port)) if host.contains(':') => format!("[{host}]:{port}"),
            (None, Host::Tcp(host, port)) => format!("{host}:{port}"),
            // The query still says where.
            (None, Host::Unix(_)) => self.place.clone(),
        };
        query.extend(more.iter().map(String::as_str));
        let query = match query.as_slice() {
            [] => String::new(),
            parts => format!("?{}", parts.join("&")),
        };
        format!("{}://{}{place}/{path}{query}", self.scheme, self.user)
    }
}

/// `%2F` and the like.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart_and_put_together() {
        let address = Address::parse("postgres://me:p%40ss@db.example:6000/shop?sslmode=disable")
            .expect("an address");
        assert_eq!(address.host, Host::Tcp("db.example".to_owned(), 6000));
        assert_eq!(address.path(), "shop");
        assert_eq!(
            address.with("scratch", Some(("127.0.0.1", 15432)), &["a=b".to_owned()]),
            "postgres://me:p%40ss@127.0.0.1:15432/scratch?sslmode=disable&a=b"
        );
        let socket = Address::parse("postgresql:///shop?host=/run/postgresql&port=5433")
            .expect("an address");
        assert_eq!(
            socket.host,
            Host::Unix("/run/postgresql/.s.PGSQL.5433".into())
        );
        assert_eq!(
            socket.with("x", Some(("localhost", 1)), &[]),
            "postgresql://localhost:1/x"
        );
        assert_eq!(
            socket.with("x", None, &[]),
            "postgresql:///x?host=/run/postgresql&port=5433"
        );
        let encoded = Address::parse("postgres://u@%2Fvar%2Frun/d").expect("an address");
        assert_eq!(encoded.host, Host::Unix("/var/run/.s.PGSQL.5432".into()));
        assert_eq!(encoded.with("x", None, &[]), "postgres://u@%2Fvar%2Frun/x");
        let redis = Address::parse("redis://localhost").expect("an address");
        assert_eq!(redis.with("3", None, &[]), "redis://localhost:6379/3");
        assert!(Address::parse("postgres://a,b/d").is_none());
        assert!(Address::parse("nothing").is_none());
    }
}
