//! The `delta.*` properties that exist and the values they take.
//!
//! # Source
//! Delta Spark `DeltaConfigs`.

use lakesmith_core::{Error, Result};

/// What a property's value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// `true` or `false`.
    Boolean,
    /// A whole number of at least the first value; the text says what it needs to be.
    Integer(i64, &'static str),
    /// A calendar interval without months.
    Interval,
    /// One of these values, any case.
    OneOf(&'static [&'static str], &'static str),
    /// Anything.
    Text,
    /// Set by engines themselves; can't be changed by hand.
    Engine,
}

const POSITIVE: &str = "needs to be a positive integer.";
const INTERVAL: &str = "needs to be provided as a calendar interval such as '2 weeks'. Months and years are not \
                        accepted. You may specify '365 days' for a year instead.";

/// The codecs of `delta.parquet.compression.codec`. Delta Spark leaves the property alone, so a table may hold others.
///
/// # Source
/// Delta Kernel `TableConfig.PARQUET_COMPRESSION_CODEC`.
const CODECS: &[&str] = &["uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd"];
const CODEC: &str = "needs to be one of: 'uncompressed', 'none', 'snappy', 'gzip', 'lz4', 'lz4_raw', 'zstd'.";

/// Canonical key without `delta.`, and its rule.
const KNOWN: [(&str, Rule); 51] = [
    ("appendOnly", Rule::Boolean),
    ("autoOptimize", Rule::Boolean),
    ("autoOptimize.autoCompact", Rule::OneOf(&["true", "false"], "\"needs to be one of: true,false")),
    ("autoOptimize.optimizeWrite", Rule::Boolean),
    ("castIcebergTimeType", Rule::Boolean),
    ("checkpoint.writeStatsAsJson", Rule::Boolean),
    ("checkpoint.writeStatsAsStruct", Rule::Boolean),
    ("checkpointInterval", Rule::Integer(1, POSITIVE)),
    ("checkpointPolicy", Rule::OneOf(&["classic", "v2"], "can only be one of the following: classic, v2.")),
    ("checkpointRetentionDuration", Rule::Interval),
    ("columnMapping.maxColumnId", Rule::Engine),
    ("columnMapping.mode", Rule::OneOf(&["none", "name", "id"], "can only be one of: none, id, name.")),
    ("compatibility.symlinkFormatManifest.enabled", Rule::Boolean),
    ("coordinatedCommits.commitCoordinator-preview", Rule::Engine),
    ("coordinatedCommits.commitCoordinatorConf-preview", Rule::Engine),
    ("coordinatedCommits.tableConf-preview", Rule::Engine),
    ("dataSkippingNumIndexedCols", Rule::Integer(-1, "needs to be larger than or equal to -1.")),
    ("dataSkippingStatsColumns", Rule::Text),
    ("dataSkippingStringPrefixLength", Rule::Integer(0, "needs to be larger than or equal to 0.")),
    ("deletedFileRetentionDuration", Rule::Interval),
    ("dropFeatureTruncateHistory.retentionDuration", Rule::Interval),
    ("enableChangeDataFeed", Rule::Boolean),
    ("enableDeletionVectors", Rule::Boolean),
    ("enableExpiredLogCleanup", Rule::Boolean),
    ("enableFullRetentionRollback", Rule::Boolean),
    ("enableIcebergCompatV1", Rule::Boolean),
    ("enableIcebergCompatV2", Rule::Boolean),
    ("enableIcebergCompatV3", Rule::Boolean),
    ("enableInCommitTimestamps", Rule::Boolean),
    ("enableRowTracking", Rule::Boolean),
    ("enableTypeWidening", Rule::Boolean),
    ("enableVariantShredding", Rule::Boolean),
    ("inCommitTimestampEnablementTimestamp", Rule::Engine),
    ("inCommitTimestampEnablementVersion", Rule::Engine),
    ("isolationLevel", Rule::OneOf(&["Serializable"], "must be Serializable")),
    ("logRetentionDuration", Rule::Interval),
    ("minReaderVersion", Rule::Integer(1, POSITIVE)),
    ("minWriterVersion", Rule::Integer(1, POSITIVE)),
    ("parquet.compression.codec", Rule::OneOf(CODECS, CODEC)),
    ("parquet.format.version", Rule::Text),
    ("randomPrefixLength", Rule::Integer(1, "needs to be greater than 0.")),
    ("randomizeFilePrefixes", Rule::Boolean),
    ("requireCheckpointProtectionBeforeVersion", Rule::Engine),
    ("rowTracking.materializedRowCommitVersionColumnName", Rule::Engine),
    ("rowTracking.materializedRowIdColumnName", Rule::Engine),
    ("rowTrackingSuspended", Rule::Engine),
    ("sampleRetentionDuration", Rule::Interval),
    ("setTransactionRetentionDuration", Rule::Interval),
    ("tuneFileSizesForRewrites", Rule::Boolean),
    ("universalFormat.enabledFormats", Rule::Text),
    ("writePartitionColumnsToParquet", Rule::Boolean),
];

/// A key's canonical spelling and rule; `None` if it is not known. Keys compare without regard to case.
pub(crate) fn known(key: &str) -> Option<(String, Rule)> {
    let name = strip_delta(key)?;
    KNOWN
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(known, rule)| (format!("delta.{known}"), *rule))
}

/// What follows `delta.`, in any case.
pub(crate) fn strip_delta(key: &str) -> Option<&str> {
    let (prefix, name) = key.split_at_checked("delta.".len())?;
    prefix.eq_ignore_ascii_case("delta.").then_some(name)
}

/// # Errors
/// [`lakesmith_core::ErrorKind::Usage`] if the value does not follow the rule.
pub(crate) fn check(key: &str, value: &str, rule: Rule) -> Result<()> {
    let needs = |what: &str| Error::usage(format!("{key} {what}")).with("property", key).with("value", value);
    match rule {
        Rule::Boolean if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") => Ok(()),
        Rule::Boolean => Err(needs("needs to be true or false.")),
        // Spark reads these as 32-bit numbers, without trimming, and cannot open a table where that fails.
        Rule::Integer(least, what) => match value.parse::<i32>() {
            Ok(number) if i64::from(number) >= least => Ok(()),
            _ => Err(needs(what)),
        },
        Rule::Interval => interval_ms(value).map(|_| ()).ok_or_else(|| needs(INTERVAL)),
        Rule::OneOf(values, _) if values.iter().any(|v| v.eq_ignore_ascii_case(value)) => Ok(()),
        Rule::OneOf(_, what) => Err(needs(what)),
        Rule::Text | Rule::Engine => Ok(()),
    }
}

/// Milliseconds of an interval such as `interval 30 days` or `1 week 2 hours`; `None` for other text, months and years.
///
/// # Source
/// Delta Spark `DeltaConfigs.parseCalendarInterval`, `isValidIntervalConfigValue`.
pub fn interval_ms(text: &str) -> Option<i64> {
    let lower = text.trim().to_lowercase();
    let mut words = lower.strip_prefix("interval").unwrap_or(&lower).split_whitespace().peekable();
    words.peek()?;
    let mut micros: i64 = 0;
    while let Some(number) = words.next() {
        let number = number.strip_prefix('+').unwrap_or(number).parse::<i64>().ok()?;
        let unit: i64 = match words.next()? {
            "week" | "weeks" => 604_800_000_000,
            "day" | "days" => 86_400_000_000,
            "hour" | "hours" => 3_600_000_000,
            "minute" | "minutes" => 60_000_000,
            "second" | "seconds" => 1_000_000,
            "millisecond" | "milliseconds" => 1_000,
            "microsecond" | "microseconds" => 1,
            _ => return None,
        };
        micros = micros.checked_add(number.checked_mul(unit)?)?;
    }
    (micros >= 0).then_some(micros / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        for (text, expected) in [
            ("interval 30 days", Some(2_592_000_000)),
            ("30 DAYS", Some(2_592_000_000)),
            ("Interval 1 week 2 hours", Some(612_000_000)),
            ("0 seconds", Some(0)),
            ("interval", None),
            ("", None),
            ("1 month", None),
            ("1 year", None),
            ("days", None),
            ("-1 days", None),
            ("9223372036854775807 weeks", None),
        ] {
            assert_eq!(interval_ms(text), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_found_in_any_case() {
        assert_eq!(known("DELTA.appendonly").unwrap().0, "delta.appendOnly");
        assert!(known("delta.nope").is_none());
        assert!(known("appendOnly").is_none());
    }

    #[test]
    fn values_must_follow_the_rule() {
        let message = |key: &str, value: &str| {
            let (key, rule) = known(key).unwrap();
            check(&key, value, rule).map_err(|e| e.message().to_string())
        };
        assert_eq!(message("delta.appendOnly", "TRUE"), Ok(()));
        assert_eq!(
            message("delta.dataSkippingNumIndexedCols", "-2"),
            Err("delta.dataSkippingNumIndexedCols needs to be larger than or equal to -1.".into())
        );
        assert_eq!(
            message("delta.autoOptimize.autoCompact", "maybe"),
            Err("delta.autoOptimize.autoCompact \"needs to be one of: true,false".into())
        );
        let numbers = ["2147483648", " 5 ", "99999999999", "5.0"];
        for (key, value) in [("checkpointInterval", "0"), ("logRetentionDuration", "1 month"), ("isolationLevel", "x")]
            .into_iter()
            .chain(numbers.map(|n| ("checkpointInterval", n)))
            .chain(numbers.map(|n| ("dataSkippingNumIndexedCols", n)))
        {
            assert!(message(&format!("delta.{key}"), value).is_err(), "{key}");
        }
    }
}
