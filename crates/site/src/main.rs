//! `cargo run -p toctou-site -- FOLDER`: the documentation as a static site.
//!
//! The pages of the repository are the site: Markdown becomes HTML, links
//! between pages lead to pages, links to source lead to the repository, and a
//! link that leads nowhere fails the run. No list of pages is kept by hand, so
//! a new page is on the site by being there.

mod build;
mod markdown;
mod pages;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: toctou-site FOLDER [ROOT]\n\n\
    Writes the site to FOLDER, from the repository at ROOT (default: the current folder).";

fn main() -> ExitCode {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (folder, root) = match args.as_slice() {
        [folder] => (folder.clone(), PathBuf::from(".")),
        [folder, root] => (folder.clone(), root.clone()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match build::build(&root, &folder) {
        Ok(count) => {
            println!("{count} pages in {}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if matches!(error, build::SiteError::Broken(_)) {
                1
            } else {
                2
            })
        }
    }
}
