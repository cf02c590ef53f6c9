//! `toctou guard`: from what was typed to a running guard.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use toctou_core::finding::{EntryKind, Finding};
use toctou_guard::http::{self, Access, AccessError, Listen, Tokens};
use toctou_guard::policy::{self, Policy, PolicyError};
use toctou_guard::run::{self, Options};
use toctou_guard::servers::{self, Upstream};
use toctou_guard::upstream::Shutdown;
use toctou_guard::wire::Limits;
use toctou_guard::{check, log};

use crate::cli::{
    GuardAction, GuardArgs, GuardCheckArgs, GuardInitArgs, GuardRunArgs, LogLevel, TargetArgs,
};
use crate::config::Reader;
use crate::errors::{Error, FINDINGS};
use crate::output;

/// Every key, commented out with `#: `, so that a test can turn them all on.
pub(crate) const TEMPLATE: &str = include_str!("guard.toml");

pub(crate) fn run(args: &GuardArgs) -> Result<u8, Error> {
    match &args.action {
        Some(GuardAction::Init(args)) => init(args).map(|()| 0),
        Some(GuardAction::Check(args)) => check(args),
        None => guard(&args.run).map(|()| 0),
    }
}

fn guard(args: &GuardRunArgs) -> Result<(), Error> {
    log::set_level(match args.log {
        LogLevel::Error => log::Level::Error,
        LogLevel::Warn => log::Level::Warn,
        LogLevel::Info => log::Level::Info,
        LogLevel::Debug => log::Level::Debug,
    });
    let (mut policy, servers) = target(&args.target)?;
    policy.observe |= args.observe;
    policy.meta |= args.meta;
    if let Some(backend) = &args.backend {
        policy.backend = Some(backend.clone());
    }
    let mut options = Options {
        policy,
        servers,
        limits: Limits {
            bytes: (args.max_message as usize) << 20,
            ..Limits::default()
        },
        record: args.record.clone(),
        grace: Duration::from_secs(args.grace.into()),
        metrics: args.metrics,
        shutdown: Shutdown::default(),
    };
    if let Some(address) = args.listen {
        if let Some(name) = &args.target.server {
            options.servers.retain(|server| *server.name == **name);
        }
        if options.servers.is_empty() {
            return Err(Error::WhichServer {
                wanted: args.target.server.clone(),
                count: 0,
            });
        }
        return run::listen(&options, listen(args, address)?).map_err(Error::Guard);
    }
    let upstream = one_server(&mut options.servers, &args.target)?;
    run::stdio(&options, &upstream).map_err(Error::Guard)
}

/// For whom to serve HTTP.
fn listen(args: &GuardRunArgs, address: SocketAddr) -> Result<Listen, Error> {
    let refused = |error: AccessError| Error::Access {
        message: error.to_string(),
    };
    let tokens = match &args.token_file {
        None => None,
        Some(path) => Some(Tokens::parse(&read(path)?).map_err(refused)?),
    };
    let tls = match args.tls.as_deref() {
        Some([certificate, key]) => {
            Some(http::tls(certificate, key).map_err(|message| Error::Access { message })?)
        }
        _ => None,
    };
    Ok(Listen {
        address,
        access: Access::new(address, tokens, &args.allow_origin, args.allow_anonymous)
            .map_err(refused)?,
        tls,
    })
}

/// Standard input and output are one connection: it leads to one server.
fn one_server(servers: &mut Vec<Upstream>, args: &TargetArgs) -> Result<Upstream, Error> {
    if let Some(name) = &args.server {
        servers.retain(|server| *server.name == **name);
    }
    match servers.len() {
        1 => Ok(servers.remove(0)),
        count => Err(Error::WhichServer {
            wanted: args.server.clone(),
            count,
        }),
    }
}

/// The policy and the servers that the command line names.
fn target(args: &TargetArgs) -> Result<(Policy, Vec<Upstream>), Error> {
    let (policy, named) = match &args.policy {
        None => (Policy::default(), Vec::new()),
        Some(path) => read_policy(path)?,
    };
    let wrong = |error: servers::ServersError, path: &Path| Error::Servers {
        path: path.to_owned(),
        message: error.to_string(),
    };
    if let Some((command, rest)) = args.command.split_first() {
        let mut upstream = Upstream::command(command, rest);
        if let Some(name) = &args.server {
            upstream.name = name.as_str().into();
        }
        return Ok((policy, vec![upstream]));
    }
    if let Some(url) = &args.url {
        let file = policy::file::ServerFile {
            url: Some(url.clone()),
            ..Default::default()
        };
        let name = args.server.clone().unwrap_or_else(|| "server".to_owned());
        let upstream =
            servers::upstream(name, file).map_err(|error| wrong(error, Path::new("--url")))?;
        return Ok((policy, upstream.into_iter().collect()));
    }
    let mut all = Vec::new();
    if let Some(path) = &args.servers {
        all = servers::parse_servers(&read(path)?).map_err(|error| wrong(error, path))?;
    }
    for (name, file) in named {
        let path = args.policy.as_deref().unwrap_or(Path::new(""));
        all.extend(servers::upstream(name, file).map_err(|error| wrong(error, path))?);
    }
    Ok((policy, all))
}

type Named = Vec<(String, policy::file::ServerFile)>;

fn read_policy(path: &Path) -> Result<(Policy, Named), Error> {
    let text = read(path)?;
    let reader = Reader { path, text: &text };
    policy::parse(&text).map_err(|error| match error {
        PolicyError::Syntax(error) => reader.syntax(&error),
        PolicyError::At { at, message, hint } => reader.error(at, message, hint),
    })
}

fn read(path: &Path) -> Result<String, Error> {
    let failed = |error| Error::Read {
        path: path.to_owned(),
        error,
    };
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(failed)
}

fn init(args: &GuardInitArgs) -> Result<(), Error> {
    let text = match &args.from {
        None => TEMPLATE.to_owned(),
        Some(path) => policy::from_scan(&read(path)?).map_err(|error| Error::NotAScan {
            path: path.clone(),
            message: error.to_string(),
        })?,
    };
    output::to_stdout(&text)
}

/// The entry of a policy that closes a finding; none where no tool leads to it.
pub(crate) fn entry(finding: &Finding) -> Option<String> {
    let tools: Vec<&str> = finding
        .entry_points
        .iter()
        .filter(|entry| entry.kind == EntryKind::Tool)
        .map(|entry| entry.name.as_str())
        .collect();
    let kind = serde_json::to_value(finding.resource.kind).ok()?;
    if tools.is_empty() {
        return None;
    }
    Some(policy::entry_for(
        &tools,
        kind.as_str()?,
        &finding.resource.key,
    ))
}

fn check(args: &GuardCheckArgs) -> Result<u8, Error> {
    let (policy, mut servers) = target(&args.target)?;
    let upstream = one_server(&mut servers, &args.target)?;
    let report = check::check(&policy, &upstream).map_err(Error::Guard)?;
    output::to_stdout(&report.text)?;
    Ok(if report.faults > 0 { FINDINGS } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_valid() {
        assert!(policy::parse(TEMPLATE).is_ok());
        // And so is every line of it that is commented out.
        let on: String = TEMPLATE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line).to_owned() + "\n")
            .collect();
        let (policy, servers) = policy::parse(&on).expect("valid");
        assert_eq!((policy.tools.len(), servers.len()), (1, 1));
    }
}
