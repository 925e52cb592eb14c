//! Every session setting, declared once: its key, meaning, default and the values that it takes.

use lakesmith_core::op::{
    Compat, CubeSizes, FileSizes, OptimizeOptions, RestoreOptions, RewriteLimits, VacuumOptions, WarehouseOptions,
};
use lakesmith_core::units::{bytes_text, duration_text, parse_bytes, parse_duration_ms};
use lakesmith_core::{Error, Result};

pub(crate) const MAX_FILE_SIZE: &str = "spark.databricks.delta.optimize.maxFileSize";
pub(crate) const MIN_FILE_SIZE: &str = "spark.databricks.delta.optimize.minFileSize";
pub(crate) const MAX_DELETED_ROWS_RATIO: &str = "spark.databricks.delta.optimize.maxDeletedRowsRatio";
pub(crate) const BATCH_SIZE: &str = "spark.databricks.delta.optimize.batchSize";
pub(crate) const USER_METADATA: &str = "spark.databricks.delta.commitInfo.userMetadata";
pub(crate) const ALLOW_ARBITRARY: &str = "spark.databricks.delta.allowArbitraryProperties.enabled";
pub(crate) const MAX_RECORDS_PER_FILE: &str = "spark.sql.files.maxRecordsPerFile";
pub(crate) const PARQUET_CODEC: &str = "spark.sql.parquet.compression.codec";
pub(crate) const TIME_ZONE: &str = "spark.sql.session.timeZone";
pub(crate) const COMPAT: &str = "lakesmith.compat";
pub(crate) const MEMORY: &str = "lakesmith.memory";
pub(crate) const THREADS: &str = "lakesmith.threads";
pub(crate) const VERIFY: &str = "lakesmith.verify";
pub(crate) const FORCE: &str = "lakesmith.force";
pub(crate) const COMMIT_TIMEOUT: &str = "lakesmith.commitTimeout";
pub(crate) const ROW_GROUP_ROWS: &str = "lakesmith.rowGroupRows";
pub(crate) const RETENTION_CHECK: &str = "spark.databricks.delta.retentionDurationCheck.enabled";
pub(crate) const VACUUM_LOGGING: &str = "spark.databricks.delta.vacuum.logging.enabled";
pub(crate) const VACUUM_LITE_ENABLED: &str = "spark.databricks.delta.vacuum.lite.enabled";
pub(crate) const NO_WRITERS: &str = "lakesmith.vacuum.noWriters";
pub(crate) const RESET_TRANSACTIONS: &str = "lakesmith.restore.resetTransactions";
pub(crate) const ZORDER_STATS_CHECK: &str = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled";
pub(crate) const CUBE_MIN_SIZE: &str = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold";
pub(crate) const CUBE_TARGET_SIZE: &str =
    "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize";
pub(crate) const CLUSTERING_BUDGET: &str = "lakesmith.clustering.budget";
pub(crate) const SPILL_FOLDER: &str = "lakesmith.spillDir";
pub(crate) const WAREHOUSE: &str = "lakesmith.warehouse";
pub(crate) const SPARK_WAREHOUSE: &str = "spark.sql.warehouse.dir";
pub(crate) const EXTENDED_COLUMNS: &str = "lakesmith.sql.extendedColumns";

/// One setting, for documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Key.
    pub key: &'static str,
    /// Value while nothing is set, as it would be written.
    pub default: String,
    /// What it does.
    pub meaning: &'static str,
    /// The words that it takes, in any case; empty: it takes something else.
    pub words: &'static [&'static str],
}

/// The value of a setting as people read it: `1GiB` for `1073741824`, no secrets. A value that can't be read stays as it is.
pub fn readable(key: &str, value: &str) -> String {
    let read = match declaration(key).map(|d| d.takes) {
        Some(Takes::Bytes(_)) => parse_bytes(value).ok().map(bytes_text),
        Some(Takes::Duration) => parse_duration_ms(value).ok().map(duration_text),
        _ => None,
    };
    read.unwrap_or_else(|| crate::settings::shown(key, value).to_owned())
}

/// Values that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A size of at least so many bytes.
    Bytes(u64),
    /// A number from 0 to 1.
    Ratio,
    /// true or false.
    Boolean,
    /// A whole number of at least so many.
    Count(u64),
    /// A duration.
    Duration,
    /// Any text.
    Text,
    /// One of these words, in any case.
    OneOf(&'static [&'static str]),
}

pub(crate) struct Declaration {
    pub(crate) key: &'static str,
    pub(crate) takes: Takes,
    default: fn() -> String,
    meaning: &'static str,
}

/// Names of the one time zone that predicates are read in.
const UTC: Takes = Takes::OneOf(&["UTC", "Z", "GMT", "Etc/UTC", "+00:00", "UTC+0", "UTC+00:00"]);

const CODECS: Takes = Takes::OneOf(&["snappy", "zstd", "gzip", "lz4", "brotli", "lz4_raw", "none", "uncompressed"]);

pub(crate) const DECLARATIONS: [Declaration; 29] = [
    Declaration {
        key: MAX_FILE_SIZE,
        takes: Takes::Bytes(1),
        default: || bytes_text(FileSizes::default().target_bytes),
        meaning: "Target size of the files that OPTIMIZE and REORG write, measured on input bytes",
    },
    Declaration {
        key: MIN_FILE_SIZE,
        takes: Takes::Bytes(0),
        default: || bytes_text(FileSizes::default().min_file_bytes),
        meaning: "OPTIMIZE looks at files smaller than this; it does not follow maxFileSize",
    },
    Declaration {
        key: MAX_DELETED_ROWS_RATIO,
        takes: Takes::Ratio,
        default: || FileSizes::default().max_deleted_rows_ratio.to_string(),
        meaning: "OPTIMIZE also rewrites files with a greater share of deleted rows",
    },
    Declaration {
        key: BATCH_SIZE,
        takes: Takes::Bytes(1),
        default: || "one commit a run".into(),
        meaning: "Commit whenever this many input bytes are rewritten",
    },
    Declaration {
        key: USER_METADATA,
        takes: Takes::Text,
        default: || "none".into(),
        meaning: "Text kept with every commit in the history",
    },
    Declaration {
        key: ALLOW_ARBITRARY,
        takes: Takes::Boolean,
        default: || "false".into(),
        meaning: "Let ALTER TABLE set delta.* properties that are not known",
    },
    Declaration {
        key: MAX_RECORDS_PER_FILE,
        takes: Takes::Count(0),
        default: || "0".into(),
        meaning: "Rows a written file at most; 0: no limit",
    },
    Declaration {
        key: PARQUET_CODEC,
        takes: CODECS,
        default: || "that of the files read".into(),
        meaning: "Compression of the files that are written",
    },
    Declaration {
        key: TIME_ZONE,
        takes: UTC,
        default: || "UTC".into(),
        meaning: "Zone of dates and timestamps in predicates; only UTC is available",
    },
    Declaration {
        key: COMPAT,
        takes: Takes::OneOf(&["lakesmith", "spark"]),
        default: || match Compat::default() {
            Compat::Lakesmith => "lakesmith".into(),
            Compat::Spark => "spark".into(),
        },
        meaning: "spark: do exactly as Spark does where Lakesmith's own habit is better",
    },
    Declaration {
        key: MEMORY,
        takes: Takes::Bytes(RewriteLimits::MEMORY_BYTES_MIN),
        default: || bytes_text(RewriteLimits::default().memory_bytes),
        meaning: "Memory for reading and writing, over all threads",
    },
    Declaration {
        key: THREADS,
        takes: Takes::Count(0),
        default: || RewriteLimits::default().threads.to_string(),
        meaning: "Rewrites at the same time; 0: one a core",
    },
    Declaration {
        key: VERIFY,
        takes: Takes::Boolean,
        default: || RewriteLimits::default().verify.to_string(),
        meaning: "Compare the content of inputs and outputs before committing",
    },
    Declaration {
        key: FORCE,
        takes: Takes::Boolean,
        default: || "false".into(),
        meaning: "OPTIMIZE also packs what an earlier run packed for the same target",
    },
    Declaration {
        key: COMMIT_TIMEOUT,
        takes: Takes::Duration,
        default: || duration_text(RewriteLimits::default().commit_timeout_ms),
        meaning: "Give up after losing the race for a commit for so long",
    },
    Declaration {
        key: ROW_GROUP_ROWS,
        takes: Takes::Count(1),
        default: || RewriteLimits::default().row_group_rows.to_string(),
        meaning: "Rows a row group of a written file at most",
    },
    Declaration {
        key: ZORDER_STATS_CHECK,
        takes: Takes::Boolean,
        default: || OptimizeOptions::default().stats_check.to_string(),
        meaning: "OPTIMIZE refuses to order by columns without statistics",
    },
    Declaration {
        key: CUBE_MIN_SIZE,
        takes: Takes::Bytes(0),
        default: || bytes_text(CubeSizes::default().min_bytes),
        meaning: "On clustered tables, ordered runs of files of at least this size are finished",
    },
    Declaration {
        key: CUBE_TARGET_SIZE,
        takes: Takes::Bytes(1),
        default: || bytes_text(CubeSizes::default().target_bytes),
        meaning: "On clustered tables, bytes of input that are ordered together at most",
    },
    Declaration {
        key: CLUSTERING_BUDGET,
        takes: Takes::Bytes(1),
        default: || "no limit".into(),
        meaning: "On clustered tables, bytes of input that a run of OPTIMIZE orders at most, the worst first",
    },
    Declaration {
        key: SPILL_FOLDER,
        takes: Takes::Text,
        default: || "that for temporary files".into(),
        meaning: "Folder for what does not fit into the memory",
    },
    Declaration {
        key: RETENTION_CHECK,
        takes: Takes::Boolean,
        default: || VacuumOptions::default().retention_check.to_string(),
        meaning: "VACUUM refuses a retention below the table's own",
    },
    Declaration {
        key: NO_WRITERS,
        takes: Takes::Boolean,
        default: || VacuumOptions::default().no_writers.to_string(),
        meaning: "Nobody is writing: VACUUM need not keep unknown files for a day",
    },
    Declaration {
        key: RESET_TRANSACTIONS,
        takes: Takes::Boolean,
        default: || RestoreOptions::default().reset_transactions.to_string(),
        meaning: "RESTORE sets the progress of streaming writers back, too, so that they write their batches again",
    },
    Declaration {
        key: VACUUM_LOGGING,
        takes: Takes::Boolean,
        default: || "everywhere but on S3".into(),
        meaning: "VACUUM commits VACUUM START and VACUUM END to the history",
    },
    Declaration {
        key: VACUUM_LITE_ENABLED,
        takes: Takes::Boolean,
        default: || "false".into(),
        meaning: "true: VACUUM without FULL or LITE means LITE",
    },
    Declaration {
        key: WAREHOUSE,
        takes: Takes::Text,
        default: || WarehouseOptions::default().location,
        meaning: "Folder in which tables are found and made by name: a folder a database, and in it one a table",
    },
    Declaration {
        key: SPARK_WAREHOUSE,
        takes: Takes::Text,
        default: || WarehouseOptions::default().location,
        meaning: "The same under Spark's name; lakesmith.warehouse wins over it",
    },
    Declaration {
        key: EXTENDED_COLUMNS,
        takes: Takes::Boolean,
        default: || "false".into(),
        meaning: "Add Lakesmith's own columns to the results of SQL statements",
    },
];

/// Every setting, in the order in which it is documented.
pub fn settings_reference() -> Vec<Setting> {
    let words = |takes| match takes {
        Takes::OneOf(words) => words,
        _ => &[],
    };
    let setting =
        |d: &Declaration| Setting { key: d.key, default: (d.default)(), meaning: d.meaning, words: words(d.takes) };
    DECLARATIONS.iter().map(setting).collect()
}

pub(crate) fn declaration(key: &str) -> Option<&'static Declaration> {
    const TABLE: &[Declaration] = &DECLARATIONS;
    TABLE.iter().find(|d| d.key == key)
}

impl Declaration {
    /// Refuses a value that the setting does not take.
    pub(crate) fn check(&self, value: &str) -> Result<()> {
        let trimmed = value.trim();
        let wanted = match self.takes {
            Takes::Bytes(least) => match bytes(trimmed) {
                Ok(bytes) if bytes >= least => return Ok(()),
                Ok(_) if least > 1 => {
                    let reason = format!("it has to be at least {}", bytes_text(least));
                    return Err(self.refusal(value, "REQUIREMENT", &reason));
                }
                Ok(_) => return Err(self.refusal(value, "REQUIREMENT", "it has to be positive")),
                Err(_) => "a size such as 268435456, 256m or 1gb",
            },
            Takes::Ratio => match trimmed.parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => return Ok(()),
                Ok(_) => return Err(self.refusal(value, "REQUIREMENT", "it must be in range [0.0, 1.0]")),
                Err(_) => "a number from 0.0 to 1.0",
            },
            Takes::Boolean => match parse_boolean(trimmed) {
                Some(_) => return Ok(()),
                None => "true or false",
            },
            Takes::Count(least) => match trimmed.parse::<u64>() {
                Ok(count) if count >= least && usize::try_from(count).is_ok() => return Ok(()),
                Ok(_) => return Err(self.refusal(value, "REQUIREMENT", "it has to be positive")),
                // Spark takes any negative number for "no limit".
                Err(_) if self.key == MAX_RECORDS_PER_FILE && trimmed.parse::<i64>().is_ok() => return Ok(()),
                Err(_) => "a whole number",
            },
            Takes::Duration => match parse_duration_ms(trimmed) {
                Ok(_) => return Ok(()),
                Err(_) => "a duration such as 90s, 30min or 1h",
            },
            Takes::Text => return Ok(()),
            Takes::OneOf(words) => {
                if words.iter().any(|word| word.eq_ignore_ascii_case(trimmed)) {
                    return Ok(());
                }
                return Err(self.refusal(value, "REQUIREMENT", &format!("it must be one of {}", words.join(", "))));
            }
        };
        Err(self.refusal(value, "TYPE_MISMATCH", &format!("it should be {wanted}")))
    }

    fn refusal(&self, value: &str, class: &str, reason: &str) -> Error {
        Error::usage(format!("The value '{value}' in the config \"{}\" is invalid: {reason}", self.key))
            .class(format!("INVALID_CONF_VALUE.{class}"))
            .with("key", self.key)
            .with("value", value)
    }
}

/// Sizes as Spark writes them, too: `256k`, `1g`, `262144b`.
pub(crate) fn bytes(text: &str) -> Result<u64> {
    parse_bytes(text)
}

pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
