//! Queries through the public session: rows as Spark gives them, from tables that Spark wrote.

#![expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop")]

mod asking;
mod broken;
mod changing;
mod columns;
mod crafted;
mod decimals;
mod golden;
mod guards;
mod iceberg;
mod meaning;
mod metadata;
mod operands;
mod pruning;
mod reading;
mod scripts;
mod views;
mod windows;
