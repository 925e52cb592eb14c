//! The outside world behind seams: locations, object stores, listing, sweeping, metering, clock.

pub mod control;
pub mod world;

pub use control::{Cancel, NoProgress, Progress};
pub use world::{FixedWorld, SystemWorld, World};
