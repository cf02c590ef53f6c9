//! Every address of the service. The description of the API is checked against this list.

use hyper::Method;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Front,
    Submit,
    Scan,
    Report,
    Badge,
    LatestBadge,
    Style,
    Script,
    Icon,
    Health,
    ApiSubmit,
    ApiList,
    ApiScan,
    ApiEvents,
    ApiReport,
    ApiDescription,
}

#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// `{id}` is one part of the path, `{rest}` all that follows.
    pub(crate) path: &'static str,
    pub(crate) place: Place,
}

const fn route(method: Method, path: &'static str, place: Place) -> Route {
    Route {
        method,
        path,
        place,
    }
}

pub(crate) const ROUTES: &[Route] = &[
    route(Method::GET, "/", Place::Front),
    route(Method::POST, "/scans", Place::Submit),
    route(Method::GET, "/scans/{id}", Place::Scan),
    route(Method::GET, "/r/{id}", Place::Report),
    route(Method::GET, "/badge/{id}.svg", Place::Badge),
    route(Method::GET, "/badge/latest/{rest}.svg", Place::LatestBadge),
    route(Method::GET, "/assets/page.css", Place::Style),
    route(Method::GET, "/assets/page.js", Place::Script),
    route(Method::GET, "/favicon.ico", Place::Icon),
    route(Method::GET, "/healthz", Place::Health),
    route(Method::POST, "/api/scans", Place::ApiSubmit),
    route(Method::GET, "/api/scans", Place::ApiList),
    route(Method::GET, "/api/scans/{id}", Place::ApiScan),
    route(Method::GET, "/api/scans/{id}/events", Place::ApiEvents),
    route(Method::GET, "/api/scans/{id}/report.json", Place::ApiReport),
    route(Method::GET, "/api/openapi.json", Place::ApiDescription),
];

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Place(Place, &'a str),
    /// There is something, for these methods.
    Methods(Vec<&'static str>),
    Nothing,
}

pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Found<'a> {
    let mut methods = Vec::new();
    for route in ROUTES {
        if let Some(parameter) = matches(route.path, path) {
            // HEAD is GET without its body, which hyper leaves out.
            if route.method == *method || (method == Method::HEAD && route.method == Method::GET) {
                return Found::Place(route.place, parameter);
            }
            methods.push(match route.method {
                Method::POST => "POST",
                _ => "GET",
            });
        }
    }
    if methods.is_empty() {
        Found::Nothing
    } else {
        Found::Methods(methods)
    }
}

/// What stands for the parameter, or nothing of the path.
fn matches<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once('{') else {
        return (pattern == path).then_some("");
    };
    let (name, after) = after.split_once('}')?;
    let value = path.strip_prefix(before)?.strip_suffix(after)?;
    let fits = match name {
        "id" => is_id(value),
        _ => !value.is_empty(),
    };
    fits.then_some(value)
}

/// 128 bits that nobody guesses.
pub(crate) fn new_id() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_id(text: &str) -> bool {
    text.len() == 32
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_somewhere() {
        let id = "0123456789abcdef0123456789abcdef";
        let get = |path: &str| match find(&Method::GET, path) {
            Found::Place(place, parameter) => Some((place, parameter.to_owned())),
            _ => None,
        };
        assert_eq!(get("/"), Some((Place::Front, String::new())));
        assert_eq!(
            get(&format!("/r/{id}")),
            Some((Place::Report, id.to_owned()))
        );
        assert_eq!(
            get("/badge/latest/github.com/a/b.svg"),
            Some((Place::LatestBadge, "github.com/a/b".to_owned()))
        );
        for path in [
            "",
            "/r/",
            "/r/../x",
            "/r/0123",
            "/badge/.svg",
            "//",
            "/scans",
        ] {
            assert_eq!(get(path), None, "{path}");
        }
        assert_eq!(
            find(&Method::PUT, "/api/scans"),
            Found::Methods(vec!["POST", "GET"])
        );
        assert_eq!(find(&Method::GET, "/nothing"), Found::Nothing);
        assert!(is_id(&new_id().expect("random")));
    }

    /// The description names every address, and no other.
    #[test]
    fn the_description_is_of_these_routes() {
        let text = include_str!("../assets/openapi.json");
        let document: serde_json::Value = serde_json::from_str(text).expect("json");
        let mut described: Vec<String> = Vec::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for method in methods.as_object().expect("methods").keys() {
                described.push(format!("{} {path}", method.to_uppercase()));
            }
        }
        let mut real: Vec<String> = ROUTES
            .iter()
            .map(|route| format!("{} {}", route.method, route.path))
            .collect();
        described.sort();
        real.sort();
        assert_eq!(described, real);
    }
}
