//! Scans as JSON, and their progress as a stream of events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use toctou_sync::Permit;
use tokio::sync::mpsc;

use super::answer;
use super::body::Answer;
use crate::store::{Job, State, Store};

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Proxies end a connection that is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A scan that is not over by then is looked at anew.
const LONGEST: Duration = Duration::from_secs(15 * 60);

pub(super) fn job(job: &Job) -> Value {
    let mut value = json!({
        "id": job.id,
        "source": job.source,
        "state": job.state.as_str(),
        "progress": job.progress,
        "created": time(job.created),
        "page": format!("/scans/{}", job.id),
        "badge": format!("/badge/{}.svg", job.id),
    });
    let mut set = |name: &str, field: Option<Value>| {
        if let Some(field) = field {
            value[name] = field;
        }
    };
    set("finished", job.finished.map(|at| time(at).into()));
    set("error", job.error.as_deref().map(Value::from));
    set("grade", job.grade.as_deref().map(Value::from));
    set("score", job.score.map(Value::from));
    set("findings", job.findings.map(Value::from));
    set("revision", job.revision.as_deref().map(Value::from));
    if job.state == State::Done {
        set("report", Some(format!("/r/{}", job.id).into()));
        let json = format!("/api/scans/{}/report.json", job.id);
        set("report_json", Some(json.into()));
    }
    value
}

pub(super) fn list(jobs: &[Job]) -> Value {
    let scans: Vec<Value> = jobs.iter().map(job).collect();
    let mut value = json!({ "scans": scans });
    if let Some(last) = jobs.last() {
        value["before"] = last.number.into();
    }
    value
}

pub(super) fn time(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => time.to_string(),
        Err(_) => String::new(),
    }
}

/// `progress` whenever something changed, and `over` at the end. The permit is
/// given back when the client leaves.
pub(super) fn events(store: Arc<Store>, first: Job, permit: Permit) -> Response<Answer> {
    let (send, receive) = mpsc::channel(4);
    tokio::spawn(async move {
        let _permit = permit;
        let begun = tokio::time::Instant::now();
        let mut told = begun;
        let mut last: Option<Job> = None;
        let mut now = Some(first);
        while begun.elapsed() < LONGEST {
            if let Some(job) = now.take().filter(|job| last.as_ref() != Some(job)) {
                let name = if job.state.is_over() {
                    "over"
                } else {
                    "progress"
                };
                let event = format!("event: {name}\ndata: {}\n\n", self::job(&job));
                let over = job.state.is_over();
                if send.send(Bytes::from(event)).await.is_err() || over {
                    return;
                }
                last = Some(job);
                told = tokio::time::Instant::now();
            } else if told.elapsed() > KEEP_ALIVE {
                told = tokio::time::Instant::now();
                if send.send(Bytes::from_static(b":\n\n")).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = send.closed() => return,
            }
            // A store that is away for a moment is asked again.
            let id = last.as_ref().map(|job| job.id.clone()).unwrap_or_default();
            now = store.job(&id).await.ok().flatten();
        }
    });
    let mut response = answer::new(StatusCode::OK, "text/event-stream", "");
    *response.body_mut() = Answer::Stream(receive);
    // Proxies that gather answers would hold the events back.
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::answer::Problem;

    /// Checks an answer against the description of the API.
    fn is_described(value: &Value, name: &str) {
        let text = include_str!("../assets/openapi.json");
        let mut schema: Value = serde_json::from_str(text).expect("json");
        schema["$ref"] = format!("#/components/schemas/{name}").into();
        let validator = jsonschema::validator_for(&schema).expect("a valid schema");
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?} in {value}");
    }

    #[test]
    fn answers_are_as_described() {
        let mut one = Job {
            number: 7,
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            source: "https://git.example/a".to_owned(),
            is_upload: false,
            state: State::Queued,
            progress: String::new(),
            error: None,
            grade: None,
            score: None,
            findings: None,
            revision: None,
            created: 1_800_000_000_000,
            finished: None,
        };
        is_described(&job(&one), "Scan");
        one.state = State::Failed;
        one.error = Some("no".to_owned());
        is_described(&job(&one), "Scan");
        one = Job {
            state: State::Done,
            error: None,
            grade: Some("B".to_owned()),
            score: Some(82),
            findings: Some(1),
            revision: Some("1.0".to_owned()),
            finished: Some(1_800_000_000_500),
            ..one
        };
        is_described(&job(&one), "Scan");
        assert_eq!(job(&one)["finished"], "2027-01-15T08:00:00.5Z");
        is_described(&list(&[one.clone(), one]), "Scans");
        is_described(&list(&[]), "Scans");
        let Answer::Whole(Some(body)) = Problem::missing("x").hint("y").json().into_body() else {
            panic!("a whole answer");
        };
        is_described(&serde_json::from_slice(&body).expect("json"), "Problem");
    }
}
