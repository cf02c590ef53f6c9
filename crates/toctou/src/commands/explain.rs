//! `toctou explain`: a rule's page, on the terminal.

mod page;

use toctou_rules::registry;

use crate::cli::{ExplainArgs, PageFormat};
use crate::errors::Error;
use crate::{output, terminal};

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Error> {
    let Some(rule) = registry::find(&args.rule) else {
        return Err(Error::UnknownRule {
            rule: args.rule.clone(),
            closest: registry::closest(&args.rule),
        });
    };
    output::to_stdout(&match args.output {
        PageFormat::Markdown => rule.page.to_owned(),
        PageFormat::Text => page::render(rule, terminal::of_stdout()),
    })
}
