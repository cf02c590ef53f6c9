//! Answers in HTTP's words.

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use super::access::Denied;
use super::body::{Answer, Stream};
use crate::wire::{self, Code};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An answer in place of what was asked for.
pub(super) type Rejected = Box<Response<Answer>>;

fn whole(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn text(status: StatusCode, text: String) -> Response<Answer> {
    whole(
        status,
        "text/plain; version=0.0.4; charset=utf-8",
        text.into(),
    )
}

pub(super) fn json(status: StatusCode, body: Bytes) -> Response<Answer> {
    whole(status, "application/json", body)
}

pub(super) fn empty(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(None));
    *response.status_mut() = status;
    response
}

pub(super) fn events(stream: Stream) -> Response<Answer> {
    let mut response = Response::new(Answer::Stream(stream));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    response
}

/// A refusal that belongs to no request, or to one with this id.
pub(super) fn error(
    status: StatusCode,
    id: Option<&str>,
    code: Code,
    message: &str,
) -> Response<Answer> {
    let body = wire::error(id, code, &format!("toctou guard: {message}"));
    json(status, body.into())
}

pub(super) fn no_session() -> Response<Answer> {
    let text = "there is no such session; begin a new one";
    error(StatusCode::NOT_FOUND, None, Code::InvalidRequest, text)
}

pub(super) fn no_room() -> Response<Answer> {
    let text = "no more sessions at the moment";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    error(status, None, Code::TooManyRequests, text)
}

pub(super) fn denied(denied: &Denied) -> Response<Answer> {
    let mut response = error(denied.status, None, Code::InvalidRequest, denied.because);
    if denied.status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
