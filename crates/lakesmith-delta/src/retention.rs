//! How long files that left a table, and its log, are kept.

use lakesmith_core::{Error, ErrorKind, Result};

use crate::log_state::DeltaTable;
use crate::property_rules::interval_ms;

const DAY_MS: i64 = 86_400_000;

/// A property that is an interval.
pub(crate) struct RetentionProperty {
    /// Its name.
    pub key: &'static str,
    default_ms: i64,
    /// Kind of the error for a value that is no interval.
    error: ErrorKind,
}

pub(crate) const FILE_RETENTION: RetentionProperty =
    RetentionProperty { key: "delta.deletedFileRetentionDuration", default_ms: 7 * DAY_MS, error: ErrorKind::Corrupt };
pub(crate) const LOG_RETENTION: RetentionProperty =
    RetentionProperty { key: "delta.logRetentionDuration", default_ms: 30 * DAY_MS, error: ErrorKind::Usage };

impl RetentionProperty {
    /// What the table says, milliseconds.
    ///
    /// # Errors
    /// One of the property's kind if that is no interval: a guess could delete what is still wanted.
    pub(crate) fn of(&self, table: &DeltaTable) -> Result<i64> {
        let Some(text) = table.state.property(self.key) else { return Ok(self.default_ms) };
        interval_ms(text).ok_or_else(|| {
            let key = self.key;
            let message = format!("{key} is '{text}', which is no interval; set it to one such as 'interval 30 days'");
            Error::new(self.error, message)
                .with("path", &table.state.location)
                .with("property", key)
                .with("value", text)
        })
    }

    /// What this value says, or the default where it says nothing that can be understood.
    pub(crate) fn value_or_default(&self, text: Option<&str>) -> i64 {
        text.and_then(interval_ms).unwrap_or(self.default_ms)
    }
}

/// How long files that left the table are kept, milliseconds: `delta.deletedFileRetentionDuration`.
///
/// # Errors
/// `Corrupt` if the table holds something that is no interval.
pub fn deleted_file_retention_ms(table: &DeltaTable) -> Result<i64> {
    FILE_RETENTION.of(table)
}
