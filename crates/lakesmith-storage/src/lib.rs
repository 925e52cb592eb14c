//! The outside world behind seams: locations, object stores, listing, sweeping, metering, clock.
//!
//! ```text
//! text --Location::parse--> Location --Store::open--> Store --get, put_if_absent, list--> bytes, ObjectInfo
//!                                                       SweepRule --survey--> candidates --SweepPlan, sweep--> SweepReport
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

mod children;
#[cfg(feature = "testsuite")]
pub mod conformance;
pub mod control;
mod encoding;
mod failure;
mod list;
mod local;
pub mod location;
mod metered;
pub mod open;
mod pages;
pub mod presence;
mod resume;
mod single_delete;
mod space;
pub mod spill;
pub mod store;
pub mod survey;
pub mod sweep;
mod upload;
pub mod world;

pub use children::Children;
pub use control::{Cancel, NoProgress, Progress};
pub use failure::credentials_missing;
pub use location::Location;
pub use metered::RequestCounts;
pub use open::StoreOptions;
pub use space::free_bytes;
pub use spill::SpillWriter;
pub use store::{ObjectInfo, PutOutcome, Store};
pub use survey::{ListedEntry, Survey, Surveyor, still_listed, survey};
pub use sweep::{
    CheckpointProof, DroppedTableProof, NOTES_FOLDER, Renewal, SweepPlan, SweepReport, Swept, SweptOutcome,
    UncommittedProof, sweep, sweep_with,
};
pub use upload::Upload;
pub use world::{FixedWorld, SystemWorld, World};
