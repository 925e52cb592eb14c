//! ALTER TABLE of columns and constraints.

use lakesmith_core::Result;
use lakesmith_core::op::{AlterTable, Report, TableChange, TimeTravel};
use lakesmith_core::table::OperationInfo;
use lakesmith_storage::{Location, Store};

use super::load;
use super::properties::commit;
use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &AlterTable) -> Result<Report> {
    // Whether a constraint holds is a question to the rows.
    let with_files = matches!(options.change, TableChange::AddConstraint { .. });
    let table = load(session, store, root, TimeTravel::Latest, with_files)?;
    lakesmith_delta::check_writable(&table)?;
    let world = session.options.world.as_ref();
    let Some(altered) = lakesmith_delta::alter_table(&table, &options.change, world)? else {
        return Ok(Report::Done { version: table.state.version });
    };
    let operation = OperationInfo {
        name: altered.operation.into(),
        parameters: altered.parameters,
        user_metadata: options.user_metadata.clone(),
    };
    commit(session, store, root, &table, altered.configuration, operation).map(|version| Report::Done { version })
}
