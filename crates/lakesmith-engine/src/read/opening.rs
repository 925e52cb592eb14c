//! Opens files: first the rows that a file lost are read, then its footer; what that takes is charged until the file is
//! done, and what fails names the file.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use lakesmith::table::{DeletionVector, InputFile};
use lakesmith::{Error, Location, Table};
use lakesmith_exec::Deletes;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use super::file_reader::FileLocation;
use super::source::FilterFailure;
use crate::failure::{FILTER_FAILED, external, holds_own};

/// Runs of rows are kept for a whole file, and once more for its row groups.
const RUN_BYTES: usize = 2 * size_of::<RowSelector>();

/// The rows that a file lost.
#[derive(Debug, Clone)]
pub(crate) struct Deleted {
    /// The file, which says where they are told.
    pub file: Arc<InputFile>,
    /// Rows that the file holds.
    pub rows: u64,
}

/// What it takes to open the files of a scan.
pub(crate) struct Opening {
    pub table: Table,
    /// What delete files delete, if there are any.
    pub deletes: Option<Arc<Deletes>>,
    pub pool: Arc<dyn MemoryPool>,
    pub failure: FilterFailure,
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

impl Opening {
    /// Opens files, and has them read by `inner`.
    pub(crate) fn morselizer(opening: &Arc<Opening>, inner: Box<dyn Morselizer>) -> Box<dyn Morselizer> {
        Box::new(Opener { opening: Arc::clone(opening), inner: inner.into() })
    }

    /// Runs of the file's rows that are not deleted, and what they are charged.
    async fn live_rows(&self, deleted: &Deleted, file: &Location) -> Result<(RowSelection, MemoryReservation)> {
        let in_file = |e: Error| external(e.with("file", file));
        let mut read = self.table.deleted_rows(&deleted.file).await.map_err(in_file)?;
        if let Some(deletes) = self.deletes.clone().filter(|_| !deleted.file.delete_files.is_empty()) {
            let (input, spec) = (Arc::clone(&deleted.file), Arc::clone(self.table.read_spec()));
            let named = tokio::task::spawn_blocking(move || deletes.positions(&input, &spec)).await;
            let named = named.map_err(|e| Error::internal("reading delete files failed unexpectedly").caused_by(e));
            read.merge(&named.and_then(|named| named).map_err(in_file)?);
        }
        let reservation = MemoryConsumer::new("rows that files lost").register(&self.pool);
        reservation.try_grow(runs(&read, deleted.rows).saturating_mul(RUN_BYTES))?;
        let live = live_rows(&read, deleted.rows).map_err(|e| external(e.with("path", file)))?;
        Ok((live, reservation))
    }

    /// The failure with the file's name, if it is the file's.
    fn in_file(&self, error: DataFusionError, file: &Location) -> DataFusionError {
        if holds_own(&error) {
            return error;
        }
        let text = error.to_string();
        if text.contains(FILTER_FAILED)
            && let Some(first) = self.failure.first()
        {
            return external(first);
        }
        let is_parquet = matches!(&error, DataFusionError::ParquetError(_))
            || matches!(&error, DataFusionError::ArrowError(inner, _) if matches!(**inner, ArrowError::ParquetError(_)));
        if !is_parquet || text.contains(FILTER_FAILED) {
            return error;
        }
        let unreadable = Error::corrupt("the data file cannot be read as Parquet").class("FAILED_READ_FILE.NO_HINT");
        external(unreadable.with("path", file).caused_by(error))
    }
}

#[derive(Debug)]
struct Opener {
    opening: Arc<Opening>,
    inner: Arc<dyn Morselizer>,
}

/// A file that is being read.
#[derive(Debug, Clone)]
struct OpenFile {
    opening: Arc<Opening>,
    location: Location,
    held: Option<Arc<MemoryReservation>>,
}

impl OpenFile {
    fn named(&self, error: DataFusionError) -> DataFusionError {
        self.opening.in_file(error, &self.location)
    }

    fn planner(&self, inner: Box<dyn MorselPlanner>) -> Box<dyn MorselPlanner> {
        Box::new(Planner { file: self.clone(), inner })
    }
}

impl Morselizer for Opener {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let Some(FileLocation(location)) = file.extension::<FileLocation>() else {
            return datafusion::common::internal_err!("a file of a scan has no location");
        };
        let open = OpenFile { opening: Arc::clone(&self.opening), location: location.clone(), held: None };
        Ok(match file.extension::<Deleted>().cloned() {
            None => open.planner(self.inner.plan_file(file).map_err(|e| open.named(e))?),
            Some(deleted) => Box::new(Unread { open, deleted, file, inner: Arc::clone(&self.inner) }),
        })
    }
}

/// A file whose deleted rows are not read yet.
#[derive(Debug)]
struct Unread {
    open: OpenFile,
    deleted: Deleted,
    file: PartitionedFile,
    inner: Arc<dyn Morselizer>,
}

impl MorselPlanner for Unread {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let Unread { mut open, deleted, file, inner } = *self;
            let (live, held) = open.opening.live_rows(&deleted, &open.location).await?;
            open.held = Some(Arc::new(held));
            let planner = inner.plan_file(file.with_extension(ParquetRowSelection::new(live)));
            Ok(open.planner(planner.map_err(|e| open.named(e))?))
        })))
    }
}

/// Plans what is left of a file.
#[derive(Debug)]
struct Planner {
    file: OpenFile,
    inner: Box<dyn MorselPlanner>,
}

impl MorselPlanner for Planner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Planner { file, inner } = *self;
        let Some(mut plan) = inner.plan().map_err(|e| file.named(e))? else { return Ok(None) };
        let of = |inner| Box::new(Part { file: file.clone(), inner }) as Box<dyn Morsel>;
        let morsels = plan.take_morsels().into_iter().map(of).collect();
        let planners = plan.take_ready_planners().into_iter().map(|inner| file.planner(inner)).collect();
        let mut named = MorselPlan::new().with_morsels(morsels).with_planners(planners);
        if let Some(pending) = plan.take_pending_planner() {
            named.set_pending_planner(async move {
                let planner = pending.await.map_err(|e| file.named(e))?;
                Ok(file.planner(planner))
            });
        }
        Ok(Some(named))
    }
}

/// Rows of a file that wait to be decoded.
#[derive(Debug)]
struct Part {
    file: OpenFile,
    inner: Box<dyn Morsel>,
}

impl Morsel for Part {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Part { file, inner } = *self;
        inner.into_stream().map(move |batch| batch.map_err(|e| file.named(e))).boxed()
    }
}

/// At most so many runs of rows do the deleted ones leave or take.
fn runs(deleted: &DeletionVector, rows: u64) -> usize {
    let count = u64::try_from(deleted.iter().count()).unwrap_or(u64::MAX);
    usize::try_from(count.saturating_mul(2).saturating_add(1).min(rows)).unwrap_or(usize::MAX)
}

/// Runs of rows that are not deleted among `rows`.
fn live_rows(deleted: &DeletionVector, rows: u64) -> Result<RowSelection, Error> {
    if deleted.max().is_some_and(|last| last >= rows) {
        return Err(Error::corrupt("a deletion vector marks rows that the file does not have"));
    }
    let mut selectors: Vec<RowSelector> = Vec::new();
    let (mut next, mut run) = (0u64, 0u64);
    let flush = |selectors: &mut Vec<RowSelector>, run: &mut u64| {
        if *run > 0 {
            selectors.push(RowSelector::skip(*run as usize));
            *run = 0;
        }
    };
    for row in deleted.iter() {
        if row > next {
            flush(&mut selectors, &mut run);
            selectors.push(RowSelector::select((row - next) as usize));
        }
        run += 1;
        next = row + 1;
    }
    flush(&mut selectors, &mut run);
    if rows > next {
        selectors.push(RowSelector::select((rows - next) as usize));
    }
    Ok(selectors.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_rows_are_what_a_vector_leaves() {
        for (deleted, rows) in
            [(vec![], 3), (vec![0], 3), (vec![2], 3), (vec![0, 1, 2], 3), (vec![1, 3, 4, 7], 9), (vec![], 0)]
        {
            let selection = live_rows(&DeletionVector::from_rows(deleted.clone()), rows).unwrap();
            let mut kept = Vec::new();
            let mut at = 0u64;
            for selector in selection.iter() {
                if !selector.skip {
                    kept.extend(at..at + selector.row_count as u64);
                }
                at += selector.row_count as u64;
            }
            let expected: Vec<u64> = (0..rows).filter(|r| !deleted.contains(r)).collect();
            assert_eq!((kept, at), (expected, rows), "{deleted:?}");
        }
        assert!(live_rows(&DeletionVector::from_rows([3]), 3).is_err());
    }
}
