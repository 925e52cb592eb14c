//! Keeps Delta Lake tables fast and small, and proves that it did no harm.
//!
//! ```no_run
//! use lakesmith::{Session, SessionOptions, op::Operation};
//!
//! # fn main() -> lakesmith::Result<()> {
//! let session = Session::new(SessionOptions::default())?;
//! let options = session.optimize_options()?;
//! let report = session.run("s3://lake/events", Operation::Optimize(options))?;
//! # let _ = report;
//! # Ok(())
//! # }
//! ```

mod catalog;
mod change;
mod demo;
mod drive;
mod format;
mod hidden;
mod metadata_tables;
mod open_table;
mod ops;
mod plan_file;
mod query;
mod rows;
mod run;
mod session;
mod sql;
mod table_ref;

pub use catalog::{Catalog, CatalogTable, Database};
pub use change::{Changed, Copied, Identity, Replaced, RowChange, RowCheck, RowRules, RowWriter, TextLength, Touched};
pub use demo::{DemoOptions, DemoReport, demo};
pub use drive::threads;
pub use format::Format;
pub use hidden::{HIDDEN_NAMES, HiddenColumn, RowFact};
pub use lakesmith_core::{Error, ErrorKind, Result, layout, op, plan, predicate, table, units};
pub use lakesmith_delta::PartitionRows;
pub use lakesmith_sql::{
    CreateFrom, Setting, Span, TableRef, create_from, create_table, is_secret_setting, readable_setting,
    render_snippet, settings_reference, unescape,
};
pub use lakesmith_storage::{
    Cancel, FixedWorld, Location, NoProgress, Progress, Store, StoreOptions, SystemWorld, World,
};
pub use open_table::{Table, TableOutline};
pub use query::{Query, QueryEngine, QueryRows, ScanReport, SkippedFiles};
pub use session::{Session, SessionOptions, StoreOpener};
pub use sql::SqlResult;
