//! What somebody wants to have scanned: read from a form or from a request,
//! checked as far as it can be without asking anybody, and put into the queue.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, StatusCode};
use toctou_source::{Remote, Spec};

use super::answer::Problem;
use super::service::{Result, Service, denied};
use super::{form, routes};
use crate::callers::Denied;
use crate::store::NewJob;

/// A form or a request that is longer is none.
const MOST_TEXT: usize = 64 << 10;
/// And one that takes longer is none, either.
const TEXT_WITHIN: Duration = Duration::from_secs(20);
/// An upload that takes longer is not worth its memory.
const UPLOAD_WITHIN: Duration = Duration::from_secs(120);

/// What somebody wants to have scanned.
pub(super) enum Wanted {
    Source(String),
    Upload { name: String, bytes: Vec<u8> },
}

impl Service {
    pub(super) async fn submit(&self, wanted: Wanted, caller: &str) -> Result<String> {
        let (source, upload) = match wanted {
            Wanted::Source(text) => (self.source(&text)?, None),
            Wanted::Upload { name, bytes } => {
                if !bytes.starts_with(b"PK") && !bytes.starts_with(b"\x1f\x8b") {
                    return Err(
                        Problem::new(StatusCode::BAD_REQUEST, "this is not an archive")
                            .hint("a .zip, .whl or .tgz file is one"),
                    );
                }
                (upload_name(&name), Some(bytes))
            }
        };
        self.callers.take(caller).await.map_err(denied)?;
        let id = routes::new_id().map_err(|error| Problem::unavailable(&error))?;
        let job = NewJob {
            id: id.clone(),
            source,
            upload,
            caller: caller.to_owned(),
        };
        let submitted = self.callers.submit(&self.store, job).await;
        submitted.map_err(denied)?;
        self.arrived.notify_one();
        Ok(id)
    }

    /// The address in one form, whatever was typed; what can be known to be
    /// refused is refused now. Names are looked up by the scan itself.
    fn source(&self, text: &str) -> Result<String> {
        let wrong = |what: String| Problem::new(StatusCode::BAD_REQUEST, what);
        let spec = Spec::parse(text.trim()).map_err(|error| {
            wrong(error.to_string()).hint(
                "give https://host/path, owner/name for GitHub, npm:name@version or pypi:name==version",
            )
        })?;
        let git = match spec {
            Spec::Npm { .. } | Spec::Pypi { .. } => return Ok(text.trim().to_owned()),
            Spec::Git(git) => git,
            Spec::Archive(_) => return Err(wrong("not an address".to_owned())),
        };
        match &git.remote {
            Remote::Http {
                secure: true, host, ..
            } => {
                let private = host
                    .parse()
                    .is_ok_and(|ip: IpAddr| !toctou_source::is_public(ip));
                if private && !self.options.private {
                    return Err(wrong(format!("{host} is not a public address")));
                }
            }
            Remote::Http { .. } if self.options.private => {}
            _ => return Err(wrong("only https addresses can be scanned".to_owned())),
        }
        Ok(git.to_string())
    }

    pub(super) async fn wanted_by_form(
        &self,
        request: Request<Incoming>,
        caller: &str,
    ) -> Result<Wanted> {
        let kind = content_type(request.headers());
        let empty = || {
            Problem::new(StatusCode::BAD_REQUEST, "nothing to scan was given")
                .hint("give an address, or choose an archive")
        };
        if let Some(boundary) = form::boundary(&kind) {
            let body = self.upload(request, caller).await?;
            let fields = form::multipart(&body, boundary)
                .ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, "the form cannot be read"))?;
            let upload = fields
                .iter()
                .find(|field| field.file.is_some() && !field.value.is_empty());
            if let Some(field) = upload {
                return Ok(Wanted::Upload {
                    name: field.file.clone().unwrap_or_default(),
                    bytes: field.value.to_vec(),
                });
            }
            let source = fields
                .iter()
                .find(|field| field.name == "source")
                .map(|field| String::from_utf8_lossy(field.value).into_owned());
            return source
                .filter(|source| !source.trim().is_empty())
                .map(Wanted::Source)
                .ok_or_else(empty);
        }
        let body = read(request, MOST_TEXT, TEXT_WITHIN).await?;
        let text = String::from_utf8_lossy(&body);
        form::urlencoded(&text, "source")
            .filter(|source| !source.trim().is_empty())
            .map(Wanted::Source)
            .ok_or_else(empty)
    }

    pub(super) async fn wanted_by_api(
        &self,
        request: Request<Incoming>,
        query: &str,
        caller: &str,
    ) -> Result<Wanted> {
        let kind = content_type(request.headers());
        match kind.split(';').next().unwrap_or_default().trim() {
            "application/json" => {
                let body = read(request, MOST_TEXT, TEXT_WITHIN).await?;
                let value: serde_json::Value = serde_json::from_slice(&body)
                    .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
                let source = value.get("source").and_then(|source| source.as_str());
                let source = source.ok_or_else(|| {
                    Problem::new(StatusCode::BAD_REQUEST, "`source` is missing")
                        .hint("{\"source\": \"https://host/path\"}")
                })?;
                Ok(Wanted::Source(source.to_owned()))
            }
            "application/zip" | "application/gzip" | "application/octet-stream" => {
                let name = form::urlencoded(query, "name").unwrap_or_default();
                let bytes = self.upload(request, caller).await?.to_vec();
                Ok(Wanted::Upload { name, bytes })
            }
            _ => Err(
                Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "what is this?")
                    .hint("send application/json with a source, or application/zip"),
            ),
        }
    }

    async fn upload(&self, request: Request<Incoming>, caller: &str) -> Result<Bytes> {
        let permit = self.callers.enter(caller).await.map_err(denied)?;
        let Ok(_room) = self.uploads.try_acquire() else {
            return Err(denied(Denied::Later(Duration::from_secs(5))));
        };
        let body = read(request, self.options.max_upload, UPLOAD_WITHIN).await?;
        let _ = permit.release().await;
        Ok(body)
    }
}

async fn read(request: Request<Incoming>, most: usize, within: Duration) -> Result<Bytes> {
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("this is too large: at most {} can be sent", size(most)),
        )
    };
    let announced = hyper::body::Body::size_hint(request.body()).lower();
    if announced > most as u64 {
        return Err(too_large());
    }
    let reading = Limited::new(request.into_body(), most).collect();
    match tokio::time::timeout(within, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::new(StatusCode::BAD_REQUEST, error.to_string())),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "this takes too long",
        )),
    }
}

fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 {
        format!("{} MB", bytes >> 20)
    } else {
        format!("{} kB", bytes >> 10)
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// The last part of the name, in letters that mean nothing anywhere.
fn upload_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    match name.trim() {
        "" => "upload.zip".to_owned(),
        name => name.trim_start_matches('-').to_owned(),
    }
}
