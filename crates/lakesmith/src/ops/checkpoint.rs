//! Writes a checkpoint of the newest version.

use lakesmith_core::Result;
use lakesmith_core::op::{Report, TimeTravel};
use lakesmith_storage::{Location, Store};

use super::load;
use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location) -> Result<Report> {
    let table = load(session, store, root, TimeTravel::Latest, false)?;
    lakesmith_delta::check_writable(&table)?;
    let version = table.state.version;
    session.runtime.block_on(lakesmith_delta::write_checkpoint(store, root, version))?;
    Ok(Report::Done { version })
}
