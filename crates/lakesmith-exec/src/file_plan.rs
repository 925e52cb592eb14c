//! How the columns of one file become the columns of the outputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use lakesmith_core::table::{InputFile, RewriteTask};
use lakesmith_core::{Error, Result};

use crate::adapt::{self, ColumnPlan};
use crate::calendar;
use crate::constants;
use crate::failure::{does_not_fit, in_file};
use crate::file_read::{Group, OpenFile};
use crate::merge::{self, Codec, InputChunk, Leaf};
use crate::output::OutputPlan;
use crate::target::Target;
use crate::tracking::{Positions, TrackingPlan};

/// How the batches of one file become output batches.
pub(crate) struct FilePlan {
    columns: Vec<ColumnPlan>,
    tracking: Option<TrackingPlan>,
    /// For each root column of the outputs, how its pages can be merged.
    pairs: Vec<Option<Pair>>,
    /// Leaves of the outputs that have bloom filters in the file.
    pub filtered: BTreeSet<Vec<String>>,
    legacy: bool,
    path: String,
}

/// A root column whose pages fit the output's as they are.
struct Pair {
    /// First leaf in the file.
    first_leaf: usize,
    leaves: Vec<Leaf>,
}

impl FilePlan {
    /// Plans the columns of the outputs over a file.
    ///
    /// # Errors
    /// Unsupported where a type cannot be widened, Corrupt where the file contradicts the log; both name the file.
    pub(crate) fn new(
        task: &RewriteTask,
        target: &Target,
        output: &OutputPlan,
        input: &InputFile,
        file: &OpenFile,
    ) -> Result<Self> {
        let data_fields = &target.schema.fields()[..target.data.len()];
        let columns = adapt::plan(&target.data, data_fields, file.fields(), task.read.match_by_id)
            .map_err(|e| e.with("path", &input.location))?;
        let tracking = match &task.write.row_tracking {
            Some(columns) => Some(TrackingPlan::new(columns, file.fields(), input)?),
            None => None,
        };
        let legacy = calendar::is_legacy(file.footer.metadata.file_metadata());
        // Dates of such files are looked at one by one.
        let pairs = if legacy { Vec::new() } else { pairs(&columns, output, file) };
        let filtered = filtered(&columns, output, file);
        Ok(Self { columns, tracking, pairs, filtered, legacy, path: input.location.clone() })
    }

    /// Root columns of the file that those columns of the outputs need that are `wanted`.
    pub(crate) fn roots(&self, wanted: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let tracking = self.tracking.iter().flat_map(|t| [t.row_id, t.commit_version]).flatten();
        let data = self.columns.iter().enumerate().filter(|(root, _)| wanted(*root)).filter_map(|(_, c)| c.source);
        data.chain(tracking).collect()
    }

    /// True if any column of the outputs may be merged from this file.
    pub(crate) fn merges(&self) -> bool {
        self.pairs.iter().any(Option::is_some)
    }

    /// The chunks of a row group from which a root column of the outputs can be merged, if all together are at most `limit`
    /// bytes.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn chunks(
        &self,
        root: usize,
        file: &OpenFile,
        group: &Group,
        limit: u64,
    ) -> Result<Option<Vec<InputChunk>>> {
        let Some(pair) = self.pairs.get(root).and_then(Option::as_ref) else { return Ok(None) };
        let metadata = file.footer.metadata.row_group(group.index);
        let limit = limit / pair.leaves.len().max(1) as u64;
        let mut chunks = Vec::with_capacity(pair.leaves.len());
        for (i, leaf) in pair.leaves.iter().enumerate() {
            let column = metadata.column(pair.first_leaf + i);
            let usual = u64::try_from(column.num_values()) == Ok(group.rows)
                && column.file_path().is_none()
                && column.byte_range().1 <= limit
                && u64::try_from(column.uncompressed_size()).is_ok_and(|bytes| bytes <= limit);
            let Some(codec) = Codec::of(column.compression_codec()).filter(|_| usual) else { return Ok(None) };
            chunks.push(InputChunk { bytes: group.chunk(file, pair.first_leaf + i)?, codec, leaf: leaf.clone() });
        }
        Ok(Some(chunks))
    }

    /// Those columns of the outputs that are `wanted`, for a batch of the file's columns `roots`.
    ///
    /// # Errors
    /// Unsupported, Corrupt or Internal, naming the file and the column.
    pub(crate) fn adapt(
        &self,
        task: &RewriteTask,
        target: &Target,
        batch: &RecordBatch,
        roots: &[usize],
        positions: Positions<'_>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<RecordBatch> {
        let column = |root: usize| -> Result<&ArrayRef> {
            roots
                .binary_search(&root)
                .ok()
                .filter(|i| *i < batch.num_columns())
                .map(|i| batch.column(i))
                .ok_or_else(|| Error::internal("a column that was asked for was not read").with("path", &self.path))
        };
        let rows = batch.num_rows();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(target.schema.fields().len());
        let mut fields: Vec<usize> = Vec::with_capacity(arrays.capacity());
        for (at, plan) in self.columns.iter().enumerate() {
            if !wanted(at) {
                continue;
            }
            let to = plan.field.data_type();
            let array = match plan.source {
                Some(root) => adapt::apply(&plan.adapt, column(root)?, to)
                    .map_err(|e| does_not_fit(e, &self.path).with("column", plan.field.name()))?,
                None => adapt::fill(&plan.adapt, to, rows)
                    .map_err(|e| does_not_fit(e, &self.path).with("column", plan.field.name()))?,
            };
            if self.legacy {
                calendar::check(array.as_ref(), plan.field.name(), &self.path)?;
            }
            arrays.push(array);
            fields.push(at);
        }
        for (at, index) in (self.columns.len()..).zip(&task.write.partition_indexes) {
            let value =
                task.partition.values.get(*index).ok_or_else(|| {
                    Error::internal("a partition column to be written has no value").with("index", index)
                })?;
            let Some(field) = target.schema.fields().get(at) else { break };
            arrays.push(constants::repeat(value, field.data_type(), rows)?);
            fields.push(at);
        }
        if let Some(tracking) = &self.tracking {
            let materialised =
                [tracking.row_id.map(&column).transpose()?, tracking.commit_version.map(&column).transpose()?];
            arrays.extend(tracking.columns(materialised, positions, rows)?);
            let last = target.schema.fields().len();
            fields.extend([last - 2, last - 1]);
        }
        let all = fields.len() == target.schema.fields().len();
        let schema = if all {
            Arc::clone(&target.schema)
        } else {
            Arc::new(in_file(target.schema.project(&fields), &self.path)?)
        };
        in_file(RecordBatch::try_new(schema, arrays), &self.path)
    }
}

fn pairs(columns: &[ColumnPlan], output: &OutputPlan, file: &OpenFile) -> Vec<Option<Pair>> {
    let schema = file.footer.metadata.file_metadata().schema_descr();
    let (from, to) = (schema.root_schema().get_fields(), output.stored.root_schema().get_fields());
    let pair = |(root, plan): (usize, &ColumnPlan)| {
        let source = plan.source?;
        let first_leaf = (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == source)?;
        let columns = output.roots.get(root)?.columns.as_ref()?;
        let leaves = merge::pair(&plan.adapt, from.get(source)?, to.get(root)?, columns)?;
        Some(Pair { first_leaf, leaves })
    };
    columns.iter().enumerate().map(pair).collect()
}

/// Leaves of the outputs that have bloom filters in a file. Where a nested one goes by another name, all of its root
/// column's count as filtered: a filter too many does no harm.
fn filtered(columns: &[ColumnPlan], output: &OutputPlan, file: &OpenFile) -> BTreeSet<Vec<String>> {
    let metadata = &file.footer.metadata;
    let schema = metadata.file_metadata().schema_descr();
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns().iter().enumerate());
    let leaves: BTreeSet<usize> =
        chunks.filter(|(_, chunk)| chunk.bloom_filter_offset().is_some()).map(|(leaf, _)| leaf).collect();
    let mut found = BTreeSet::new();
    for leaf in leaves {
        let source = Some(schema.get_column_root_idx(leaf));
        for root in (0..columns.len()).filter(|root| columns[*root].source == source) {
            let of_root = (0..output.stored.num_columns()).filter(|to| output.stored.get_column_root_idx(*to) == root);
            let paths: Vec<_> = of_root.map(|to| output.stored.column(to).path().parts().to_vec()).collect();
            let column = schema.column(leaf);
            let same = paths.iter().find(|path| path[1..] == column.path().parts()[1..]).cloned();
            found.extend(same.map_or(paths, |path| vec![path]));
        }
    }
    found
}
