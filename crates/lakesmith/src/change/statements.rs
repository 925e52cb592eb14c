//! What INSERT and DELETE commit, and how the history tells of it.
//!
//! # Source
//! Delta Spark `DeltaOperations.Write`, `DeltaOperations.Delete`, `DeleteCommand`, `WriteIntoDelta`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::ops::json_text;
use lakesmith_core::predicate::{BinaryOp, Expr, bind_partition_predicate};
use lakesmith_core::table::{DataEdit, FileId, MarkedFile, NewFile, OperationInfo, PartitionTuple, ReadSet};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_delta::{RowRules, row_rules};
use lakesmith_storage::Location;

use super::{Changed, RowChange};

/// The files that a condition touches, as far as the partitions tell.
#[derive(Debug, Clone, Default)]
pub struct Touched {
    /// Files of which every row meets the condition; `None`: only the rows themselves tell.
    pub whole: Option<Vec<FileId>>,
    /// Where rows may lie that meet it.
    pub reads: ReadSet,
}

/// Which rows an INSERT replaces.
#[derive(Debug, Clone, Default)]
pub enum Replaced {
    /// None.
    #[default]
    Nothing,
    /// All.
    Everything,
    /// Those of the partitions that get rows.
    Partitions,
    /// Those of a condition, given as text: files that leave whole, and files of which some rows leave.
    Where {
        /// The condition.
        condition: String,
        /// What the partitions tell of it.
        touched: Touched,
        /// Rows, where they do not tell all.
        marked: Vec<MarkedFile>,
    },
}

impl RowChange<'_> {
    /// What the table asks of new rows.
    pub fn rules(&self) -> RowRules {
        row_rules(self.state())
    }

    /// The error for a row that breaks a rule.
    pub fn violated(&self, name: &str, sql: &str, values: &[(String, String)]) -> Error {
        let values: Vec<String> = values.iter().map(|(column, value)| format!(" - {column} : {value}")).collect();
        Error::usage(format!("CHECK constraint {name} ({sql}) violated by row with values:\n{}", values.join("\n")))
            .class("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
            .with("constraint", name)
            .with("table", &self.root)
    }

    /// The error for a value of a column that numbers its rows and takes none.
    pub fn numbers_itself(&self, place: usize) -> Error {
        let column = self.schema().fields.get(place).map_or("?", |field| field.name.as_str());
        Error::usage(format!("Providing values for GENERATED ALWAYS AS IDENTITY column {column} is not supported."))
            .class("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED")
            .with("column", column)
    }

    /// The error for a new row that a condition says is not among those that it replaces.
    pub fn not_replaced(&self, sql: &str, values: &[(String, String)]) -> Error {
        let values: Vec<String> = values.iter().map(|(column, value)| format!(" - {column} : {value}")).collect();
        Error::usage(format!(
            "Written data does not conform to partial table overwrite condition or constraint '{sql}'.\n{}",
            values.join("\n")
        ))
        .class("DELTA_REPLACE_WHERE_MISMATCH")
        .with("table", &self.root)
    }

    /// The error for a condition that asks other tables.
    pub fn no_subquery(&self, sql: &str) -> Error {
        Error::unsupported(format!("Subqueries are not supported in the DELETE (condition = {sql})."))
            .class("DELTA_UNSUPPORTED_SUBQUERY")
            .with("table", &self.root)
    }

    /// Checks that rows may leave the table.
    ///
    /// # Errors
    /// Usage (`DELTA_CANNOT_MODIFY_APPEND_ONLY`).
    pub fn check_takes_deletes(&self) -> Result<()> {
        lakesmith_delta::check_takes_deletes(&self.base).map_err(|e| e.with("table", &self.root))
    }

    /// The table's files by their paths as queries tell them (`file:///…`).
    ///
    /// # Errors
    /// Corrupt or Unsupported for a path that names no place we know.
    pub fn files_by_path(&self) -> Result<HashMap<String, FileId>> {
        let files = self.base.state.files.iter();
        files.map(|file| Ok((self.root.resolve(file.path)?.to_url().to_string(), file.id))).collect()
    }

    /// Where the table lies.
    pub fn root(&self) -> &Location {
        &self.root
    }

    /// Checks that nobody committed between `read`, the version that a statement has read, and the one that is changed.
    ///
    /// # Errors
    /// Conflict (`DELTA_CONCURRENT_APPEND`).
    pub fn check_unmoved(&self, read: Option<u64>) -> Result<()> {
        let version = self.base.state.version;
        match read {
            Some(read) if read < version => Err(Error::new(
                ErrorKind::Conflict,
                "another writer committed to the table after this statement had read it; nothing was changed; run it again",
            )
            .class("DELTA_CONCURRENT_APPEND")
            .with("table", &self.root)
            .with("version", version)),
            _ => Ok(()),
        }
    }

    /// The error for a table that another writer made meanwhile.
    pub fn made_by_another(&self) -> Error {
        Error::new(ErrorKind::Conflict, "another writer made the table meanwhile; nothing was changed; run it again")
            .class("DELTA_CONCURRENT_WRITE")
            .with("table", &self.root)
    }

    /// The error for a statement that leaves out a column which must not be null.
    pub fn left_out(&self, column: &str) -> Error {
        Error::usage(format!("Column {column} is not specified in INSERT"))
            .class("DELTA_INSERT_COLUMN_MISMATCH")
            .with("column", column)
    }

    /// The error for a text of more characters than its column takes.
    pub fn too_long(&self, column: &str, limit: u32) -> Error {
        Error::usage(format!("a value exceeds char/varchar type length limitation: {limit}"))
            .class("DELTA_EXCEED_CHAR_VARCHAR_LIMIT")
            .with("column", column)
    }

    /// The error for another number of columns than the table has.
    pub fn arity(&self, given: usize) -> Error {
        let columns = self.schema().fields.len();
        Error::usage(format!(
            "Cannot write to '{}', not {} columns; target table has {columns} column(s) but the inserted data has {given} \
             column(s)",
            self.root,
            if given < columns { "enough" } else { "so many" },
        ))
        // More columns than there are would be columns to add, which only other ways of writing may ask for.
        .class(if given > columns { "DELTA_METADATA_MISMATCH" } else { "DELTA_INSERT_COLUMN_ARITY_MISMATCH" })
    }

    /// Rows of a file, deleted ones counted.
    ///
    /// # Errors
    /// Those of reading the file, where the metadata does not tell.
    pub fn physical_rows(&self, file: FileId) -> Result<u64> {
        let data = self.base.state.files.get(file);
        match data.rows {
            Some(rows) => Ok(rows),
            None => {
                let location: Location = self.root.resolve(data.path)?;
                self.session.runtime.block_on(lakesmith_exec::count_rows(&self.store, &location, data.size))
            }
        }
    }

    /// What the partitions tell of the rows that meet a condition, given as text; none: all rows.
    ///
    /// # Errors
    /// Usage if the condition fails on a partition's values.
    pub fn touched(&self, condition: Option<&str>) -> Result<Touched> {
        let state = &self.base.state;
        let all = || state.files.iter().map(|file| file.id).collect::<Vec<_>>();
        let Some(condition) = condition else {
            return Ok(Touched { whole: Some(all()), reads: ReadSet::Everything });
        };
        // What only an engine understands is a question to the rows.
        let Ok(expr) = lakesmith_sql::parse_predicate(condition) else {
            return Ok(Touched { whole: None, reads: ReadSet::Everything });
        };
        let now_ms = self.session.options.world.now_ms();
        let bind = |expr: &Expr| bind_partition_predicate(expr, &state.schema, &state.partition_columns, now_ms).ok();
        if let Some(bound) = bind(&expr) {
            let partitions = state.files.partitions();
            let matching = partitions.iter().map(|p| bound.matches(p)).collect::<Result<Vec<bool>>>()?;
            let whole = state.files.iter().filter(|file| matching[file.partition_index as usize]).map(|f| f.id);
            return Ok(Touched { whole: Some(whole.collect()), reads: ReadSet::Matching(bound) });
        }
        let mut parts = Vec::new();
        conjuncts(&expr, &mut parts);
        let known = parts.into_iter().filter(|part| bind(part).is_some()).cloned().reduce(|left, right| Expr::Binary {
            op: BinaryOp::And,
            left: Box::new(left),
            right: Box::new(right),
        });
        let reads = known.as_ref().and_then(bind).map_or(ReadSet::Everything, ReadSet::Matching);
        Ok(Touched { whole: None, reads })
    }

    /// Commits a DELETE; returns the rows that it deleted, if that is known, and the version.
    ///
    /// # Errors
    /// As [`RowChange::commit`]; Unsupported where readers of changes could not be told of them.
    pub fn delete(
        self,
        condition: Option<&str>,
        touched: Touched,
        marked: Vec<MarkedFile>,
    ) -> Result<(Option<u64>, Changed)> {
        let started = std::time::Instant::now();
        let mut edit = DataEdit { reads: touched.reads, ..DataEdit::default() };
        self.take_out(&mut edit, touched.whole, marked)?;
        let predicate = [condition.map_or_else(|| "true".to_owned(), |text| format!("({})", text.trim()))];
        edit.operation = OperationInfo {
            name: "DELETE".into(),
            parameters: vec![("predicate".into(), json_text(&json_text(&predicate)))],
            user_metadata: None,
        };
        let spent = started.elapsed().as_millis().to_string();
        for key in ["executionTimeMs", "scanTimeMs", "rewriteTimeMs"] {
            edit.metrics.insert(key.to_owned(), spent.clone());
        }
        let nothing = edit.removed.is_empty() && edit.marked.is_empty();
        let changed = if nothing { Changed { version: None, metrics: edit.metrics } } else { self.commit(edit)? };
        let rows = changed.metrics.get("numDeletedRows").and_then(|rows| rows.parse().ok());
        Ok((rows, changed))
    }

    /// Commits an INSERT. `reads_itself`: its rows come from the table, too. Without rows and without rows to replace nothing
    /// is committed.
    ///
    /// # Errors
    /// As [`RowChange::delete`].
    pub fn insert(self, added: Vec<NewFile>, replaced: Replaced, reads_itself: bool) -> Result<Changed> {
        let mut edit = DataEdit { reads: ReadSet::Nothing, ..DataEdit::default() };
        let mut parameters = vec![("mode".to_owned(), json_text("Append"))];
        let overwrites = !matches!(replaced, Replaced::Nothing);
        if overwrites {
            parameters[0].1 = json_text("Overwrite");
        }
        // What a statement says of the layout; an INSERT cannot say anything of it.
        parameters.push(("partitionBy".to_owned(), json_text("[]")));
        match replaced {
            Replaced::Nothing if added.is_empty() => return Ok(Changed { version: None, metrics: BTreeMap::new() }),
            Replaced::Nothing => {}
            Replaced::Everything => {
                let all = self.base.state.files.iter().map(|file| file.id).collect();
                self.take_out(&mut edit, Some(all), Vec::new())?;
                edit.reads = ReadSet::Everything;
            }
            Replaced::Partitions => {
                let new: BTreeSet<PartitionTuple> = added.iter().map(|file| file.partition.clone()).collect();
                let files = &self.base.state.files;
                let taken: Vec<bool> = files.partitions().iter().map(|p| new.contains(p)).collect();
                let old =
                    files.iter().filter(|file| taken[file.partition_index as usize]).map(|file| file.id).collect();
                self.take_out(&mut edit, Some(old), Vec::new())?;
                edit.reads = ReadSet::Partitions(new);
            }
            Replaced::Where { condition, touched, marked } => {
                parameters.push(("predicate".to_owned(), json_text(condition.trim())));
                edit.reads = touched.reads;
                self.take_out(&mut edit, touched.whole, marked)?;
            }
        }
        if reads_itself {
            edit.reads = ReadSet::Everything;
        }
        if !edit.changes.is_empty() {
            // Readers of changes look at nothing else then, so the new rows would have to be told as well.
            return Err(Error::unsupported(
                "rows of a table with a change data feed are replaced by a condition on their values with deletion vectors \
                 only; enable them with ALTER TABLE … SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
            )
            .class("UNSUPPORTED_FEATURE")
            .with("table", &self.root));
        }
        let old = ["numRemovedFiles", "numRemovedBytes"].map(|key| (key, edit.metrics.remove(key)));
        edit.metrics.clear();
        if overwrites {
            edit.metrics.extend(old.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        }
        edit.added.extend(added);
        count_output(&mut edit.metrics, &edit.added);
        edit.operation = OperationInfo { name: "WRITE".into(), parameters, user_metadata: None };
        self.commit(edit)
    }

    /// Has files and rows leave by `edit`: vectors where the table takes them, else copies.
    fn take_out(&self, edit: &mut DataEdit, whole: Option<Vec<FileId>>, marked: Vec<MarkedFile>) -> Result<()> {
        let files = &self.base.state.files;
        edit.removed = whole.unwrap_or_default();
        // Files without a count make the number of rows unknown.
        let live = |id: &FileId| {
            let file = files.get(*id);
            file.rows?.checked_sub(file.deleted_rows())
        };
        let mut deleted = edit.removed.iter().map(live).sum::<Option<u64>>();
        let mut copied_rows = 0;
        let vectors = edit.removed.iter().filter(|id| files.get(**id).deletes.is_some()).count();
        if self.takes_vectors() {
            edit.marked = marked;
        } else if !marked.is_empty() {
            if self.base.state.property_is_true("delta.enableChangeDataFeed") {
                edit.changes = self.deleted_rows(&marked)?;
            }
            let copied = self.copy_without(&marked)?;
            deleted = deleted.map(|rows| rows + copied.deleted);
            copied_rows = copied.rows;
            edit.removed.extend(copied.removed);
            edit.added.extend(copied.added);
        }
        let removed_bytes: u64 = edit.removed.iter().map(|id| files.get(*id).size).sum();
        let added_bytes: u64 = edit.added.iter().map(|file| file.size).sum();
        let counted = [
            ("numRemovedFiles", edit.removed.len() as u64),
            ("numRemovedBytes", removed_bytes),
            ("numAddedFiles", edit.added.len() as u64),
            ("numAddedBytes", added_bytes),
            ("numCopiedRows", copied_rows),
            ("numAddedChangeFiles", edit.changes.len() as u64),
            ("numDeletionVectorsAdded", 0),
            ("numDeletionVectorsUpdated", 0),
            ("numDeletionVectorsRemoved", vectors as u64),
        ];
        edit.metrics.extend(counted.map(|(key, value)| (key.to_owned(), value.to_string())));
        edit.metrics.extend(deleted.map(|rows| ("numDeletedRows".to_owned(), rows.to_string())));
        Ok(())
    }

    fn takes_vectors(&self) -> bool {
        let state = &self.base.state;
        state.has_feature("deletionVectors") && state.property_is_true("delta.enableDeletionVectors")
    }
}

fn conjuncts<'a>(expr: &'a Expr, parts: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Binary { op: BinaryOp::And, left, right } => {
            conjuncts(left, parts);
            conjuncts(right, parts);
        }
        other => parts.push(other),
    }
}

/// The history's counters of new files.
pub(crate) fn count_output(metrics: &mut BTreeMap<String, String>, files: &[NewFile]) {
    let counted = [
        ("numFiles", files.len() as u64),
        ("numOutputRows", files.iter().map(|file| file.stats.rows).sum()),
        ("numOutputBytes", files.iter().map(|file| file.size).sum()),
    ];
    metrics.extend(counted.map(|(key, value)| (key.to_owned(), value.to_string())));
}
