//! The storages through the public API.

#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod local;
mod remote;
mod single_delete;
mod sweeping;
