//! Tables that describe tables, by the names that engines have for them.
//!
//! ```text
//! catalog.namespace.table.files      Spark: the word after the table's name, unless a table has that name
//! iceberg.`/path/to/table`.files
//! iceberg.`/path/to/table#files`
//! catalog.namespace."table$files"    Trino
//! ```

use lakesmith_core::op::TimeTravel;
use lakesmith_core::table::MetadataTable;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_sql::TableRef;

use crate::Session;
use crate::catalog::Target;
use crate::format::Opened;

/// Metadata tables that have the same columns in Spark and in Trino.
const SAME_IN_TRINO: [&str; 4] = ["snapshots", "history", "refs", "metadata_log_entries"];

/// What is told of a table.
struct Described {
    table: TableRef,
    kind: String,
    /// True for Trino's spelling.
    trino: bool,
}

impl Session {
    /// The table that describes another one, if that is what `table` names.
    ///
    /// # Errors
    /// Those of loading the other table.
    pub fn metadata_table(&self, table: &TableRef, at: &TimeTravel) -> Result<Option<MetadataTable>> {
        let Some(described) = described(table) else { return Ok(None) };
        if !described.trino && matches!(table, TableRef::Name(_)) && self.target(table).is_ok() {
            return Ok(None);
        }
        if described.trino && !SAME_IN_TRINO.contains(&described.kind.as_str()) {
            return Err(Error::unsupported(format!(
                "the columns that Trino gives to \"${0}\" are not known in this version; `t.{0}` gives Spark's",
                described.kind
            ))
            .class("UNSUPPORTED_FEATURE"));
        }
        // A name that means nothing else is told of as it was written.
        let Ok(target) = self.target(&described.table) else { return Ok(None) };
        match self.open_described(&target, at.clone()) {
            Ok(opened) => opened.metadata_table(self, &self.open_target(&target)?, &described.kind).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound && !described.trino => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_described(&self, target: &Target, at: TimeTravel) -> Result<Opened> {
        self.runtime.block_on(Opened::load(&self.open_target(target)?, target, at, false))
    }
}

fn described(table: &TableRef) -> Option<Described> {
    let known = |kind: &str| crate::format::iceberg_tables::is_known(kind);
    match table {
        TableRef::Path(_) => None,
        TableRef::IcebergPath(path) => {
            let (path, kind) = path.rsplit_once('#').filter(|(_, kind)| known(kind))?;
            Some(Described { table: TableRef::IcebergPath(path.to_owned()), kind: kind.to_lowercase(), trino: false })
        }
        TableRef::Name(parts) => {
            let (last, base) = parts.split_last()?;
            if let Some((name, kind)) = last.rsplit_once('$') {
                let table = TableRef::of_parts(base.iter().cloned().chain([name.to_owned()]).collect());
                return Some(Described { table, kind: kind.to_lowercase(), trino: true });
            }
            let kind = last.to_lowercase();
            (!base.is_empty() && known(&kind)).then(|| Described {
                table: TableRef::of_parts(base.to_vec()),
                kind,
                trino: false,
            })
        }
    }
}
