//! What a person sees on standard error while work goes on.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use lakesmith::Progress;
use lakesmith::units::format_bytes;

use crate::args::Shared;

/// Standard error: a progress bar at most, with lines above it.
pub(crate) struct Screen {
    notices: bool,
    bars: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Screen {
    /// A screen that respects `--quiet` and `--json`, and draws bars only on a terminal.
    pub(crate) fn new(shared: &Shared) -> Self {
        let notices = !shared.quiet && !shared.json;
        Self { notices, bars: notices && std::io::stderr().is_terminal(), bar: Mutex::new(None) }
    }

    /// A line that is of interest but no result; dropped with `--quiet` and `--json`.
    pub(crate) fn notice(&self, text: &str) {
        if self.notices {
            self.write(format!("{text}\n").as_bytes());
        }
    }

    /// Bytes of whole lines, above the bar if there is one.
    pub(crate) fn write(&self, lines: &[u8]) {
        // A closed standard error is no reason to stop the work.
        let write = || drop(std::io::stderr().lock().write_all(lines));
        match self.bar().as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Screen {
    fn begin(&self, phase: &str, total_bytes: u64) {
        self.clear();
        if phase == "rewriting" {
            self.notice(&format!("about to rewrite {}", format_bytes(total_bytes)));
        }
        if self.bars {
            let template =
                "{bar:32} {percent:>3} %  {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(total_bytes).with_style(style);
            bar.enable_steady_tick(std::time::Duration::from_millis(250));
            *self.bar() = Some(bar);
        }
    }

    fn advance(&self, bytes: u64, _rows: u64) {
        if let Some(bar) = self.bar().as_ref() {
            bar.inc(bytes);
        }
    }

    fn end(&self) {
        self.clear();
    }
}
