//! The one dispatch from an operation to its room.

use lakesmith_core::Result;
use lakesmith_core::op::{Operation, Report};
use lakesmith_storage::Location;

use crate::{Session, ops};

pub(crate) fn run(session: &Session, root: &Location, operation: Operation) -> Result<Report> {
    let store = session.open(root)?;
    let name = operation.name();
    let span = tracing::info_span!("operation", name, table = %root);
    let _entered = span.enter();
    match operation {
        Operation::Optimize(options) => ops::optimize::run(session, &store, root, &options),
        Operation::Reorg(options) => ops::reorg::run(session, &store, root, &options),
        Operation::Detail(at) => ops::describe::detail(session, &store, root, at),
        Operation::History(options) => ops::describe::history(session, &store, root, options),
        Operation::Files(at) => ops::describe::files(session, &store, root, at),
        Operation::ShowProperties(key) => ops::properties::show(session, &store, root, key.as_deref()),
        Operation::AlterProperties(options) => ops::properties::alter(session, &store, root, &options),
        Operation::Checkpoint(options) => ops::checkpoint::run(session, &store, root, options),
    }
}
