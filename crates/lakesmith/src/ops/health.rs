//! The health check: survey, judge, report.

use lakesmith_core::health::{KeyOverlap, diagnose};
use lakesmith_core::layout::Curve;
use lakesmith_core::op::{HealthOptions, Report, TimeTravel};
use lakesmith_core::plan::{self, KeyLayouts};
use lakesmith_core::table::TableState;
use lakesmith_core::{ErrorKind, Result};
use lakesmith_storage::{Location, Store};

use super::load;
use crate::Session;
use crate::catalog::Target;
use crate::format::{Format, Opened};

pub(crate) fn run(session: &Session, store: &Store, target: &Target, options: &HealthOptions) -> Result<Report> {
    match session.format(target)? {
        Format::Delta => of_log(session, store, &target.root, options),
        Format::Iceberg => of_snapshots(session, store, target, options),
    }
}

fn of_log(session: &Session, store: &Store, root: &Location, options: &HealthOptions) -> Result<Report> {
    let now_ms = session.options.world.now_ms();
    let mut survey = session.runtime.block_on(lakesmith_delta::survey(store, root, options, now_ms))?;
    let state = &survey.table.state;
    let few = survey.facts.files.len() as u64 <= options.overlap_files_max;
    if few || options.deep {
        // A table that cannot be read in full is told what ails it all the same.
        survey.facts.layout = match overlaps(session, store, root, state) {
            Ok(layout) => layout,
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the overlap of files was not looked at");
                Vec::new()
            }
        };
    }
    Ok(Report::Health(Box::new(diagnose(&survey.table.state, survey.facts, options, now_ms))))
}

/// The overlap in each clustering key; the log is read again for it, but only if there are keys.
fn overlaps(session: &Session, store: &Store, root: &Location, state: &TableState) -> Result<Vec<KeyOverlap>> {
    let keys = plan::cluster::keys(state)?;
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let table = load(session, store, root, TimeTravel::Version(state.version), true)?;
    let bounds = session.runtime.block_on(lakesmith_delta::key_bounds(store, root, &table, &keys))?;
    let prefix_chars = lakesmith_delta::string_prefix(&table);
    let layouts = KeyLayouts::new(&table.state, None, &keys, &bounds, prefix_chars)?;
    let found = layouts.before(Curve::Hilbert, &lakesmith_delta::stats_leaves(&table));
    let overlap = |key: lakesmith_core::op::optimize::KeyLayout| KeyOverlap {
        column: key.column,
        files: key.files,
        depth: key.depth_before,
        advice: key.advice,
    };
    Ok(found.into_iter().map(overlap).collect())
}

fn of_snapshots(session: &Session, store: &Store, target: &Target, options: &HealthOptions) -> Result<Report> {
    let opened = Opened::open(session, store, target, options.at.clone(), true)?;
    let now_ms = session.options.world.now_ms();
    let mut facts = opened.health_facts(options.sizes.target_bytes, now_ms);
    facts.read_only = true;
    Ok(Report::Health(Box::new(diagnose(opened.state(), facts, options, now_ms))))
}
