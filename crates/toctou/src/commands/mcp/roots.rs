//! Where an agent may look.
//!
//! Paths are compared after links are resolved. Config, models and baseline of
//! a project count only if they lie inside, too.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::cli::InputArgs;
use crate::commands::scan::Input;
use crate::config;
use crate::errors::Error;
use crate::pipeline::{Overlay, Scan};

pub(crate) struct Roots(Vec<PathBuf>);

impl Roots {
    pub(crate) fn new(given: &[PathBuf]) -> Result<Self, Error> {
        let roots = given
            .iter()
            .map(|path| {
                path.canonicalize()
                    .map_err(|_| Error::NoSuchPath { path: path.clone() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self(roots))
    }

    /// The canonical path, if it is inside. What is not there and what is
    /// outside is not told apart: that would tell what is outside.
    pub(crate) fn resolve(&self, asked: &str) -> Option<PathBuf> {
        let first = self.0.first()?;
        let path = first.join(asked).canonicalize().ok()?;
        self.holds(&path).then_some(path)
    }

    fn holds(&self, path: &Path) -> bool {
        self.0.iter().any(|root| path.starts_with(root))
    }

    /// A path as it is shown: from its root.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let below = self.0.iter().find_map(|root| path.strip_prefix(root).ok());
        match below.map(crate::discover::slashed) {
            Some(below) if !below.is_empty() => below,
            _ => ".".to_owned(),
        }
    }

    pub(crate) fn scan(
        &self,
        args: &mut InputArgs,
        stop: &AtomicBool,
    ) -> Result<(Input, Scan), Error> {
        // What is scanned is what was resolved: it is canonical already.
        let folder = args.paths.first().cloned().unwrap_or_default();
        args.config = config::find(&folder).filter(|path| self.holds(path));
        args.no_config = args.config.is_none();
        let input = Input::open(args)?;
        if !input.root.paths.iter().all(|path| self.holds(path)) {
            return Err(Error::NoSuchPath { path: folder });
        }
        let named = input.config.models.iter().chain(&input.config.baseline);
        for path in named {
            let real = path.canonicalize();
            if !real.is_ok_and(|real| self.holds(&real)) {
                return Err(Error::NoSuchPath { path: path.clone() });
            }
        }
        let baseline = input.baseline(args)?;
        let scan = input.scan_text(args, baseline.as_ref(), &Overlay::new(), stop)?;
        Ok((input, scan))
    }
}
