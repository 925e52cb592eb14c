//! One row group of an output, root column by root column: encoded from arrays or merged from pages.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use lakesmith_core::{Error, Result};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type};

use crate::merge::{Codec, Column, InputChunk, MergedRoot, PAGE_ROWS, Packer};
use crate::skipping;
use crate::stats::StatsCollector;

/// Rows that wait between merged chunks at most.
const SEGMENT_ROWS: usize = 10 * PAGE_ROWS;

/// A root column of the outputs.
#[derive(Debug, Clone)]
pub(crate) struct RootLayout {
    /// As arrays have it.
    pub field: FieldRef,
    /// Its leaves among those of the schema.
    leaves: Range<usize>,
    /// Its leaves, if pages can be merged into them.
    pub columns: Option<Vec<Arc<Column>>>,
}

/// The root columns of an output's schema, as they are in memory, as they are declared and as they are stored.
pub(crate) fn layout(schema: &SchemaRef, declared: &SchemaRef, stored: &SchemaDescriptor) -> Vec<RootLayout> {
    let mut from = 0;
    schema
        .fields()
        .iter()
        .enumerate()
        .map(|(root, field)| {
            let count =
                (from..stored.num_columns()).take_while(|leaf| stored.get_column_root_idx(*leaf) == root).count();
            let leaves = from..from + count;
            from = leaves.end;
            // Strings that may be no text are looked at one by one.
            let as_declared = declared.fields()[root].data_type() == field.data_type();
            let columns = as_declared.then(|| Column::of_root(field, &stored.columns()[leaves.clone()])).flatten();
            RootLayout { field: Arc::clone(field), leaves, columns }
        })
        .collect()
}

/// What all row groups of an output share.
pub(crate) struct GroupContext<'a> {
    /// Root columns.
    pub roots: &'a [RootLayout],
    /// The schema as stored.
    pub stored: &'a SchemaDescriptor,
    /// Of the encoders.
    pub properties: &'a WriterProperties,
    /// Leaves of which the inputs did not tell whether a dictionary pays.
    pub untold: &'a HashSet<ColumnPath>,
    /// Inputs are so small that values which are encoded may be merged then.
    pub small_inputs: bool,
    /// Makes encoders.
    pub factory: &'a ArrowRowGroupWriterFactory,
    /// Bytes that merging one chunk may take.
    pub merge_bytes: usize,
    /// Bytes that the chunks of one root column may hold while it is open how they are encoded.
    pub trial_bytes: usize,
}

enum Root {
    Empty,
    /// A writer and whether NaN came, for each leaf.
    Encoding(Vec<ArrowColumnWriter>, Vec<bool>),
    /// Rows that cannot be merged wait in a file of their own, whose pages then are.
    Merging(MergedRoot, Option<Box<ArrowWriter<Vec<u8>>>>),
}

/// A row group that grows.
pub(crate) struct RowGroup {
    roots: Vec<Root>,
    /// Encoders of roots that were not needed yet.
    spare: Vec<Option<ArrowColumnWriter>>,
    /// Rows that are complete in all columns.
    pub rows: u64,
}

impl RowGroup {
    /// An empty row group of so many root columns.
    pub(crate) fn new(roots: usize) -> Self {
        Self { roots: (0..roots).map(|_| Root::Empty).collect(), spare: Vec::new(), rows: 0 }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let held = |root: &Root| match root {
            Root::Empty => 0,
            Root::Encoding(writers, _) => writers.iter().map(ArrowColumnWriter::memory_size).sum(),
            Root::Merging(merged, segment) => {
                merged.memory() + segment.as_ref().map_or(0, |s| s.memory_size() + s.inner().len())
            }
        };
        let spare: usize = self.spare.iter().flatten().map(ArrowColumnWriter::memory_size).sum();
        spare + self.roots.iter().map(held).sum::<usize>()
    }

    /// Has merged chunks wait no longer for more values before it is decided how they are encoded.
    ///
    /// # Errors
    /// Internal if pages cannot be written.
    pub(crate) fn end_trials(&mut self, context: &GroupContext<'_>, packer: &mut Packer) -> Result<()> {
        self.roots.iter_mut().try_for_each(|root| match root {
            Root::Merging(merged, segment) if merged.is_on_trial() => {
                // What waits was begun with a dictionary: it belongs to the trial.
                take_segment(merged, segment, context.merge_bytes, packer)?;
                merged.end_trials(packer)
            }
            Root::Empty | Root::Encoding(..) | Root::Merging(..) => Ok(()),
        })
    }

    /// True if what a root column holds is told when the row group is closed.
    pub(crate) fn is_merging(&self, root: usize) -> bool {
        matches!(self.roots[root], Root::Merging(..))
    }

    /// Encodes values of a root column. Encoders need to be told whether a dictionary pays: where small inputs did not tell,
    /// the values are merged as if they came in pages.
    ///
    /// # Errors
    /// Those of the encoder; internal if pages cannot be written.
    pub(crate) fn encode(
        &mut self,
        root: usize,
        array: &ArrayRef,
        context: &GroupContext<'_>,
        packer: Option<&mut Packer>,
        failed: &dyn Fn(ParquetError) -> Error,
    ) -> Result<()> {
        let layout = &context.roots[root];
        let is_untold = |column: &Arc<Column>| context.untold.contains(column.descriptor.path());
        let untold = layout.columns.as_ref().filter(|columns| columns.iter().any(is_untold));
        let untold = untold.filter(|_| packer.is_some() && context.small_inputs);
        if let (Root::Empty, Some(columns)) = (&self.roots[root], untold) {
            self.begin_merging(root, MergedRoot::new(columns, context.properties, context.untold)?, context);
        }
        match (&mut self.roots[root], packer) {
            (Root::Merging(merged, segment), Some(packer)) => {
                let schema = Arc::new(Schema::new(vec![Arc::clone(&layout.field)]));
                let writer = match &mut *segment {
                    Some(writer) => writer,
                    none => none.insert(Box::new(segment_writer(root, &schema, context, merged).map_err(failed)?)),
                };
                let batch = RecordBatch::try_new(schema, vec![Arc::clone(array)]).map_err(|e| failed(e.into()))?;
                writer.write(&batch).map_err(failed)?;
                // Rows that wait are unpacked at once.
                let rows = if merged.is_on_trial() { PAGE_ROWS } else { SEGMENT_ROWS };
                if writer.in_progress_rows() >= rows || writer.in_progress_size() >= context.merge_bytes {
                    take_segment(merged, segment, context.merge_bytes, packer)?;
                    merged.bound_trials(context.trial_bytes, packer)?;
                }
                Ok(())
            }
            _ => self.encode_array(root, array, context).map_err(failed),
        }
    }

    fn begin_merging(&mut self, root: usize, merged: MergedRoot, context: &GroupContext<'_>) {
        self.roots[root] = Root::Merging(merged, None);
        if let Some(spare) = self.spare.get_mut(context.roots[root].leaves.clone()) {
            spare.fill_with(|| None);
        }
    }

    fn encode_array(&mut self, root: usize, array: &ArrayRef, context: &GroupContext<'_>) -> Result<(), ParquetError> {
        let layout = &context.roots[root];
        if let Root::Empty = self.roots[root] {
            if self.spare.is_empty() {
                self.spare = context.factory.create_column_writers(0)?.into_iter().map(Some).collect();
                for merging in (0..self.roots.len()).filter(|root| matches!(self.roots[*root], Root::Merging(..))) {
                    self.spare[context.roots[merging].leaves.clone()].fill_with(|| None);
                }
            }
            let writers: Vec<_> = self.spare[layout.leaves.clone()].iter_mut().filter_map(Option::take).collect();
            let nan = vec![false; writers.len()];
            self.roots[root] = Root::Encoding(writers, nan);
        }
        match &mut self.roots[root] {
            Root::Empty | Root::Merging(..) => Err(ParquetError::General("a column without its encoders".to_owned())),
            Root::Encoding(writers, nan) => {
                skipping::note_nan(array.as_ref(), &mut nan.iter_mut());
                let mut writers = writers.iter_mut();
                for leaf in compute_leaves(&layout.field, array)? {
                    let missing = || ParquetError::General("a leaf without its encoder".to_owned());
                    writers.next().ok_or_else(missing)?.write(&leaf)?;
                }
                Ok(())
            }
        }
    }

    /// Merges chunks of an input, one for each leaf of a root column; false, and nothing is changed, if that cannot be.
    ///
    /// # Errors
    /// Internal if pages cannot be written.
    pub(crate) fn merge(
        &mut self,
        root: usize,
        inputs: &[InputChunk],
        rows: usize,
        context: &GroupContext<'_>,
        packer: &mut Packer,
    ) -> Result<bool> {
        let Some(columns) = &context.roots[root].columns else { return Ok(false) };
        if let Root::Empty = self.roots[root] {
            let mut fresh = MergedRoot::new(columns, context.properties, context.untold)?;
            let merged = fresh.append(inputs, rows, context.merge_bytes, packer)?;
            if merged {
                fresh.bound_trials(context.trial_bytes, packer)?;
                self.begin_merging(root, fresh, context);
            }
            return Ok(merged);
        }
        match &mut self.roots[root] {
            Root::Merging(merged, segment) => {
                take_segment(merged, segment, context.merge_bytes, packer)?;
                let taken = merged.append(inputs, rows, context.merge_bytes, packer)?;
                merged.bound_trials(context.trial_bytes, packer)?;
                Ok(taken)
            }
            Root::Empty | Root::Encoding(..) => Ok(false),
        }
    }

    /// Writes the row group to the file.
    ///
    /// # Errors
    /// Internal if columns have different numbers of rows or cannot be written; those of the sink.
    pub(crate) fn close<W: std::io::Write + Send>(
        self,
        file: &mut SerializedFileWriter<W>,
        context: &GroupContext<'_>,
        mut packer: Option<&mut Packer>,
        stats: &mut StatsCollector,
        failed: &dyn Fn(ParquetError) -> Error,
    ) -> Result<()> {
        let mut group = file.next_row_group().map_err(failed)?;
        for root in self.roots {
            match (root, &mut packer) {
                (Root::Encoding(writers, nan), _) => {
                    for (writer, nan) in writers.into_iter().zip(nan) {
                        let mut chunk = writer.close().map_err(failed)?;
                        skipping::hide_nothing(chunk.close_mut(), nan).map_err(failed)?;
                        chunk.append_to_row_group(&mut group).map_err(failed)?;
                    }
                }
                (Root::Merging(mut merged, mut segment), Some(packer)) => {
                    take_segment(&mut merged, &mut segment, context.merge_bytes, packer)?;
                    let compression = context.properties.compression(&ColumnPath::new(Vec::new()));
                    for known in merged.close(compression, packer, &mut group, failed)? {
                        stats.observe_known(&known.path, known.nulls, known.bounds);
                    }
                }
                _ => return Err(Error::internal("a column of a row group got no values; please report this")),
            }
        }
        group.close().map_err(failed)?;
        Ok(())
    }
}

fn segment_writer(
    root: usize,
    schema: &SchemaRef,
    context: &GroupContext<'_>,
    merged: &MergedRoot,
) -> Result<ArrowWriter<Vec<u8>>, ParquetError> {
    let mut properties = context.properties.clone().into_builder();
    for (path, takes_ids) in merged.leaves() {
        // A bloom filter is made from the merged values.
        properties = properties.set_column_bloom_filter_enabled(path.clone(), false);
        properties = properties.set_column_dictionary_enabled(path.clone(), takes_ids);
    }
    let stored = Arc::clone(&context.stored.root_schema().get_fields()[root]);
    let stored = Type::group_type_builder("schema").with_fields(vec![stored]).build()?;
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(SchemaDescriptor::new(Arc::new(stored)));
    ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(schema), options)
}

/// Moves rows that wait into the merged chunks.
fn take_segment(
    merged: &mut MergedRoot,
    segment: &mut Option<Box<ArrowWriter<Vec<u8>>>>,
    limit: usize,
    packer: &mut Packer,
) -> Result<()> {
    let Some(writer) = segment.take() else { return Ok(()) };
    let failed = |e: ParquetError| Error::internal("rows between merged pages cannot be written").caused_by(e);
    let bytes = Bytes::from(writer.into_inner().map_err(failed)?);
    let metadata: ParquetMetaData = ParquetMetaDataReader::new().parse_and_finish(&bytes).map_err(failed)?;
    for group in metadata.row_groups() {
        let chunks = group.columns().iter().map(|column| {
            let (start, length) = column.byte_range();
            let codec = Codec::of(column.compression_codec())?;
            Some((bytes.slice(start as usize..(start + length) as usize), codec))
        });
        let chunks = chunks
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::internal("rows between merged pages have a codec that cannot be merged"))?;
        merged.append_own(&chunks, group.num_rows() as usize, limit, packer)?;
    }
    Ok(())
}
