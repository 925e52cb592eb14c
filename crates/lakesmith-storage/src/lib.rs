//! The outside world behind seams: locations, object stores, listing, sweeping, metering, clock.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

pub mod control;
mod encoding;
mod failure;
pub mod location;
mod metered;
pub mod open;
pub mod store;
mod upload;
pub mod world;

pub use control::{Cancel, NoProgress, Progress};
pub use location::Location;
pub use metered::RequestCounts;
pub use open::StoreOptions;
pub use store::{ObjectInfo, PutOutcome, Store};
pub use upload::Upload;
pub use world::{FixedWorld, SystemWorld, World};
