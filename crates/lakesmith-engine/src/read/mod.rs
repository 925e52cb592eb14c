//! Tables as DataFusion scans them.
//!
//! ```text
//! provider: columns ─> pruning (metadata only) ─> scan (files) ─> source ─> opening (deleted rows) ─> Parquet reader
//!                                                                              adapter, file_reader ┘
//! ```

mod adapter;
mod columns;
mod file_facts;
mod file_reader;
mod metadata_rows;
mod opening;
mod provider;
mod pruning;
mod scalars;
mod scan;
mod source;
mod statistics;
mod summary;
mod whole;

pub(crate) use columns::{VARIANT, arrow_field};
pub(crate) use metadata_rows::metadata_rows;
pub(crate) use provider::{LakeTable, Version};
pub(crate) use scan::storage_url;
pub(crate) use summary::{ScanSummary, Summaries};
