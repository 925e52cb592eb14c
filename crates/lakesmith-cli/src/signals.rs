//! Ctrl-C and SIGTERM: the first asks the run to stop cleanly, the second ends the process.

use std::sync::Arc;

use lakesmith::{Cancel, Error, ErrorKind, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::progress::Screen;

/// Watches from a thread of its own. Ending at once is safe: what is not committed are files that nothing refers to.
///
/// # Errors
/// Internal when the system refuses the handler or the thread.
pub(crate) fn watch(cancel: Cancel, screen: Arc<Screen>) -> Result<()> {
    let failed = |e: std::io::Error| Error::internal("cannot watch for signals").caused_by(e);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let work = move || {
        for _ in signals.forever() {
            if cancel.is_cancelled() {
                screen.clear();
                std::process::exit(i32::from(ErrorKind::Cancelled.exit_code()));
            }
            cancel.cancel();
            screen.notice("stopping after the step at hand; once more to stop at once");
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(work).map(drop).map_err(failed)
}

/// Watches while statements are typed one after the other: Ctrl-C stops the running one only, SIGTERM ends the process.
///
/// # Errors
/// As [`watch`].
pub(crate) fn watch_statements(cancel: Cancel, screen: Arc<Screen>) -> Result<()> {
    let failed = |e: std::io::Error| Error::internal("cannot watch for signals").caused_by(e);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let work = move || {
        for signal in signals.forever() {
            if signal == SIGTERM {
                screen.clear();
                std::process::exit(i32::from(ErrorKind::Cancelled.exit_code()));
            }
            cancel.cancel();
            screen.notice("stopping the statement after the step at hand");
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(work).map(drop).map_err(failed)
}
