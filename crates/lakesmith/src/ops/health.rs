//! The health check: survey, judge, report.

use lakesmith_core::Result;
use lakesmith_core::health::diagnose;
use lakesmith_core::op::{HealthOptions, Report};
use lakesmith_storage::{Location, Store};

use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &HealthOptions) -> Result<Report> {
    let now_ms = session.options.world.now_ms();
    let survey = session.runtime.block_on(lakesmith_delta::survey(store, root, options, now_ms))?;
    Ok(Report::Health(Box::new(diagnose(&survey.table.state, survey.facts, options, now_ms))))
}
