//! How old a file must be before it may go: the retention and its guard.
//!
//! # Source
//! Delta Spark `VacuumCommand.checkRetentionPeriodSafety`; `delta.deletedFileRetentionDuration`.

use crate::{Error, ErrorKind, Result};

/// Files that the log doesn't know are kept at least this long: a running write has not committed them yet.
pub const UNKNOWN_FILES_MIN_AGE_MS: i64 = 24 * HOUR_MS;
const HOUR_MS: i64 = 3_600_000;

/// What decides over the retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionRequest {
    /// `RETAIN`, milliseconds; `None`: the table's own.
    pub specified_ms: Option<i64>,
    /// The table's retention of deleted files, milliseconds.
    pub table_ms: i64,
    /// Refuse a shorter one than the table's.
    pub check: bool,
    /// Nobody writes to the table, so no file can be about to be committed.
    pub no_writers: bool,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// A retention that was checked, and what it means now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    now_ms: i64,
    cutoff_ms: i64,
    unknown_cutoff_ms: i64,
}

impl Retention {
    /// Checks the retention.
    ///
    /// # Errors
    /// `Usage` with `DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE`; `Retention` with
    /// `DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT` if it is below the table's and the check is on.
    pub fn of(request: RetentionRequest) -> Result<Self> {
        let RetentionRequest { specified_ms, table_ms, check, no_writers, now_ms } = request;
        if specified_ms.is_some_and(|ms| ms < 0) {
            return Err(Error::usage("Retention period for Vacuum can't be less than 0 hours.")
                .class("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"));
        }
        let retention_ms = specified_ms.unwrap_or(table_ms);
        if check && retention_ms < table_ms {
            let hours = table_ms.saturating_add(HOUR_MS - 1) / HOUR_MS;
            return Err(Error::new(
                ErrorKind::Retention,
                format!(
                    "The specified VACUUM retention period is too low and may corrupt this Delta table if any writes \
                     are in progress. If no operations (insert, upsert, delete, optimize) are running, you can disable \
                     this safety check with --no-retention-check or by setting \
                     spark.databricks.delta.retentionDurationCheck.enabled = false. Otherwise, use a retention period \
                     of at least {hours} hours."
                ),
            )
            .class("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT")
            .with("retention_hours", format!("{}", retention_ms as f64 / HOUR_MS as f64))
            .with("required_hours", hours));
        }
        let cutoff_ms = now_ms.saturating_sub(retention_ms);
        let unknown_cutoff_ms =
            if no_writers { cutoff_ms } else { cutoff_ms.min(now_ms.saturating_sub(UNKNOWN_FILES_MIN_AGE_MS)) };
        Ok(Self { now_ms, cutoff_ms, unknown_cutoff_ms })
    }

    /// The time at which the retention was looked at, milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Files that left the table at or after this time are kept, milliseconds since the epoch.
    pub fn cutoff_ms(&self) -> i64 {
        self.cutoff_ms
    }

    /// Files that the log does not know are kept if they were written at or after this time.
    pub fn unknown_cutoff_ms(&self) -> i64 {
        self.unknown_cutoff_ms
    }
}
