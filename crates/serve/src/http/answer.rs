//! Answers, all with the headers that keep a browser from believing strangers.

use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::{Response, StatusCode};

use super::body::Answer;

/// Our own pages: everything from here, nothing inline.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What is looked at alone needs nothing at all.
const BARE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";

pub(super) fn new(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Answer> {
    let body: Bytes = body.into();
    let mut response = Response::new(Answer::Whole(Some(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(CONTENT_TYPE, kind);
    set(CACHE_CONTROL, "no-store");
    set(HeaderName::from_static("x-content-type-options"), "nosniff");
    // Without any, a browser would not say where a form came from.
    set(HeaderName::from_static("referrer-policy"), "same-origin");
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    set(
        HeaderName::from_static("content-security-policy"),
        BARE_POLICY,
    );
    response
}

pub(super) fn policy(mut response: Response<Answer>, policy: HeaderValue) -> Response<Answer> {
    let name = HeaderName::from_static("content-security-policy");
    response.headers_mut().insert(name, policy);
    response
}

pub(super) fn page(status: StatusCode, html: String) -> Response<Answer> {
    let response = new(status, "text/html; charset=utf-8", html);
    policy(response, HeaderValue::from_static(PAGE_POLICY))
}

pub(super) fn json(status: StatusCode, value: &serde_json::Value) -> Response<Answer> {
    new(status, "application/json", format!("{value}\n"))
}

pub(super) fn see(place: &str) -> Response<Answer> {
    let mut response = new(StatusCode::SEE_OTHER, "text/plain", "");
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// May be kept by the browser for so many seconds.
pub(super) fn cached(mut response: Response<Answer>, seconds: u32) -> Response<Answer> {
    let value = HeaderValue::from_str(&format!("public, max-age={seconds}"));
    if let Ok(value) = value {
        response.headers_mut().insert(CACHE_CONTROL, value);
    }
    response
}

/// What is kept gzipped goes out gzipped, to whoever can read that.
pub(super) fn packed(kind: &'static str, gzipped: Vec<u8>, accepts: bool) -> Response<Answer> {
    if accepts {
        let mut response = new(StatusCode::OK, kind, gzipped);
        response
            .headers_mut()
            .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return response;
    }
    let mut bytes = Vec::new();
    let read = std::io::Read::read_to_end(
        &mut flate2::read::GzDecoder::new(gzipped.as_slice()),
        &mut bytes,
    );
    match read {
        Ok(_) => new(StatusCode::OK, kind, bytes),
        Err(error) => Problem::unavailable(&error).json(),
    }
}

/// Something that cannot be done, told to a person or to a program.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) what: String,
    pub(super) hint: Option<String>,
    /// In seconds.
    pub(super) retry_after: Option<u64>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self {
            status,
            what: what.into(),
            hint: None,
            retry_after: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn unavailable(error: &dyn std::fmt::Display) -> Self {
        crate::log::log("unavailable", error);
        let mut problem = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "this does not work right now",
        );
        problem.retry_after = Some(5);
        problem.hint("try again in a moment")
    }

    pub(super) fn missing(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    pub(super) fn json(&self) -> Response<Answer> {
        let mut error = serde_json::json!({ "what": self.what });
        if let Some(hint) = &self.hint {
            error["hint"] = hint.as_str().into();
        }
        self.later(json(self.status, &serde_json::json!({ "error": error })))
    }

    pub(super) fn later(&self, mut response: Response<Answer>) -> Response<Answer> {
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Text that a browser takes for nothing but text, in content and in quoted attributes.
pub(super) fn html_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Would change the order in which the rest is shown, or nothing that can be seen.
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_stays_text() {
        assert_eq!(
            super::html_text("<script>\"'&\u{202e}\0"),
            "&lt;script&gt;&quot;&#39;&amp;\u{fffd}\u{fffd}"
        );
    }
}
