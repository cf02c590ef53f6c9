//! What this machine allows: for the user, before anything is tried in earnest.

use serde::Serialize;

/// What can be had here, and why the rest cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Available {
    /// To hold servers at system calls.
    pub syscalls: Result<(), String>,
    /// To run them apart from the host.
    pub namespaces: Result<(), String>,
    /// To let them write next to their code without copying it.
    pub overlay: Result<(), String>,
}

/// Tries what there is. Takes some milliseconds, and leaves nothing behind.
pub fn probe() -> Available {
    #[cfg(target_os = "linux")]
    {
        crate::linux::probe::probe()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let why = || {
            Err(format!(
                "this needs Linux, and this is {}",
                std::env::consts::OS
            ))
        };
        Available {
            syscalls: why(),
            namespaces: why(),
            overlay: why(),
        }
    }
}
