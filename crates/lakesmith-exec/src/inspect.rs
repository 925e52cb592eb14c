//! What a data file holds, to be compared with what a log says of it: by its footer, or by every row.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array as _, ArrayRef, RecordBatch};
use lakesmith_core::table::{InputFile, LeafStats, ReadSpec, Scalar, Schema, WriteSpec};
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as PhysicalType;

use crate::adapt::{self, ColumnPlan};
use crate::calendar;
use crate::control::RewriteControl;
use crate::deletes::Deletes;
use crate::failure::{in_file, is_not_text, read_error};
use crate::file_read::{FileReader, OpenFile};
use crate::footer;
use crate::rewrite::keep_live;
use crate::source::FileHandle;
use crate::stats::{StatsCollector, bounds};
use crate::target::{Strings, Target};
use crate::vector;

/// First read of a footer.
const TAIL_BYTES: u64 = 64 << 10;

/// How closely files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// By their footers.
    Footers,
    /// Row by row.
    Rows,
}

/// What a data file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// Physical rows, deleted ones included.
    pub rows: u64,
    /// Rows that are not deleted, if rows were read.
    pub live_rows: Option<u64>,
    /// What is known of the leaves that were asked for: over the live rows, or over all of them by the footer, which
    /// knows less. A count of nulls that is not known is `u64::MAX`.
    pub leaves: Vec<LeafStats>,
}

/// What is asked of every file.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// How to read.
    pub read: Arc<ReadSpec>,
    /// Physical paths of the leaves to look at.
    pub leaves: Vec<Vec<String>>,
    /// How closely.
    pub depth: Depth,
}

/// Inspects `count` files, several at once, and hands each result to `each`. A file that can't be read is a result; the
/// calling thread must not be one of the runtime's.
///
/// # Errors
/// Those of `input`, Cancelled, and Unavailable from the storage.
pub fn inspect_files(
    store: &Store,
    inspection: &Inspection,
    count: usize,
    input: &(dyn Fn(usize) -> Result<InputFile> + Sync),
    control: &RewriteControl,
    each: &(dyn Fn(usize, Result<Inspected>) + Sync),
) -> Result<()> {
    let threads = control.threads.clamp(1, count.max(1));
    let deletes_bytes = control.memory_bytes / 4;
    let memory_bytes = (control.memory_bytes - deletes_bytes) / threads as u64;
    let deletes = Deletes::new(store.clone(), control.runtime.clone(), control.cancel.clone(), deletes_bytes);
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            control.cancel.check()?;
            let file = input(index)?;
            match inspect((store, &deletes), inspection, &file, memory_bytes, control) {
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Cancelled) => {
                    // The others need not go on for nothing.
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
                result => each(index, result),
            }
            control.progress.advance(file.size, 0);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(Error::internal("looking at a data file failed unexpectedly")))
        });
        ended.fold(Ok(()), Result::and)
    })
}

fn inspect(
    store: (&Store, &Deletes),
    inspection: &Inspection,
    input: &InputFile,
    memory_bytes: u64,
    control: &RewriteControl,
) -> Result<Inspected> {
    let looked = |strings| Look::at(store, inspection, input, control, strings)?.look(inspection.depth, memory_bytes);
    match looked(Strings::Text) {
        Err(error) if is_not_text(&error) => looked(Strings::Bytes),
        other => other,
    }
}

/// One file that is looked at.
struct Look<'a> {
    store: &'a Store,
    deletes: &'a Deletes,
    read: &'a ReadSpec,
    input: &'a InputFile,
    control: &'a RewriteControl,
    file: OpenFile,
    target: Target,
    columns: Vec<ColumnPlan>,
    leaves: &'a [Vec<String>],
    legacy: bool,
}

impl<'a> Look<'a> {
    fn at(
        (store, deletes): (&'a Store, &'a Deletes),
        inspection: &'a Inspection,
        input: &'a InputFile,
        control: &'a RewriteControl,
        strings: Strings,
    ) -> Result<Self> {
        let location = Location::from_canonical(&input.location)?;
        let footer = control.runtime.block_on(footer::read(store, &location, input.size, TAIL_BYTES))?;
        let handle = FileHandle { store: store.clone(), location, size: input.size, runtime: control.runtime.clone() };
        let file = OpenFile::new(Arc::new(handle), footer, strings)?;
        // Only columns with a leaf that is asked for are read.
        let asked = |name: &str| inspection.leaves.iter().any(|leaf| leaf.first().is_some_and(|first| first == name));
        let fields = inspection.read.schema.fields.iter().filter(|f| asked(&f.physical)).cloned().collect();
        let read = ReadSpec { schema: Schema { fields }, match_by_id: inspection.read.match_by_id };
        let target = match read.schema.fields.is_empty() {
            true => Target::empty(),
            false => Target::new(&read, &nothing_written(), false, strings)?,
        };
        let columns = adapt::plan(&target.data, target.schema.fields(), file.fields(), read.match_by_id)
            .map_err(|e| e.with("path", &input.location))?;
        let legacy = calendar::is_legacy(file.footer.metadata.file_metadata());
        let read = &inspection.read;
        Ok(Self { store, deletes, read, input, control, file, target, columns, leaves: &inspection.leaves, legacy })
    }

    fn look(&self, depth: Depth, memory_bytes: u64) -> Result<Inspected> {
        let rows = self.file.footer.rows();
        let (live_rows, mut leaves) = match depth {
            Depth::Footers => (None, self.footer_leaves()?),
            Depth::Rows => {
                let (live, leaves) = self.row_leaves(rows, memory_bytes)?;
                (Some(live), leaves)
            }
        };
        if self.legacy {
            // Days of the old calendar are other days of ours.
            for leaf in &mut leaves {
                let dated = |s: &Scalar| matches!(s, Scalar::Date(_) | Scalar::Timestamp(_) | Scalar::TimestampNtz(_));
                if leaf.min.as_ref().is_some_and(dated) {
                    (leaf.min, leaf.max) = (None, None);
                }
            }
        }
        Ok(Inspected { rows, live_rows, leaves })
    }

    fn row_leaves(&self, rows: u64, memory_bytes: u64) -> Result<(u64, Vec<LeafStats>)> {
        let deleted = match &self.input.deletes {
            Some(info) => {
                Some(self.control.runtime.block_on(vector::load(self.store, info, rows, &self.input.location))?)
            }
            None => None,
        };
        let deleted = self.deletes.with_vector(self.input, &self.file, self.read, deleted)?;
        let present = |leaf: &&Vec<String>| self.target.data.iter().any(|f| leaf.first() == Some(&f.physical));
        let leaves: Vec<Vec<String>> = self.leaves.iter().filter(present).cloned().collect();
        let mut collector = StatsCollector::new(&leaves, &self.target.schema)?;
        let roots: Vec<usize> = self.columns.iter().filter_map(|c| c.source).collect();
        let live_of_all = rows - deleted.as_ref().map_or(0, |v| v.cardinality());
        if roots.is_empty() || live_of_all == 0 {
            // Columns that a file lacks are null in every row.
            let null =
                |path: &Vec<String>| LeafStats { path: path.clone(), null_count: live_of_all, min: None, max: None };
            return Ok((live_of_all, leaves.iter().map(null).collect()));
        }
        let batch_bytes = (memory_bytes / 16).clamp(256 << 10, 16 << 20);
        let mut reader = FileReader::new(&self.file, roots.clone(), memory_bytes / 8, batch_bytes);
        let mut deleted = deleted.as_ref().map(|v| v.iter().peekable());
        let mut position = 0u64;
        while let Some(group) = reader.next_group()? {
            let mut batches = reader.decode(&group, roots.clone())?;
            while let Some(batch) = batches.next_batch()? {
                self.control.cancel.check()?;
                let read_rows = batch.num_rows() as u64;
                let batch = match &mut deleted {
                    Some(deleted) => keep_live(batch, position, deleted, &self.input.location)?.0,
                    None => batch,
                };
                position += read_rows;
                if batch.num_rows() > 0 {
                    collector.observe_batch(&self.adapted(&batch, batches.roots())?);
                }
            }
        }
        if position != rows {
            return Err(Error::corrupt(format!("the data file gave {position} rows, its footer says {rows}"))
                .with("path", &self.input.location));
        }
        let stats = collector.finish();
        Ok((stats.rows, stats.leaves))
    }

    fn adapted(&self, batch: &RecordBatch, roots: &[usize]) -> Result<RecordBatch> {
        let arrays: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|plan| {
                let to = plan.field.data_type();
                match plan.source.and_then(|root| roots.binary_search(&root).ok()) {
                    Some(i) => in_file(adapt::apply(&plan.adapt, batch.column(i), to), &self.input.location),
                    None => in_file(adapt::fill(&plan.adapt, to, batch.num_rows()), &self.input.location),
                }
            })
            .collect::<Result<_>>()?;
        in_file(RecordBatch::try_new(Arc::clone(&self.target.schema), arrays), &self.input.location)
    }

    /// What the footer knows for certain of top-level columns. Floats are left out, as writers differ about NaN.
    fn footer_leaves(&self) -> Result<Vec<LeafStats>> {
        let mut leaves = Vec::new();
        for leaf in self.leaves.iter().filter(|leaf| leaf.len() == 1) {
            let Some(plan) = self.columns.iter().find(|c| *c.field.name() == leaf[0]) else { continue };
            let Some(root) = plan.source else {
                let null_count = self.file.footer.rows();
                leaves.push(LeafStats { path: leaf.clone(), null_count, min: None, max: None });
                continue;
            };
            if let Some(stats) = self.footer_leaf(leaf, plan, root)? {
                leaves.push(stats);
            }
        }
        Ok(leaves)
    }

    fn footer_leaf(&self, leaf: &[String], plan: &ColumnPlan, root: usize) -> Result<Option<LeafStats>> {
        let metadata = &self.file.footer.metadata;
        let schema = metadata.file_metadata().schema_descr();
        let mut columns = (0..schema.num_columns()).filter(|i| schema.get_column_root_idx(*i) == root);
        let (Some(column), None) = (columns.next(), columns.next()) else { return Ok(None) };
        let certain = !matches!(
            schema.column(column).physical_type(),
            PhysicalType::FLOAT | PhysicalType::DOUBLE | PhysicalType::INT96
        );
        let failed = |e| read_error(e, &self.input.location);
        let name = self.file.fields()[root].name();
        let converter = StatisticsConverter::try_new(name, self.file.schema(), schema).map_err(failed)?;
        let groups = || metadata.row_groups().iter();
        let nulls = converter.row_group_null_counts(groups()).map_err(failed)?;
        let null_count = if nulls.null_count() == 0 { nulls.values().iter().sum() } else { u64::MAX };
        let mut stats = LeafStats { path: leaf.to_vec(), null_count, min: None, max: None };
        let whole = |exact: arrow::array::BooleanArray| exact.iter().all(|e| e == Some(true));
        let text = schema.column(column).physical_type() == PhysicalType::BYTE_ARRAY;
        let exact = !text
            || whole(converter.row_group_is_min_value_exact(groups()).map_err(failed)?)
                && whole(converter.row_group_is_max_value_exact(groups()).map_err(failed)?);
        if certain && exact && metadata.num_row_groups() > 0 {
            let adapted = |array: ArrayRef| {
                in_file(adapt::apply(&plan.adapt, &array, plan.field.data_type()), &self.input.location)
            };
            let lows = adapted(converter.row_group_mins(groups()).map_err(failed)?)?;
            let highs = adapted(converter.row_group_maxes(groups()).map_err(failed)?)?;
            stats.min = bounds(&lows, lows.nulls()).map(|(low, _)| low);
            stats.max = bounds(&highs, highs.nulls()).map(|(_, high)| high);
        }
        Ok(Some(stats))
    }
}

fn nothing_written() -> WriteSpec {
    WriteSpec {
        partition_fields: Vec::new(),
        partition_indexes: Vec::new(),
        row_tracking: None,
        stats_leaves: Vec::new(),
        max_rows_per_file: None,
        compression: None,
        row_group_rows: 1,
        row_group_bytes: 1,
    }
}
