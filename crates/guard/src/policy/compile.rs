//! From what is written to what it means.

use std::ops::Range;
use std::time::Duration;

use thiserror::Error;

use super::file::{
    ByFile, CancelFile, LockMode, OnLoss, OneOrMany, PolicyFile, RunMode, ServerFile, Spanned,
    ToolFile,
};
use super::{
    By, Defaults, Idempotency, InFlight, Mode, NamePattern, OnCancel, Policy, Rate, Template,
    ToolPolicy,
};

/// What is wrong with a policy, and where.
#[derive(Debug, Error)]
pub enum PolicyError {
    #[error(transparent)]
    Syntax(#[from] toml::de::Error),
    #[error("{message}")]
    At {
        at: usize,
        message: String,
        hint: Option<String>,
    },
}

/// Reads a policy and the servers it names.
pub fn parse(text: &str) -> Result<(Policy, Vec<(String, ServerFile)>), PolicyError> {
    let file: PolicyFile = toml::from_str(text)?;
    let plain = Defaults::default();
    let defaults = Defaults {
        wait: duration(file.defaults.wait.as_ref())?.unwrap_or(plain.wait),
        queue: file.defaults.queue.unwrap_or(plain.queue),
        timeout: duration(file.defaults.timeout.as_ref())?,
        cancel_hold: duration(file.defaults.cancel_hold.as_ref())?.unwrap_or(plain.cancel_hold),
    };
    let tools = file.tool.iter().map(tool).collect::<Result<_, _>>()?;
    let policy = Policy {
        tools,
        defaults,
        namespace: file.namespace,
        observe: matches!(file.mode, RunMode::Observe),
        meta: file.meta,
        backend: file.backend,
        open_on_loss: matches!(file.on_backend_loss, OnLoss::Open),
    };
    Ok((policy, file.servers.into_iter().collect()))
}

fn tool(file: &ToolFile) -> Result<ToolPolicy, PolicyError> {
    let names = names(&file.matches)?;
    let locks = match &file.lock {
        None => None,
        Some(lock) => Some(
            lock.get_ref()
                .as_slice()
                .iter()
                .map(|text| template(text, lock.span()))
                .collect::<Result<Vec<_>, _>>()?,
        ),
    };
    let in_flight = match &file.in_flight {
        None => None,
        Some(limit) => {
            let value = limit.get_ref();
            if value.max == 0 {
                return Err(wrong(limit.span(), "`max` is 0: no call could ever run"));
            }
            Some(InFlight {
                max: value.max,
                by: by(value.by),
                queue: value.queue,
            })
        }
    };
    let rate = match &file.rate {
        None => None,
        Some(rate) => {
            let value = rate.get_ref();
            let burst = value.burst.unwrap_or(value.calls);
            let per = span_of(&value.per, rate.span())?;
            if value.calls == 0 || burst == 0 || per.is_zero() {
                return Err(wrong(rate.span(), "a rate of 0: no call could ever run"));
            }
            Some(Rate {
                calls: value.calls,
                per,
                burst,
                by: by(value.by),
            })
        }
    };
    let idempotency = match &file.idempotency {
        None => None,
        Some(value) => {
            let key = template(value.key.get_ref(), value.key.span())?;
            if key.is_constant() {
                return Err(PolicyError::At {
                    at: value.key.span().start,
                    message: "the key is the same for every call".to_owned(),
                    hint: Some("name an argument: \"{requestId}\"".to_owned()),
                });
            }
            Some(Idempotency {
                key,
                keep: duration(value.keep.as_ref())?.unwrap_or(Duration::from_secs(86_400)),
            })
        }
    };
    Ok(ToolPolicy {
        names,
        server: file.server.clone(),
        locks,
        mode: match file.mode {
            LockMode::Annotated => Mode::Annotated,
            LockMode::Shared => Mode::Shared,
            LockMode::Exclusive => Mode::Exclusive,
        },
        wait: duration(file.wait.as_ref())?,
        queue: file.queue,
        timeout: duration(file.timeout.as_ref())?,
        in_flight,
        rate,
        idempotency,
        on_cancel: match file.on_cancel {
            CancelFile::Forward => OnCancel::Forward,
            CancelFile::Keep => OnCancel::Keep,
        },
    })
}

fn names(matches: &Spanned<OneOrMany>) -> Result<Vec<NamePattern>, PolicyError> {
    let texts = matches.get_ref().as_slice();
    if texts.is_empty() {
        return Err(wrong(matches.span(), "`match` names no tool"));
    }
    texts
        .iter()
        .map(|text| {
            let glob = globset::GlobBuilder::new(text)
                .backslash_escape(true)
                .build()
                .map_err(|error| wrong(matches.span(), &error.to_string()))?;
            Ok(NamePattern {
                text: text.clone(),
                matcher: glob.compile_matcher(),
            })
        })
        .collect()
}

fn template(text: &str, span: Range<usize>) -> Result<Template, PolicyError> {
    Template::parse(text).map_err(|message| PolicyError::At {
        at: span.start,
        message: format!("`{text}`: {message}"),
        hint: Some("write it as \"invoice:{invoiceId}\" or \"item:{items[].id}\"".to_owned()),
    })
}

fn by(file: ByFile) -> By {
    match file {
        ByFile::Caller => By::Caller,
        ByFile::Everybody => By::Everybody,
    }
}

fn duration(text: Option<&Spanned<String>>) -> Result<Option<Duration>, PolicyError> {
    text.map(|text| span_of(text.get_ref(), text.span()))
        .transpose()
}

/// `500ms`, `30s`, `5m`, `24h`, `7d`.
fn span_of(text: &str, span: Range<usize>) -> Result<Duration, PolicyError> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit.trim() {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    // A year is more than anybody waits, and far from overflow.
    const YEAR: u64 = 366 * 86_400_000;
    number
        .parse::<u64>()
        .ok()
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale))
        .filter(|millis| *millis <= YEAR)
        .map(Duration::from_millis)
        .ok_or_else(|| PolicyError::At {
            at: span.start,
            message: format!("`{text}` is not a time"),
            hint: Some("write it as \"500ms\", \"30s\", \"5m\", \"24h\" or \"7d\"".to_owned()),
        })
}

fn wrong(span: Range<usize>, message: &str) -> PolicyError {
    PolicyError::At {
        at: span.start,
        message: message.to_owned(),
        hint: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_everything() {
        let (policy, servers) = parse(
            r#"
            mode = "observe"
            backend = "memory"
            on-backend-loss = "open"
            namespace = "billing"
            meta = true
            [defaults]
            wait = "5s"
            queue = 10
            timeout = "2m"
            cancel-hold = "1s"
            [[tool]]
            match = ["pay_*", "refund"]
            server = "bank"
            lock = ["invoice:{invoiceId}", "item:{items[].id}"]
            mode = "exclusive"
            wait = "500ms"
            in-flight = { max = 2, queue = 3 }
            rate = { calls = 10, per = "1m", burst = 2, by = "everybody" }
            idempotency = { key = "{requestId}", keep = "7d" }
            on-cancel = "keep"
            [[tool]]
            match = "*"
            lock = []
            [servers.bank]
            command = "node"
            args = ["bank.js"]
            "#,
        )
        .expect("valid");
        assert!(policy.observe && policy.meta && policy.open_on_loss);
        assert_eq!(policy.find("bank", "pay_now").map(|(at, _)| at), Some(0));
        assert_eq!(policy.find("shop", "pay_now").map(|(at, _)| at), Some(1));
        assert_eq!(policy.tools[0].wait, Some(Duration::from_millis(500)));
        assert_eq!(policy.tools[1].locks.as_ref().map(Vec::len), Some(0));
        assert_eq!(servers[0].0, "bank");
    }

    #[test]
    fn what_could_never_work_is_refused() {
        for (text, message) in [
            (
                "[[tool]]\nmatch = \"a\"\nin-flight = { max = 0 }",
                "no call could ever run",
            ),
            (
                "[[tool]]\nmatch = \"a\"\nrate = { calls = 1, per = \"0s\" }",
                "no call could ever run",
            ),
            ("[[tool]]\nmatch = []", "names no tool"),
            ("[[tool]]\nmatch = \"a\"\nlock = \"x:{\"", "not closed"),
            ("[[tool]]\nmatch = \"a\"\nwait = \"soon\"", "is not a time"),
            (
                "[[tool]]\nmatch = \"a\"\nwait = \"99999999999999999999d\"",
                "is not a time",
            ),
            (
                "[[tool]]\nmatch = \"a\"\nidempotency = { key = \"x\" }",
                "the same for every call",
            ),
            (
                "[[tool]]\nmatch = \"a\"\nlok = \"x\"",
                "unknown field `lok`",
            ),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
