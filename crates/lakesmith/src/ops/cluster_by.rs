//! ALTER TABLE … CLUSTER BY.

use lakesmith_core::Result;
use lakesmith_core::op::{ClusterBy, Report, TimeTravel};
use lakesmith_core::plan::keys::{attribute_name, reference_name};
use lakesmith_core::table::OperationInfo;
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
    let joined = |columns: &[Vec<String>], name: fn(&[String]) -> String| {
        columns.iter().map(|c| name(c)).collect::<Vec<_>>().join(",")
    };
    // As Spark has them: the old ones in the schema's spelling, the new ones in the user's.
    let old = joined(table.state.clustering_columns.as_deref().unwrap_or_default(), attribute_name);
    let new = joined(&options.columns, reference_name);
    let operation = OperationInfo {
        name: "CLUSTER BY".into(),
        parameters: vec![
            ("oldClusteringColumns".into(), json_text(&old)),
            ("newClusteringColumns".into(), json_text(&new)),
        ],
        user_metadata: options.user_metadata.clone(),
    };
    commit(session, store, root, &table, changed, operation).map(|version| Report::Done { version })
}
