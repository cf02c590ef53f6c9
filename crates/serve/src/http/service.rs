//! The service: who asks, for what, and whether that is allowed.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, ALLOW, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};

use super::answer::{self, Problem};
use super::body::Answer;
use super::routes::{self, Found, Place};
use super::{api, form, pages};
use crate::callers::{self, Callers, Denied};
use crate::store::{Format, Job, State, Store};

#[derive(Clone, Debug)]
pub(crate) struct SiteOptions {
    /// In bytes.
    pub(crate) max_upload: usize,
    /// Private addresses and plain http may be asked.
    pub(crate) private: bool,
    /// The last address in `X-Forwarded-For` is the caller's.
    pub(crate) behind_proxy: bool,
    /// Listens on this machine only: then pages of others have no business here.
    pub(crate) local: bool,
}

pub(crate) struct Service {
    pub(crate) store: Arc<Store>,
    pub(crate) callers: Callers,
    pub(crate) arrived: Arc<tokio::sync::Notify>,
    pub(crate) options: SiteOptions,
    /// Uploads are held in memory: so many at a time, whoever sends them.
    pub(crate) uploads: tokio::sync::Semaphore,
}

pub(super) type Result<T> = std::result::Result<T, Problem>;

impl Service {
    pub(super) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: IpAddr,
    ) -> Response<Answer> {
        let path = request.uri().path().to_owned();
        let is_api = path.starts_with("/api/");
        match self.answer(request, &path, peer).await {
            Ok(response) => response,
            Err(problem) if is_api => problem.json(),
            Err(problem) => {
                let page = answer::page(problem.status, pages::problem(&problem));
                problem.later(page)
            }
        }
    }

    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &str,
        peer: IpAddr,
    ) -> Result<Response<Answer>> {
        self.check_host(request.headers())?;
        let (place, parameter) = match routes::find(request.method(), path) {
            Found::Place(place, parameter) => (place, parameter),
            Found::Methods(methods) => {
                let mut response =
                    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not in this way").json();
                if let Ok(methods) = HeaderValue::from_str(&methods.join(", ")) {
                    response.headers_mut().insert(ALLOW, methods);
                }
                return Ok(response);
            }
            Found::Nothing => return Err(Problem::missing("there is nothing at this address")),
        };
        if *request.method() == Method::POST {
            check_origin(request.headers())?;
        }
        let caller = self.caller(request.headers(), peer);
        let zipped = accepts_gzip(request.headers());
        let query = request.uri().query().unwrap_or_default().to_owned();
        Ok(match place {
            Place::Front => {
                let before = form::urlencoded(&query, "before").and_then(|n| n.parse().ok());
                let jobs = self.recent(before, pages::LISTED, false).await?;
                answer::page(StatusCode::OK, pages::front(&jobs, &self.options))
            }
            Place::Submit => {
                let wanted = self.wanted_by_form(request, &caller).await?;
                let id = self.submit(wanted, &caller).await?;
                answer::see(&format!("/scans/{id}"))
            }
            Place::Scan => {
                let job = self.job(parameter).await?;
                let base = self.base(request.headers());
                answer::page(StatusCode::OK, pages::scan(&job, &base))
            }
            Place::Report => match self.job(parameter).await?.state {
                State::Done => {
                    let (html, policy) = self.report(parameter, Format::Html).await?;
                    let page = answer::packed("text/html; charset=utf-8", html, zipped);
                    let policy =
                        HeaderValue::from_str(&format!("{policy}; frame-ancestors 'none'"));
                    answer::policy(page, policy.map_err(|error| Problem::unavailable(&error))?)
                }
                _ => answer::see(&format!("/scans/{parameter}")),
            },
            Place::Badge => badge(Some(&self.job(parameter).await?)),
            Place::LatestBadge => {
                let source = form::decoded(parameter).unwrap_or_default();
                let job = self.store.latest(&format!("https://{source}")).await;
                badge(job.map_err(|error| Problem::unavailable(&error))?.as_ref())
            }
            Place::Style => asset(
                "text/css; charset=utf-8",
                include_str!("../assets/page.css"),
            ),
            Place::Script => asset(
                "text/javascript; charset=utf-8",
                include_str!("../assets/page.js"),
            ),
            Place::Icon => asset("image/svg+xml", pages::ICON),
            Place::Health => {
                let checked = self.store.check().await;
                checked.map_err(|error| Problem::unavailable(&error))?;
                answer::new(StatusCode::OK, "text/plain", "ok\n")
            }
            Place::ApiSubmit => {
                let wanted = self.wanted_by_api(request, &query, &caller).await?;
                let id = self.submit(wanted, &caller).await?;
                answer::json(StatusCode::ACCEPTED, &api::job(&self.job(&id).await?))
            }
            Place::ApiList => {
                let before = form::urlencoded(&query, "before").and_then(|n| n.parse().ok());
                let most = form::urlencoded(&query, "limit").and_then(|n| n.parse().ok());
                let jobs = self.recent(before, most.unwrap_or(50), true).await?;
                answer::json(StatusCode::OK, &api::list(&jobs))
            }
            Place::ApiScan => answer::json(StatusCode::OK, &api::job(&self.job(parameter).await?)),
            Place::ApiEvents => {
                let job = self.job(parameter).await?;
                let permit = self.callers.enter(&caller).await.map_err(denied)?;
                api::events(Arc::clone(&self.store), job, permit)
            }
            Place::ApiReport => {
                let (json, _) = self.report(parameter, Format::Json).await?;
                answer::packed("application/json", json, zipped)
            }
            Place::ApiDescription => {
                asset("application/json", include_str!("../assets/openapi.json"))
            }
        })
    }

    /// A page elsewhere that gave its own name our address must not talk to a
    /// service that is for this machine only.
    fn check_host(&self, headers: &HeaderMap) -> Result<()> {
        if !self.options.local {
            return Ok(());
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let name = host.map(|host| match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        });
        let is_local = name.is_some_and(|name| {
            name.eq_ignore_ascii_case("localhost")
                || name
                    .trim_matches(['[', ']'])
                    .parse()
                    .is_ok_and(|ip: IpAddr| ip.is_loopback())
        });
        if is_local {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this service is for its own machine",
        )
        .hint("start it with `--listen` on an address that others can reach"))
    }

    fn caller(&self, headers: &HeaderMap, peer: IpAddr) -> String {
        let forwarded = headers
            .get_all("x-forwarded-for")
            .iter()
            .next_back()
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.rsplit(',').next())
            .and_then(|value| value.trim().parse().ok())
            .filter(|_| self.options.behind_proxy);
        callers::name(forwarded.unwrap_or(peer))
    }

    /// How the service is reached, for snippets to copy.
    fn base(&self, headers: &HeaderMap) -> String {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let secure = self.options.behind_proxy && text("x-forwarded-proto") == Some("https");
        let scheme = if secure { "https" } else { "http" };
        format!("{scheme}://{}", text("host").unwrap_or("localhost"))
    }

    async fn job(&self, id: &str) -> Result<Job> {
        match self.store.job(id).await {
            Ok(Some(job)) => Ok(job),
            Ok(None) => Err(Problem::missing("there is no such scan")),
            Err(error) => Err(Problem::unavailable(&error)),
        }
    }

    async fn report(&self, id: &str, format: Format) -> Result<(Vec<u8>, String)> {
        match self.store.report(id, format).await {
            Ok(Some(report)) => Ok(report),
            Ok(None) => Err(Problem::missing("there is no such report (yet)")),
            Err(error) => Err(Problem::unavailable(&error)),
        }
    }

    async fn recent(&self, before: Option<i64>, most: i64, all: bool) -> Result<Vec<Job>> {
        let jobs = self
            .store
            .recent(before.unwrap_or(i64::MAX), most.clamp(1, 100), all)
            .await;
        jobs.map_err(|error| Problem::unavailable(&error))
    }
}

/// A browser says where a form came from; programs say nothing.
fn check_origin(headers: &HeaderMap) -> Result<()> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // Newer browsers say it plainly, older ones by the origin alone.
    let foreign = match text("sec-fetch-site") {
        Some(site) => !matches!(site, "same-origin" | "none"),
        None => is_other_origin(text),
    };
    if foreign {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "another site sent this",
        ));
    }
    Ok(())
}

fn is_other_origin<'a>(text: impl Fn(&str) -> Option<&'a str>) -> bool {
    let origin = text(ORIGIN.as_str()).map(|origin| match origin.split_once("://") {
        Some((_, host)) => host,
        None => origin,
    });
    origin.is_some() && origin != text(HOST.as_str())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.split(',').any(|part| part.trim().starts_with("gzip")))
    })
}

pub(super) fn denied(denied: Denied) -> Problem {
    match denied {
        Denied::Unavailable(error) => Problem::unavailable(&error),
        Denied::Later(time) => {
            let seconds = time.as_secs_f64().ceil().max(1.0) as u64;
            let mut problem = Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "you have asked for as much as one caller may",
            );
            problem.retry_after = Some(seconds);
            problem.hint(format!("try again in {seconds} seconds"))
        }
    }
}

fn asset(kind: &'static str, text: &'static str) -> Response<Answer> {
    answer::cached(answer::new(StatusCode::OK, kind, text), 300)
}

fn badge(job: Option<&Job>) -> Response<Answer> {
    let value = match job {
        None => "not scanned".to_owned(),
        Some(job) => match (job.state, &job.grade, job.score) {
            (State::Done, Some(grade), Some(score)) => format!("{grade} {score}"),
            (State::Failed, ..) => "failed".to_owned(),
            _ => "running".to_owned(),
        },
    };
    let over = job.is_some_and(|job| job.state.is_over());
    let svg = answer::new(StatusCode::OK, "image/svg+xml", crate::badge::svg(&value));
    answer::cached(svg, if over { 300 } else { 0 })
}
