//! Whether a process and all that it started sleep, as `/proc` tells.

use std::fs;

/// Processes that are looked at. A server with more is not idle.
const MOST_PROCESSES: usize = 1000;

/// `None` if it cannot be seen. The process itself, a monitor, does not count.
pub(crate) fn all_sleep(top: u32) -> Option<bool> {
    let mut stack = children(top)?;
    if stack.is_empty() {
        return None;
    }
    let mut seen = 0;
    while let Some(pid) = stack.pop() {
        seen += 1;
        if seen > MOST_PROCESSES {
            return Some(false);
        }
        // One that has just ended does not run.
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let Ok(stat) = fs::read_to_string(thread.path().join("stat")) else {
                continue;
            };
            // The name before it may have any characters in it, also parentheses.
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next());
            if matches!(state, Some('R' | 'D')) {
                return Some(false);
            }
        }
        stack.extend(children(pid).unwrap_or_default());
    }
    Some(true)
}

fn children(pid: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        all.extend(
            list.split_whitespace()
                .filter_map(|p| p.parse::<u32>().ok()),
        );
    }
    Some(all)
}
