//! What this machine allows, by trying it.

use std::sync::OnceLock;

use super::filter;
use super::namespaces::{self, Refused};
use super::sys::stage;
use crate::probe::Available;
use crate::sandbox::SandboxSpec;
use crate::scratch::Scratch;

pub(crate) fn probe() -> Available {
    Available {
        syscalls: syscalls(),
        ..sandbox()
    }
}

/// Does not change while this program runs, and is asked for each launch.
pub(crate) fn syscalls() -> Result<(), String> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    FOUND.get_or_init(try_syscalls).clone()
}

fn try_syscalls() -> Result<(), String> {
    if !filter::SUPPORTED {
        return Err(format!(
            "there is no table of system calls for {}",
            std::env::consts::ARCH
        ));
    }
    stage::notification_sizes()
        .map_err(|e| format!("the kernel has no seccomp user notification (Linux 5.5): {e}"))?;
    stage::try_filter(&filter::program(false)).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => "this program is under a seccomp listener already".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "seccomp filters are forbidden here, as in some containers".to_owned()
        }
        _ => format!("cannot install a seccomp filter: {e}"),
    })
}

fn sandbox() -> Available {
    let none = |why: String| Available {
        syscalls: Ok(()),
        namespaces: Err(why.clone()),
        overlay: Err(why),
    };
    let tried = Scratch::create().and_then(|scratch| {
        let state = scratch.new_state()?;
        let package = scratch.side_dir()?;
        let side = scratch.side_dir()?;
        let spec = SandboxSpec {
            packages: vec![package],
            ..SandboxSpec::default()
        };
        Ok(namespaces::open(&spec, &state, &side))
    });
    match tried {
        Ok(Ok(got)) => Available {
            syscalls: Ok(()),
            namespaces: Ok(()),
            overlay: match got.notes.iter().find(|n| n.contains("overlay")) {
                Some(note) => Err(note.clone()),
                None => Ok(()),
            },
        },
        Ok(Err(Refused::Why(why))) => none(why),
        Ok(Err(Refused::Error(e))) | Err(e) => none(e.to_string()),
    }
}
