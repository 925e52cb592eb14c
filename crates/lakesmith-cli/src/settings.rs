//! Flags to session settings and operation options: a flag only ever overrides what the library chose.

use std::collections::BTreeMap;

use lakesmith::Session;
use lakesmith::layout::Curve;
use lakesmith::op::{
    FsckOptions, HealthOptions, Inventory, OptimizeOptions, OrderBy, ReorgOptions, RestoreOptions, StatisticsCheck,
    VacuumMode, VacuumOptions,
};
use lakesmith::predicate::Expr;

use crate::args::{
    FsckArgs, HealthArgs, OptimizeArgs, ReorgArgs, RestoreArgs, ScopeArgs, Shared, StatsArg, TuningArgs, VacuumArgs,
};
use crate::exit::Failure;

/// Settings that a session starts with: `--set`, which stands where SET stands.
pub(crate) fn of_session(shared: &Shared) -> BTreeMap<String, String> {
    shared.set.iter().cloned().collect()
}

/// The flags (and their variables) that stand for settings; they win over every SET.
pub(crate) fn fixed(shared: &Shared, tuning: Option<&TuningArgs>) -> BTreeMap<String, String> {
    let flags = tuning.map(flags).unwrap_or_default().into_iter().map(|(_, key, value)| (key, value));
    let warehouse = (WAREHOUSE_KEY, shared.warehouse.clone());
    flags.chain([warehouse]).filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The setting that `--warehouse` stands for.
const WAREHOUSE_KEY: &str = "lakesmith.warehouse";

/// The setting that a flag of [`TuningArgs`] stands for.
pub(crate) fn key_of_flag(id: &str) -> Option<&'static str> {
    flags(&TuningArgs::default()).into_iter().find_map(|(flag, key, _)| (flag == id).then_some(key))
}

/// The flag that stands for a setting, by its clap id.
pub(crate) fn flag_of_key(key: &str) -> Option<&'static str> {
    let tuning = flags(&TuningArgs::default()).into_iter().map(|(flag, stands_for, _)| (flag, stands_for));
    tuning.chain([("warehouse", WAREHOUSE_KEY)]).find_map(|(flag, stands_for)| (stands_for == key).then_some(flag))
}

/// Flags by their clap ids, the settings that they stand for, and what was given.
fn flags(tuning: &TuningArgs) -> [(&'static str, &'static str, Option<String>); 11] {
    let number = |value: Option<u64>| value.map(|v| v.to_string());
    let timeout = tuning.commit_timeout.map(|ms| format!("{ms}ms"));
    [
        ("target_size", "spark.databricks.delta.optimize.maxFileSize", number(tuning.target_size)),
        ("verify", "lakesmith.verify", tuning.verify.then(|| "true".to_owned())),
        ("memory", "lakesmith.memory", number(tuning.memory)),
        ("threads", "lakesmith.threads", number(tuning.threads)),
        ("commit_every", "spark.databricks.delta.optimize.batchSize", number(tuning.commit_every)),
        ("commit_timeout", "lakesmith.commitTimeout", timeout),
        ("max_rows_per_file", "spark.sql.files.maxRecordsPerFile", number(tuning.max_rows_per_file)),
        ("compression", "spark.sql.parquet.compression.codec", tuning.compression.clone()),
        ("row_group_rows", "lakesmith.rowGroupRows", number(tuning.row_group_rows)),
        ("spill_dir", "lakesmith.spillDir", tuning.spill_dir.clone()),
        ("user_metadata", "spark.databricks.delta.commitInfo.userMetadata", tuning.user_metadata.clone()),
    ]
}

/// Options of `optimize`.
pub(crate) fn of_optimize(session: &Session, args: OptimizeArgs) -> Result<OptimizeOptions, Failure> {
    let mut options = session.optimize_options()?;
    (options.predicate, options.predicate_text) = predicate(session, &args.scope)?;
    options.limits.dry_run |= args.scope.dry_run;
    options.limits.plan_out.clone_from(&args.scope.plan_out);
    options.force |= args.force;
    options.full |= args.full;
    options.budget_bytes = args.max_bytes.or(options.budget_bytes);
    let wanted = [(Curve::Zorder, args.zorder_by), (Curve::Hilbert, args.hilbert_by), (Curve::Sort, args.sort_by)];
    if let Some((curve, columns)) = wanted.into_iter().find_map(|(curve, columns)| Some((curve, columns?))) {
        options.order_by = Some(OrderBy { curve, columns: columns.0 });
    }
    Ok(options)
}

/// Options of `health`.
pub(crate) fn of_health(session: &Session, args: &HealthArgs) -> Result<HealthOptions, Failure> {
    let mut options = session.health_options()?;
    options.at = args.table.at();
    options.deep = args.deep;
    options.sizes.target_bytes = args.target_size.unwrap_or(options.sizes.target_bytes);
    options.history_commits = args.history.unwrap_or(options.history_commits);
    Ok(options)
}

/// Options of `reorg`.
pub(crate) fn of_reorg(session: &Session, args: ReorgArgs) -> Result<ReorgOptions, Failure> {
    let mut options = session.reorg_options()?;
    (options.predicate, options.predicate_text) = predicate(session, &args.scope)?;
    options.limits.dry_run |= args.scope.dry_run;
    options.limits.plan_out.clone_from(&args.scope.plan_out);
    Ok(options)
}

/// Options of `vacuum`.
pub(crate) fn of_vacuum(session: &Session, args: VacuumArgs) -> Result<VacuumOptions, Failure> {
    let mut options = session.vacuum_options()?;
    options.dry_run |= args.dry_run;
    options.plan_out = args.plan_out;
    options.no_writers |= args.no_writers;
    options.retention_check &= !args.no_retention_check;
    options.retain_ms = args.retain.or(options.retain_ms);
    options.inventory = args.inventory.map(|location| Inventory { location, format: None });
    options.condemn_ms = args.condemn;
    options.pardon = args.pardon;
    options.user_metadata = args.user_metadata.or(options.user_metadata);
    if args.lite {
        options.mode = VacuumMode::Lite;
    }
    Ok(options)
}

/// Options of `restore`.
pub(crate) fn of_restore(session: &Session, args: RestoreArgs) -> Result<RestoreOptions, Failure> {
    let mut options = session.restore_options()?;
    options.to = args.to();
    options.dry_run = args.dry_run;
    options.reset_transactions |= args.reset_transactions;
    options.user_metadata = args.user_metadata.or(options.user_metadata);
    Ok(options)
}

/// Options of `fsck`.
pub(crate) fn of_fsck(args: &FsckArgs) -> FsckOptions {
    let mut options = FsckOptions::default();
    match args.stats {
        Some(StatsArg::Footers) => options.statistics = StatisticsCheck::Footers,
        Some(StatsArg::Data) => options.statistics = StatisticsCheck::Data,
        None => {}
    }
    if let Some(bytes) = args.memory {
        options.memory_bytes = bytes;
    }
    if let Some(threads) = args.threads.and_then(|n| usize::try_from(n).ok()) {
        options.threads = threads;
    }
    options
}

fn predicate(session: &Session, scope: &ScopeArgs) -> Result<(Option<Expr>, Option<String>), Failure> {
    let parse = |text: &str| session.parse_predicate(text).map_err(|error| Failure::in_sql(error, text));
    let parsed = scope.predicate.as_deref().map(parse).transpose()?;
    Ok((parsed, scope.predicate.clone()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Verb};

    fn settings(args: &[&str]) -> [BTreeMap<String, String>; 2] {
        let cli = Cli::try_parse_from([&["lakesmith", "optimize", "t"], args].concat()).unwrap();
        let Verb::Optimize(optimize) = cli.verb else { panic!("not optimize") };
        [of_session(&cli.shared), fixed(&cli.shared, Some(&optimize.tuning))]
    }

    #[test]
    fn flags_are_fixed_and_absent_flags_say_nothing() {
        assert_eq!(settings(&[]), [BTreeMap::new(), BTreeMap::new()]);
        let [set, fixed] = settings(&["--set", "lakesmith.memory=1GiB", "--memory", "20MiB", "--commit-timeout", "2s"]);
        assert_eq!(set["lakesmith.memory"], "1GiB");
        assert_eq!(
            (fixed["lakesmith.memory"].as_str(), fixed["lakesmith.commitTimeout"].as_str()),
            ("20971520", "2000ms")
        );
        assert_eq!((set.len(), fixed.len()), (1, 2));
        let [set, fixed] = settings(&["--warehouse", "/lake"]);
        assert_eq!((set.len(), fixed["lakesmith.warehouse"].as_str()), (0, "/lake"));
    }

    #[test]
    fn every_flag_stands_for_a_setting_that_exists() {
        let known: Vec<_> = lakesmith::settings_reference().into_iter().map(|s| s.key).collect();
        let cli = Cli::try_parse_from(["lakesmith", "optimize", "t"]).unwrap();
        let Verb::Optimize(optimize) = cli.verb else { panic!("not optimize") };
        for (id, key, _) in flags(&optimize.tuning) {
            assert!(known.contains(&key), "{key}");
            assert_eq!(key_of_flag(id), Some(key));
        }
    }
}
