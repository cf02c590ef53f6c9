//! From what was typed to a folder: source that is elsewhere is fetched first.

use std::path::Path;
use std::time::Duration;

use toctou_core::finding::{Note, Skipped, Source as Origin};
use toctou_source::{Fetched, Limits, Options, Reach, Spec};

use crate::cli::{ReachChoice, ScanArgs};
use crate::errors::Error;
use crate::pipeline::{Progress, Scan};
use crate::{config, languages};

/// Source that was fetched. Dropping it removes it.
pub(crate) struct Source {
    pub(crate) source: Origin,
    fetched: Fetched,
}

/// Fetches the source that is named, if one is.
pub(crate) fn fetch(args: &ScanArgs, progress: Progress) -> Result<Option<Source>, Error> {
    let paths = &args.input.paths;
    let mut found = None;
    for path in paths {
        let Some(text) = path.to_str() else {
            continue;
        };
        let spec = Spec::of(text).map_err(|error| Error::Source {
            text: text.to_owned(),
            error,
        })?;
        if let Some(spec) = spec {
            found = Some((text, spec));
        }
    }
    let Some((text, spec)) = found else {
        return Ok(None);
    };
    if paths.len() > 1 {
        return Err(Error::SourceAmongPaths {
            text: text.to_owned(),
        });
    }
    toctou_source::clean_up_on_signals();
    let bar = bar(progress);
    let say = |text: &str| {
        bar.set_message(text.to_owned());
        progress.line(text);
    };
    let options = Options {
        limits: Limits {
            bytes: args.source.max_fetch.saturating_mul(1 << 20),
            time: Duration::from_secs(args.source.fetch_timeout),
            ..Limits::default()
        },
        reach: match args.source.reach {
            ReachChoice::User => Reach::User,
            ReachChoice::Public => Reach::Public,
            ReachChoice::Intranet => Reach::Intranet,
        },
        hosts: &args.source.only_host,
        plain_http: &args.source.allow_http,
        progress: &say,
    };
    let fetched = toctou_source::fetch(&spec, &options).map_err(|error| Error::Source {
        text: text.to_owned(),
        error,
    });
    bar.finish_and_clear();
    let fetched = fetched?;
    let name = match (&args.source.source_name, &spec) {
        (Some(name), _) => name.clone(),
        (None, Spec::Git(spec)) => spec.to_string(),
        (None, _) => fetched.origin.name.clone(),
    };
    Ok(Some(Source {
        source: Origin {
            name,
            revision: fetched.origin.revision.clone(),
        },
        fetched,
    }))
}

impl Source {
    pub(crate) fn root(&self) -> &Path {
        &self.fetched.root
    }

    /// What was there and was not fetched, so that the report says so.
    pub(crate) fn add_to(&self, scan: &mut Scan) {
        for left_out in &self.fetched.left_out {
            let name = left_out.path.rsplit('/').next().unwrap_or_default();
            if languages::of(name).is_some() || left_out.reason == "submodule" {
                scan.skipped_files += 1;
                scan.skipped.push(Skipped {
                    file: left_out.path.clone(),
                    reason: left_out.reason.to_owned(),
                    fault: false,
                });
            }
        }
        scan.skipped.sort();
        if self.root().join(config::NAME).is_file() {
            scan.notes.push(Note {
                file: None,
                line: None,
                text: format!(
                    "the source has a {}, which is not used: what others set decides nothing here",
                    config::NAME
                ),
            });
            scan.notes.sort();
        }
    }
}

fn bar(progress: Progress) -> indicatif::ProgressBar {
    if progress != Progress::Bar {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
