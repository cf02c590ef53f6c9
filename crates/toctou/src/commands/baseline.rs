//! `toctou baseline`: known findings, so that only new ones count.

use toctou_core::Finding;
use toctou_rules::baseline::Baseline;

use crate::cli::{BaselineAction, BaselineArgs, InputArgs};
use crate::commands::scan::{Input, progress, read_baseline};
use crate::errors::Error;
use crate::{output, terminal};

pub(crate) fn run(args: &BaselineArgs) -> Result<(), Error> {
    match &args.action {
        BaselineAction::Write(args) => write(args),
        BaselineAction::Prune(args) => prune(args),
    }
}

fn write(args: &InputArgs) -> Result<(), Error> {
    let input = Input::open(args)?;
    let baseline = Baseline::of(&findings(&input, args)?);
    let path = input.baseline_path(args);
    output::to_file(&path, &baseline.render())?;
    terminal::to_stderr(&format!(
        "{} known findings written to {}\n",
        baseline.len(),
        path.display()
    ));
    Ok(())
}

fn prune(args: &InputArgs) -> Result<(), Error> {
    let input = Input::open(args)?;
    let path = input.baseline_path(args);
    if !path.is_file() {
        return Err(Error::NoBaseline { path });
    }
    let mut baseline = read_baseline(&path)?;
    // All of them, whatever the persona: an entry goes only when it is truly gone.
    let dropped = baseline.prune(
        &input
            .scan(args, None, progress(args, false, false))?
            .findings,
    );
    if dropped > 0 {
        output::to_file(&path, &baseline.render())?;
    }
    terminal::to_stderr(&format!(
        "{dropped} entries dropped from {}, {} left\n",
        path.display(),
        baseline.len()
    ));
    Ok(())
}

fn findings(input: &Input, args: &InputArgs) -> Result<Vec<Finding>, Error> {
    let persona = input.persona(args);
    let mut findings = input
        .scan(args, None, progress(args, false, false))?
        .findings;
    findings.retain(|finding| finding.persona <= persona);
    Ok(findings)
}
