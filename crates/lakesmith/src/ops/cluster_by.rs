//! ALTER TABLE … CLUSTER BY.

use lakesmith_core::Result;
use lakesmith_core::op::{ClusterBy, Report, TimeTravel};
use lakesmith_core::plan::keys::reference_name;
use lakesmith_core::table::OperationInfo;
use lakesmith_delta::DeltaTable;
use lakesmith_storage::{Location, Store};

use super::properties::commit;
use super::{json_text, load};
use crate::Session;

pub(crate) fn run(session: &Session, store: &Store, root: &Location, options: &ClusterBy) -> Result<Report> {
    let table = load(session, store, root, TimeTravel::Latest, false)?;
    lakesmith_delta::check_writable(&table)?;
    let Some(changed) = lakesmith_delta::set_clustering(&table, &options.columns)? else {
        return Ok(Report::Done { version: table.state.version });
    };
    let joined = |columns: &[Vec<String>]| columns.iter().map(|c| reference_name(c)).collect::<Vec<_>>().join(",");
    // As Spark has them: the old ones in the schema's spelling, the new ones in the user's.
    let old = joined(table.state.clustering_columns.as_deref().unwrap_or_default());
    let new = joined(&options.columns);
    let operation = OperationInfo {
        name: "CLUSTER BY".into(),
        parameters: vec![
            ("oldClusteringColumns".into(), json_text(&old)),
            ("newClusteringColumns".into(), json_text(&new)),
        ],
        user_metadata: options.user_metadata.clone(),
    };
    let version = commit(session, store, root, &table, changed, operation)?;
    look_for_statistics(session, store, root, &table, &options.columns);
    Ok(Report::Done { version })
}

/// Warns of files that nothing tells apart by the new keys. The keys stand, whatever comes of it.
fn look_for_statistics(session: &Session, store: &Store, root: &Location, table: &DeltaTable, columns: &[Vec<String>]) {
    if columns.is_empty() {
        return;
    }
    let counting = lakesmith_delta::files_without_statistics(store, root, table, columns);
    match session.runtime.block_on(counting) {
        Ok(counts) => {
            for (column, files) in columns.iter().zip(counts).filter(|(_, files)| *files > 0) {
                tracing::warn!(
                    column = reference_name(column),
                    files,
                    "files lack statistics of the clustering column, so readers can't skip them until they are \
                     rewritten; OPTIMIZE … FULL does that"
                );
            }
        }
        Err(error) => tracing::warn!(%error, "could not look for files without statistics of the clustering columns"),
    }
}
