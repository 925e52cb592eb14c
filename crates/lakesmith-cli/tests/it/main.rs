//! The built binary, as users and scripts meet it.
#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod checks;
mod errors;
mod health;
#[cfg(target_os = "linux")]
mod memory;
mod plans;
mod run;
mod shell;
#[cfg(target_os = "linux")]
mod spill;
mod tables;
