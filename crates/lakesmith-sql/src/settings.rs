//! The settings of a session: what SET wrote, and what it means for operations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lakesmith_core::op::{
    Compat, CubeSizes, FileSizes, OptimizeOptions, ReorgOptions, RestoreOptions, RewriteLimits, VacuumMode,
    VacuumOptions, WarehouseOptions,
};
use lakesmith_core::units::parse_duration_ms;
use lakesmith_core::{Error, Result};

use crate::settings_table::{
    self as table, ALLOW_ARBITRARY, BATCH_SIZE, CLUSTERING_BUDGET, COMMIT_TIMEOUT, COMPAT, CUBE_MIN_SIZE,
    CUBE_TARGET_SIZE, DECLARATIONS, EXTENDED_COLUMNS, FORCE, MAX_DELETED_ROWS_RATIO, MAX_FILE_SIZE,
    MAX_RECORDS_PER_FILE, MEMORY, MIN_FILE_SIZE, NO_WRITERS, PARQUET_CODEC, RESET_TRANSACTIONS, RETENTION_CHECK,
    ROW_GROUP_ROWS, SPARK_WAREHOUSE, SPILL_FOLDER, THREADS, USER_METADATA, VACUUM_LITE_ENABLED, VACUUM_LOGGING, VERIFY,
    WAREHOUSE, ZORDER_STATS_CHECK,
};
use crate::suggest::nearest;

/// Keys and values as SET takes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
    /// What the command line fixed; SET does not reach it.
    fixed: BTreeMap<String, String>,
}

/// Parts of keys whose values are secrets, without regard to case, `-`, `_` and `.`.
///
/// # Source
/// Spark `spark.redaction.regex`, widened by the keys of the object stores.
const SECRET_KEYS: [&str; 12] = [
    "secret",
    "token",
    "password",
    "passphrase",
    "accesskey",
    "accountkey",
    "privatekey",
    "sharedkey",
    "masterkey",
    "saskey",
    "credential",
    "connectionstring",
];

/// What is shown in the place of a secret, as Spark shows it.
const REDACTED: &str = "*********(redacted)";

/// The value of a setting as it may be shown.
pub fn shown<'a>(key: &str, value: &'a str) -> &'a str {
    if is_secret_setting(key) { REDACTED } else { value }
}

/// True if the setting's value is nobody else's business.
pub fn is_secret_setting(key: &str) -> bool {
    let plain: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_KEYS.iter().any(|part| plain.contains(part))
}

impl Settings {
    /// `SET key = value`. Keys that are not Lakesmith's are kept, whatever they mean.
    ///
    /// # Errors
    /// Usage for an unknown key under `lakesmith.`, and `INVALID_CONF_VALUE` for a value that the setting does not take.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match table::declaration(key) {
            Some(declaration) => declaration.check(value)?,
            None if key.get(..10).is_some_and(|prefix| prefix.eq_ignore_ascii_case("lakesmith.")) => {
                let hint = match nearest(key, DECLARATIONS.iter().map(|d| d.key)) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => "`lakesmith config` lists the settings".to_owned(),
                };
                return Err(Error::usage(format!("there is no setting '{key}'; {hint}")).with("key", key));
            }
            None => {}
        }
        self.values.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sets a value that no SET and no RESET changes: a flag or its variable.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn fix(&mut self, key: &str, value: &str) -> Result<()> {
        self.set(key, value)?;
        self.values.remove(key);
        self.fixed.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// True if SET has no effect on `key`.
    pub fn is_fixed(&self, key: &str) -> bool {
        self.fixed.contains_key(key)
    }

    /// `RESET key` and `RESET`: back to the defaults.
    pub fn reset(&mut self, key: Option<&str>) {
        match key {
            Some(key) => {
                self.values.remove(key);
            }
            None => self.values.clear(),
        }
    }

    /// The value in force, if one was set.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fixed.get(key).or_else(|| self.values.get(key)).map(String::as_str)
    }

    /// Everything that was set, by key, with the value in force.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let keys: BTreeSet<&String> = self.values.keys().chain(self.fixed.keys()).collect();
        keys.into_iter().filter_map(|key| Some((key.as_str(), self.get(key)?)))
    }

    /// Whether results carry Lakesmith's own columns.
    pub fn extended_columns(&self) -> bool {
        self.boolean(EXTENDED_COLUMNS)
    }

    /// Whether unknown `delta.*` properties may be set.
    pub fn allow_arbitrary_properties(&self) -> bool {
        self.boolean(ALLOW_ARBITRARY)
    }

    /// Text kept with every commit; an empty one is none, as in Spark.
    pub fn user_metadata(&self) -> Option<String> {
        self.get(USER_METADATA).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Where names are looked up.
    pub fn warehouse(&self) -> WarehouseOptions {
        let said = [WAREHOUSE, SPARK_WAREHOUSE].into_iter().filter_map(|key| self.trimmed(key)).find(|v| !v.is_empty());
        said.map_or_else(WarehouseOptions::default, |location| WarehouseOptions { location: location.to_owned() })
    }

    /// Whose habits are followed.
    pub fn compat(&self) -> Compat {
        match self.trimmed(COMPAT) {
            Some(word) if word.eq_ignore_ascii_case("spark") => Compat::Spark,
            Some(_) => Compat::Lakesmith,
            None => Compat::default(),
        }
    }

    /// Sizes that select and pack files.
    ///
    /// # Errors
    /// Usage for a value that cannot be read.
    pub fn sizes(&self) -> Result<FileSizes> {
        let default = FileSizes::default();
        Ok(FileSizes {
            target_bytes: self.read(MAX_FILE_SIZE, table::bytes)?.unwrap_or(default.target_bytes),
            min_file_bytes: self.read(MIN_FILE_SIZE, table::bytes)?.unwrap_or(default.min_file_bytes),
            max_deleted_rows_ratio: self
                .read(MAX_DELETED_ROWS_RATIO, number)?
                .unwrap_or(default.max_deleted_rows_ratio),
        })
    }

    fn cubes(&self) -> Result<CubeSizes> {
        let default = CubeSizes::default();
        Ok(CubeSizes {
            min_bytes: self.read(CUBE_MIN_SIZE, table::bytes)?.unwrap_or(default.min_bytes),
            target_bytes: self.read(CUBE_TARGET_SIZE, table::bytes)?.unwrap_or(default.target_bytes),
        })
    }

    /// Limits and habits of a rewrite.
    ///
    /// # Errors
    /// Usage for a value that cannot be read.
    pub fn limits(&self) -> Result<RewriteLimits> {
        let default = RewriteLimits::default();
        Ok(RewriteLimits {
            memory_bytes: self.read(MEMORY, table::bytes)?.unwrap_or(default.memory_bytes),
            threads: self.read(THREADS, number)?.unwrap_or(default.threads),
            verify: self.read(VERIFY, number)?.unwrap_or(default.verify),
            commit_every_bytes: self.read(BATCH_SIZE, table::bytes)?.or(default.commit_every_bytes),
            commit_timeout_ms: self.read(COMMIT_TIMEOUT, parse_duration_ms)?.unwrap_or(default.commit_timeout_ms),
            max_rows_per_file: self
                .read(MAX_RECORDS_PER_FILE, number::<i64>)?
                .and_then(|rows| u64::try_from(rows).ok())
                .filter(|rows| *rows > 0)
                .or(default.max_rows_per_file),
            compression: self.trimmed(PARQUET_CODEC).map(str::to_ascii_lowercase).or(default.compression),
            row_group_rows: self.read(ROW_GROUP_ROWS, number)?.unwrap_or(default.row_group_rows),
            user_metadata: self.user_metadata(),
            spill_folder: self.get(SPILL_FOLDER).filter(|f| !f.is_empty()).map(PathBuf::from).or(default.spill_folder),
            ..default
        })
    }

    /// Options of OPTIMIZE as the settings have them.
    ///
    /// # Errors
    /// Usage for a value that cannot be read.
    pub fn optimize_options(&self) -> Result<OptimizeOptions> {
        Ok(OptimizeOptions {
            sizes: self.sizes()?,
            compat: self.compat(),
            force: self.boolean(FORCE),
            stats_check: self
                .trimmed(ZORDER_STATS_CHECK)
                .and_then(table::parse_boolean)
                .unwrap_or(OptimizeOptions::default().stats_check),
            cubes: self.cubes()?,
            budget_bytes: self.read(CLUSTERING_BUDGET, table::bytes)?,
            limits: self.limits()?,
            ..OptimizeOptions::default()
        })
    }

    /// Options of REORG as the settings have them.
    ///
    /// # Errors
    /// Usage for a value that cannot be read.
    pub fn reorg_options(&self) -> Result<ReorgOptions> {
        Ok(ReorgOptions { sizes: self.sizes()?, limits: self.limits()?, ..ReorgOptions::default() })
    }

    /// Options of RESTORE as the settings have them.
    ///
    /// # Errors
    /// Usage for a value that cannot be read.
    pub fn restore_options(&self) -> Result<RestoreOptions> {
        let default = RestoreOptions::default();
        let reset = self.trimmed(RESET_TRANSACTIONS).and_then(table::parse_boolean);
        Ok(RestoreOptions {
            reset_transactions: reset.unwrap_or(default.reset_transactions),
            commit_timeout_ms: self.limits()?.commit_timeout_ms,
            user_metadata: self.user_metadata(),
            ..default
        })
    }

    /// Options of VACUUM as the settings have them.
    ///
    /// # Errors
    /// Usage for a value that cannot be read.
    pub fn vacuum_options(&self) -> Result<VacuumOptions> {
        let default = VacuumOptions::default();
        let boolean = |key| self.trimmed(key).and_then(table::parse_boolean);
        Ok(VacuumOptions {
            mode: if self.boolean(VACUUM_LITE_ENABLED) { VacuumMode::Lite } else { default.mode },
            retention_check: boolean(RETENTION_CHECK).unwrap_or(default.retention_check),
            no_writers: boolean(NO_WRITERS).unwrap_or(default.no_writers),
            logging: boolean(VACUUM_LOGGING).or(default.logging),
            commit_timeout_ms: self.limits()?.commit_timeout_ms,
            user_metadata: self.user_metadata(),
            compat: self.compat(),
            ..default
        })
    }

    fn trimmed(&self, key: &str) -> Option<&str> {
        self.get(key).map(str::trim)
    }

    fn boolean(&self, key: &str) -> bool {
        self.trimmed(key).and_then(table::parse_boolean).unwrap_or(false)
    }

    fn read<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        self.trimmed(key).map(|text| parse(text).map_err(|e| e.with("key", key))).transpose()
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.to_ascii_lowercase().parse().map_err(|_| Error::usage(format!("'{text}' cannot be read")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lakesmith_core::units::GIB;

    fn with(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (key, value) in pairs {
            settings.set(key, value).unwrap();
        }
        settings
    }

    #[test]
    fn the_smallest_file_does_not_follow_the_largest() {
        let sizes = with(&[(MAX_FILE_SIZE, "256k")]).sizes().unwrap();
        assert_eq!((sizes.target_bytes, sizes.min_file_bytes), (262_144, GIB));
        let sizes = with(&[(MAX_FILE_SIZE, "1gb"), (MIN_FILE_SIZE, "262144")]).sizes().unwrap();
        assert_eq!((sizes.target_bytes, sizes.min_file_bytes), (GIB, 262_144));
    }

    #[test]
    fn settings_reach_the_options() {
        let settings = with(&[
            (COMPAT, "Spark"),
            (MEMORY, "1 GiB"),
            (THREADS, "3"),
            (VERIFY, "TRUE"),
            (COMMIT_TIMEOUT, "90s"),
            (BATCH_SIZE, "10g"),
            (USER_METADATA, "nightly; run"),
            (MAX_RECORDS_PER_FILE, "100"),
            (PARQUET_CODEC, "ZSTD"),
            (FORCE, "true"),
            (ZORDER_STATS_CHECK, "FALSE"),
            (CUBE_MIN_SIZE, "64k"),
            (CUBE_TARGET_SIZE, "1m"),
            (CLUSTERING_BUDGET, "10MiB"),
            (SPILL_FOLDER, "/tmp/a b"),
            ("spark.executor.cores", "whatever"),
        ]);
        let options = settings.optimize_options().unwrap();
        assert_eq!(options.compat, Compat::Spark);
        assert!(options.force && !options.stats_check);
        assert_eq!(options.cubes, CubeSizes { min_bytes: 65_536, target_bytes: 1 << 20 });
        assert_eq!(options.budget_bytes, Some(10 << 20));
        assert_eq!(
            options.limits,
            RewriteLimits {
                memory_bytes: GIB,
                threads: 3,
                verify: true,
                commit_every_bytes: Some(10 * GIB),
                commit_timeout_ms: 90_000,
                max_rows_per_file: Some(100),
                compression: Some("zstd".into()),
                user_metadata: Some("nightly; run".into()),
                spill_folder: Some("/tmp/a b".into()),
                ..RewriteLimits::default()
            }
        );
        assert_eq!(with(&[(MAX_RECORDS_PER_FILE, "-1")]).limits().unwrap().max_rows_per_file, None);
        assert_eq!(Settings::default().optimize_options().unwrap(), OptimizeOptions::default());
        assert_eq!(Settings::default().reorg_options().unwrap(), ReorgOptions::default());
        assert_eq!(Settings::default().vacuum_options().unwrap(), VacuumOptions::default());
        let options =
            with(&[(RETENTION_CHECK, "false"), (NO_WRITERS, "true"), (VACUUM_LOGGING, "false")]).vacuum_options();
        let options = options.unwrap();
        assert_eq!((options.retention_check, options.no_writers, options.logging), (false, true, Some(false)));
    }

    #[test]
    fn bad_values_are_refused_when_they_are_set() {
        for (key, value, class) in [
            (MAX_FILE_SIZE, "abc", "INVALID_CONF_VALUE.TYPE_MISMATCH"),
            (MAX_FILE_SIZE, "0", "INVALID_CONF_VALUE.REQUIREMENT"),
            (MAX_FILE_SIZE, "-5", "INVALID_CONF_VALUE.TYPE_MISMATCH"),
            (MAX_FILE_SIZE, "'262144'", "INVALID_CONF_VALUE.TYPE_MISMATCH"),
            (MAX_DELETED_ROWS_RATIO, "7", "INVALID_CONF_VALUE.REQUIREMENT"),
            (MAX_DELETED_ROWS_RATIO, "nan", "INVALID_CONF_VALUE.REQUIREMENT"),
            (ALLOW_ARBITRARY, "maybe", "INVALID_CONF_VALUE.TYPE_MISMATCH"),
            (table::TIME_ZONE, "Europe/Berlin", "INVALID_CONF_VALUE.REQUIREMENT"),
            (COMPAT, "trino", "INVALID_CONF_VALUE.REQUIREMENT"),
            (ROW_GROUP_ROWS, "0", "INVALID_CONF_VALUE.REQUIREMENT"),
            (MEMORY, "11MiB", "INVALID_CONF_VALUE.REQUIREMENT"),
        ] {
            let mut settings = Settings::default();
            let error = settings.set(key, value).unwrap_err();
            assert_eq!(error.class_name(), class, "{error}");
            assert_eq!((error.context_value("key"), error.context_value("value")), (Some(key), Some(value)));
            assert_eq!(settings, Settings::default());
        }
    }

    #[test]
    fn unknown_keys_of_ours_are_refused_with_the_nearest_name() {
        let error = Settings::default().set("lakesmith.thread", "1").unwrap_err();
        assert!(error.message().contains("did you mean 'lakesmith.threads'?"), "{error}");
        assert!(Settings::default().set("lakesmith.nothing.like.it", "1").is_err());
        assert!(Settings::default().set("spark.no.such.key", "1").is_ok());
    }

    #[test]
    fn what_is_fixed_wins_over_set_and_reset() {
        let mut settings = with(&[(THREADS, "1"), (VERIFY, "true")]);
        settings.fix(THREADS, "2").unwrap();
        settings.set(THREADS, "3").unwrap();
        assert_eq!((settings.get(THREADS), settings.is_fixed(THREADS)), (Some("2"), true));
        assert_eq!(settings.iter().collect::<Vec<_>>(), [(THREADS, "2"), (VERIFY, "true")]);
        settings.reset(None);
        assert_eq!(settings.limits().unwrap().threads, 2);
        assert!(settings.fix(THREADS, "many").is_err());
        assert_eq!(settings.get(THREADS), Some("2"));
    }

    #[test]
    fn secrets_are_not_shown() {
        for key in [
            "fs.s3a.secret.key",
            "aws_secret_access_key",
            "fs.s3a.access.key",
            "AWS_SESSION_TOKEN",
            "db.Password",
            "fs.azure.account.key.x.dfs.core.windows.net",
            "azure_storage_sas_key",
            "google_service_account_private-key",
            "azure_client_secret",
            "azure_storage_connection_string",
        ] {
            assert_eq!(shown(key, "abc"), REDACTED, "{key}");
        }
        for key in [MAX_FILE_SIZE, "aws_region", "lakesmith.sql.extendedColumns", "spark.sql.session.timeZone"] {
            assert_eq!(shown(key, "abc"), "abc", "{key}");
        }
    }

    #[test]
    fn reset_returns_to_the_defaults() {
        let mut settings = with(&[(THREADS, "3"), (VERIFY, "true")]);
        settings.reset(Some(THREADS));
        assert_eq!(settings.iter().collect::<Vec<_>>(), [(VERIFY, "true")]);
        settings.reset(None);
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn documented_defaults_are_values_that_the_settings_take() {
        for setting in table::settings_reference() {
            let words = ["one commit a run", "none", "no limit", "that of the files read", "everywhere but on S3"];
            if !words.contains(&setting.default.as_str()) {
                Settings::default().set(setting.key, &setting.default).unwrap();
            }
            assert!(!setting.meaning.is_empty());
        }
    }
}
