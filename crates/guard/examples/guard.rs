//! A guard in a few lines: `guard [--policy FILE] [--listen ADDRESS] … -- COMMAND ARG…`
//!
//! The same guard as `toctou guard`, without the rest of toctou. The tests use it.

use std::process::ExitCode;
use std::time::Duration;

use toctou_guard::http::{self, Access, Listen, Tokens};
use toctou_guard::policy::Policy;
use toctou_guard::run::{self, Options};
use toctou_guard::servers::{Upstream, parse_servers};
use toctou_guard::upstream::Shutdown;
use toctou_guard::wire::Limits;
use toctou_guard::{log, policy};

// What is measured is the program's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match guard() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut cause = Some(error.as_ref() as &dyn std::error::Error);
            while let Some(error) = cause {
                eprintln!("{error}");
                cause = error.source();
            }
            ExitCode::from(2)
        }
    }
}

fn guard() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options {
        policy: Policy::default(),
        servers: Vec::new(),
        limits: Limits::default(),
        record: None,
        grace: Duration::from_secs(30),
        metrics: None,
        shutdown: Shutdown::default(),
    };
    let mut listen = None;
    let mut tokens = None;
    let (mut certificate, mut key) = (None, None);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--" {
            break;
        }
        let value = args.next().ok_or("an option without a value")?;
        match name.as_str() {
            "--policy" => options.policy = policy::parse(&std::fs::read_to_string(value)?)?.0,
            "--record" => options.record = Some(value.into()),
            "--grace" => options.grace = Duration::from_secs(value.parse()?),
            "--max-message" => options.limits.bytes = value.parse()?,
            "--servers" => options.servers = parse_servers(&std::fs::read_to_string(value)?)?,
            "--listen" => listen = Some(value.parse()?),
            "--token-file" => tokens = Some(Tokens::parse(&std::fs::read_to_string(value)?)?),
            "--tls-certificate" => certificate = Some(value.into()),
            "--tls-key" => key = Some(value.into()),
            "--metrics" => options.metrics = Some(value.parse()?),
            "--log" => log::set_level(log::Level::Debug),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    if let Some(command) = args.next() {
        options
            .servers
            .push(Upstream::command(&command, &args.collect::<Vec<_>>()));
    }
    if let Some(address) = listen {
        let access = Access::new(address, tokens, &[], false)?;
        let tls = match (&certificate, &key) {
            (Some(certificate), Some(key)) => Some(http::tls(certificate, key)?),
            _ => None,
        };
        run::listen(
            &options,
            Listen {
                address,
                access,
                tls,
            },
        )?;
    } else {
        let server = options.servers.pop().ok_or("no command")?;
        run::stdio(&options, &server)?;
    }
    Ok(())
}
