//! Flags to session settings and operation options: a flag only ever overrides what the library chose.

use std::collections::BTreeMap;

use lakesmith::Session;
use lakesmith::op::{OptimizeOptions, ReorgOptions, RewriteLimits};
use lakesmith::predicate::Expr;

use crate::args::{OptimizeArgs, ReorgArgs, ResourceArgs, RewriteArgs, Shared};
use crate::exit::Failure;

/// Settings that a session starts with: `--set`, overridden by the flags that have a setting of their own.
pub(crate) fn of_session(shared: &Shared, resources: Option<&ResourceArgs>) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = shared.set.iter().cloned().collect();
    if let Some(resources) = resources {
        let flags = [
            ("lakesmith.memory", resources.memory.map(|v| v.to_string())),
            ("lakesmith.threads", resources.threads.map(|v| v.to_string())),
        ];
        settings.extend(flags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    settings
}

/// Options of `optimize`.
pub(crate) fn of_optimize(session: &Session, args: OptimizeArgs) -> Result<OptimizeOptions, Failure> {
    let mut options = session.optimize_options()?;
    (options.predicate, options.predicate_text) = predicate(session, &args.rewrite)?;
    set(&mut options.sizes.target_bytes, args.rewrite.target_size);
    options.force |= args.force;
    options.full |= args.full;
    set(&mut options.zorder_by, args.zorder_by.map(|columns| columns.0));
    limit(&mut options.limits, args.rewrite);
    Ok(options)
}

/// Options of `reorg`.
pub(crate) fn of_reorg(session: &Session, args: ReorgArgs) -> Result<ReorgOptions, Failure> {
    let mut options = session.reorg_options()?;
    (options.predicate, options.predicate_text) = predicate(session, &args.rewrite)?;
    set(&mut options.sizes.target_bytes, args.rewrite.target_size);
    limit(&mut options.limits, args.rewrite);
    Ok(options)
}

fn predicate(session: &Session, args: &RewriteArgs) -> Result<(Option<Expr>, Option<String>), Failure> {
    let parse = |text: &str| session.parse_predicate(text).map_err(|error| Failure::in_sql(error, text));
    let parsed = args.predicate.as_deref().map(parse).transpose()?;
    Ok((parsed, args.predicate.clone()))
}

fn limit(limits: &mut RewriteLimits, args: RewriteArgs) {
    set(&mut limits.memory_bytes, args.resources.memory);
    set(&mut limits.threads, args.resources.threads);
    set(&mut limits.commit_timeout_ms, args.commit_timeout);
    set(&mut limits.row_group_rows, args.row_group_rows);
    limits.commit_every_bytes = args.commit_every.or(limits.commit_every_bytes);
    limits.max_rows_per_file = args.max_rows_per_file.or(limits.max_rows_per_file);
    limits.compression = args.compression.or(limits.compression.take());
    limits.user_metadata = args.user_metadata.or(limits.user_metadata.take());
    limits.verify |= args.verify;
    limits.dry_run |= args.dry_run;
}

fn set<T>(slot: &mut T, flag: Option<T>) {
    if let Some(value) = flag {
        *slot = value;
    }
}
