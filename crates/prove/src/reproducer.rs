//! A folder with what it takes to see a proof again, with toctou and without.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::proof::Proof;
use crate::report::text;
use crate::scenario::Schedule;
use crate::target::Target;

const DRIVER: &str = include_str!("reproducer/driver.py");

/// Writes one folder for each proof below `folder`, or into it if there is only one.
pub fn write(folder: &Path, proofs: &[Proof]) -> io::Result<()> {
    for proof in proofs {
        let place = if proofs.len() == 1 {
            folder.to_owned()
        } else {
            folder.join(name(&proof.id))
        };
        std::fs::create_dir_all(&place)?;
        let replay = serde_json::to_string_pretty(&proof.recipe)? + "\n";
        std::fs::write(place.join("replay.json"), replay)?;
        std::fs::write(place.join("README.md"), readme(proof))?;
        // Without toctou, only a server that can be started afresh.
        if matches!(proof.recipe.target, Target::Url(_)) || proof.recipe.state.is_some() {
            continue;
        }
        std::fs::write(place.join("driver.py"), DRIVER)?;
        std::fs::write(place.join("run.sh"), script())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(place.join("run.sh"), std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Tools are named by strangers.
fn name(id: &str) -> String {
    let plain: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    plain
}

fn script() -> String {
    "#!/bin/sh\n# Fires the calls at the server until they leave what no serial order leaves. Needs Python 3.\n\
     cd \"$(dirname \"$0\")\" && exec python3 driver.py replay.json \"$@\"\n"
        .to_owned()
}

fn readme(proof: &Proof) -> String {
    let mut out = format!(
        "# {}\n\n",
        toctou_report::clean::markdown(&proof.recipe.headline)
    );
    let plain = toctou_report::Terminal::default();
    out += &toctou_report::clean::markdown_block(&text::render_proof(proof, plain), "text");
    out += "\n## See it again\n\n";
    if let Target::Url(url) = &proof.recipe.target {
        let _ = writeln!(
            out,
            "```console\n$ toctou prove --replay replay.json --allow-changes\n```\n\nThis calls {} again, and changes its state. \
             Headers are not kept: give them with `--header`.",
            toctou_report::clean::markdown(url)
        );
        return out;
    }
    if let Some(needs) = &proof.recipe.state {
        let _ = writeln!(
            out,
            "```console\n$ toctou prove --replay replay.json --state URL\n```\n\nThe address is that of a {}, in which a scratch place is made \
             for each run.",
            needs.kind.as_str()
        );
        return out;
    }
    let _ = writeln!(
        out,
        "```console\n$ toctou prove --replay replay.json\n```\n"
    );
    let _ = writeln!(
        out,
        "Without toctou, `./run.sh` starts the server on a folder of its own, makes the same calls and compares what is \
         left with what the calls leave one after the other."
    );
    if !matches!(proof.recipe.schedule, Schedule::Burst) {
        let _ = writeln!(
            out,
            "It cannot hold a call at an exact place, so it fires them again and again; it may take many rounds, or not \
             happen at all in the time it has."
        );
    }
    out
}
