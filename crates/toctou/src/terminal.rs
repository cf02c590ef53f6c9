//! What the terminal can show, decided once from flags and environment.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::cli::ColorChoice;

/// Width when there is no terminal to ask: fixed, so that logs do not depend on who runs it.
const DEFAULT_WIDTH: usize = 100;

static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Said once, by `main`'s command line, before anything is printed.
pub(crate) fn choose_color(choice: ColorChoice) {
    CHOICE.store(choice as u8, Ordering::Relaxed);
}

fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// `CLICOLOR_FORCE=0` and `FORCE_COLOR=0` mean no.
fn forced(name: &str) -> bool {
    std::env::var_os(name)
        .is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

fn color_of(is_terminal: bool) -> bool {
    match CHOICE.load(Ordering::Relaxed) {
        c if c == ColorChoice::Always as u8 => true,
        c if c == ColorChoice::Never as u8 => false,
        _ if set("NO_COLOR") => false,
        _ if forced("FORCE_COLOR") || forced("CLICOLOR_FORCE") => true,
        _ => is_terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
    }
}

pub(crate) fn color_of_stdout() -> bool {
    color_of(std::io::stdout().is_terminal())
}

pub(crate) fn color_of_stderr() -> bool {
    color_of(std::io::stderr().is_terminal())
}

/// Box drawing needs a UTF-8 locale. Windows terminals and macOS have one.
fn unicode() -> bool {
    if cfg!(any(windows, target_os = "macos")) {
        return true;
    }
    // The first that is set decides, as setlocale(3) has it.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

fn width() -> usize {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|value| value.parse().ok());
    let asked = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    columns
        .or_else(asked)
        .unwrap_or(DEFAULT_WIDTH)
        .clamp(40, 400)
}

/// For a report on standard output.
pub(crate) fn of_stdout() -> toctou_report::Terminal {
    toctou_report::Terminal {
        width: width(),
        color: color_of_stdout(),
        unicode: unicode(),
    }
}

/// For a report in a file: the same on every machine.
pub(crate) fn of_file() -> toctou_report::Terminal {
    toctou_report::Terminal::default()
}

pub(crate) fn is_stderr_terminal() -> bool {
    std::io::stderr().is_terminal()
}

pub(crate) fn is_stdin_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Notes and progress. Failing to say something is not a failure.
pub(crate) fn to_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
