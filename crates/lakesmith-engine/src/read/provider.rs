//! A version of a table as DataFusion asks for it.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use lakesmith::table::{FileId, PartitionTuple};
use lakesmith::{HiddenColumn, Location, PartitionRows, RowFact, ScanReport, SkippedFiles, Table, TableOutline};
use parquet::arrow::RowNumber;
use tokio::sync::OnceCell;

use super::columns::{Columns, ROW_ID, ROW_INDEX, ROW_VERSION, arrow_field, constant};
use super::file_facts::{FACTS, Fact};
use super::pruning::{Filter, is_decided, partitions, prune};
use super::scan::{Scan, live_count};
use super::statistics::Rows;
use super::summary::{ScanSummary, Summaries};
use super::whole::whole;
use crate::failure::external;

/// Rows of a batch that holds no column.
const BARE_BATCH_ROWS: usize = 65_536;

/// A version of a table as it was opened.
#[derive(Debug)]
pub(crate) enum Version {
    /// With its files.
    Loaded(Table),
    /// Without them, until a scan asks for more than how many rows there are.
    Outlined(TableOutline),
}

impl Version {
    /// The table, whose files may be missing.
    pub(crate) fn table(&self) -> &Table {
        match self {
            Self::Loaded(table) => table,
            Self::Outlined(outline) => outline.without_files(),
        }
    }
}

/// One version of a table.
#[derive(Debug)]
pub(crate) struct LakeTable {
    version: Version,
    /// The version that was outlined, with its files.
    loaded: OnceCell<Table>,
    columns: Arc<Columns>,
    schema: SchemaRef,
    /// Takes what each scan skips and reads.
    summaries: Summaries,
}

impl LakeTable {
    /// The table as queries see it, with those of its hidden columns that are named.
    ///
    /// # Errors
    /// Unsupported for a type that cannot be read.
    pub(crate) fn new(version: Version, hidden: &[&str], summaries: Summaries) -> lakesmith::Result<Self> {
        let columns = Arc::new(Columns::of(version.table(), hidden)?);
        let shown = columns.schema.fields().iter().map(|f| f.as_ref().clone());
        let hidden = columns.hidden.iter().map(|column| {
            Ok(match &column.fact {
                RowFact::File => Field::new(&column.name, DataType::Struct(metadata_fields(&columns)), false),
                // The reader's own column, with its mark.
                RowFact::Position => Field::new(&column.name, DataType::Int64, true).with_extension_type(RowNumber),
                RowFact::Id | RowFact::Version => Field::new(&column.name, DataType::Int64, true),
                RowFact::OfFile(field) => arrow_field(field)?,
            })
        });
        let schema = Arc::new(Schema::new(shown.map(Ok).chain(hidden).collect::<lakesmith::Result<Vec<_>>>()?));
        Ok(Self { version, loaded: OnceCell::new(), columns, schema, summaries })
    }

    /// The table with its files.
    async fn table(&self) -> Result<&Table> {
        match &self.version {
            Version::Loaded(table) => Ok(table),
            Version::Outlined(outline) => self.loaded.get_or_try_init(|| outline.with_files()).await.map_err(external),
        }
    }

    fn note(&self, table: &Table, files: &[FileId], skipped: SkippedFiles) -> lakesmith::Result<()> {
        let state = table.state();
        let read: Vec<Location> =
            files.iter().map(|id| table.root().resolve(state.files.get(*id).path)).collect::<lakesmith::Result<_>>()?;
        let report = ScanReport {
            table: table.root().to_string(),
            version: state.version,
            files: state.files.len() as u64,
            bytes: state.files.total_bytes(),
            skipped,
            read_files: read.len() as u64,
            read_bytes: files.iter().map(|id| state.files.get(*id).size).sum(),
        };
        self.summaries.note(ScanSummary { report, read });
        Ok(())
    }

    /// Rows without columns, as many as the files' metadata counts.
    async fn counted(&self, filters: &[Filter]) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Version::Outlined(outline) = &self.version else { return Ok(None) };
        let Some(counts) = outline.row_counts().await.map_err(external)? else { return Ok(None) };
        let (tuples, counts): (Vec<PartitionTuple>, Vec<PartitionRows>) = counts.into_iter().unzip();
        let wanted = partitions(&tuples, &self.columns, filters)?.unwrap_or_else(|| vec![true; tuples.len()]);
        let (mut rows, mut files, mut bytes, mut skipped) = (Some(0u64), 0, 0, SkippedFiles::default());
        for (partition, wanted) in counts.iter().zip(wanted) {
            files += partition.files;
            bytes += partition.bytes;
            if wanted {
                skipped.stats += partition.files;
                rows = rows.zip(partition.rows).and_then(|(a, b)| a.checked_add(b));
            } else {
                skipped.partition += partition.files;
            }
        }
        let Some(rows) = rows.and_then(|rows| usize::try_from(rows).ok()) else { return Ok(None) };
        let table = outline.without_files();
        let (name, version) = (table.root().to_string(), table.state().version);
        let report = ScanReport { table: name, version, files, bytes, skipped, read_files: 0, read_bytes: 0 };
        self.summaries.note(ScanSummary { report, read: Vec::new() });
        bare(rows).map(Some)
    }

    /// The expression over the scan's columns that gives the column that queries see at `index`.
    fn expression(&self, index: usize) -> Expr {
        match self.columns.schema.fields().get(index) {
            Some(field) if field.data_type().is_nested() => whole(column(field.name())),
            Some(field) => column(field.name()),
            None => self.hidden(&self.columns.hidden[index - self.columns.schema.fields().len()]),
        }
    }

    fn hidden(&self, hidden: &HiddenColumn) -> Expr {
        match &hidden.fact {
            RowFact::File => named_struct(
                metadata_columns(&self.columns).into_iter().flat_map(|(name, expr)| [lit(name), expr]).collect(),
            ),
            RowFact::Position => column(ROW_INDEX),
            RowFact::Id => row_id(),
            RowFact::Version => row_version(),
            RowFact::OfFile(_) => column(&constant(&hidden.name)),
        }
    }
}

/// Rows without columns.
fn bare(rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let empty: SchemaRef = Arc::new(Schema::empty());
    let of = |count: usize| {
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(&empty), Vec::new(), &options)
    };
    let mut batches = vec![of(BARE_BATCH_ROWS)?; rows / BARE_BATCH_ROWS];
    batches.push(of(rows % BARE_BATCH_ROWS)?);
    let source = MemorySourceConfig::try_new(&[batches], empty, None)?;
    Ok(DataSourceExec::from_data_source(source))
}

fn column(name: &str) -> Expr {
    Expr::Column(datafusion::common::Column::new_unqualified(name))
}

/// `first`, unless it is null.
fn or_else(first: Expr, second: Expr) -> Expr {
    let when = vec![(Box::new(first.clone().is_not_null()), Box::new(first))];
    Expr::Case(Case::new(None, when, Some(Box::new(second))))
}

fn row_id() -> Expr {
    or_else(column(ROW_ID), column(&Fact::BaseRowId.column()) + column(ROW_INDEX))
}

fn row_version() -> Expr {
    or_else(column(ROW_VERSION), column(&Fact::RowVersion.column()))
}

fn metadata_columns(columns: &Columns) -> Vec<(&'static str, Expr)> {
    let mut found: Vec<(&'static str, Expr)> = FACTS.iter().map(|fact| (fact.name(), column(&fact.column()))).collect();
    found.push(("row_index", column(ROW_INDEX)));
    if columns.scan.file_schema().index_of(ROW_ID).is_ok() {
        found.push(("row_id", row_id()));
        found.push(("row_commit_version", row_version()));
    }
    found
}

fn metadata_fields(columns: &Columns) -> Fields {
    let instant = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    metadata_columns(columns)
        .into_iter()
        .map(|(name, _)| {
            let data_type = match name {
                "file_path" | "file_name" => DataType::Utf8,
                "file_modification_time" => instant(),
                _ => DataType::Int64,
            };
            Field::new(name, data_type, true)
        })
        .collect()
}

#[async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match is_decided(filter, &self.columns) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let seen = DFSchema::try_from(Arc::clone(&self.schema))?;
        let physical = filters.iter().map(|filter| {
            let expr = session.create_physical_expr(filter.clone(), &seen)?;
            Ok(Filter { expr, decided: is_decided(filter, &self.columns) })
        });
        let physical = physical.collect::<Result<Vec<_>>>()?;
        let all_match = physical.iter().all(|filter| filter.decided);
        let rows_alone = wanted.is_empty() && all_match;
        if rows_alone && let Some(plan) = self.counted(&physical).await? {
            return Ok(plan);
        }
        let table = self.table().await?;
        let (mut files, mut skipped) = prune(table, &self.columns, &physical).await?;
        let counted = files.iter().map(|id| table.state().files.get(*id));
        if rows_alone && let Some(rows) = live_count(counted) {
            skipped.stats = files.len() as u64;
            self.note(table, &[], skipped).map_err(external)?;
            return bare(rows);
        }
        let limit = limit.filter(|_| all_match);
        if let Some(limit) = limit {
            let enough = first_files(table, &files, limit);
            skipped.limit = (files.len() - enough) as u64;
            files.truncate(enough);
        }
        self.note(table, &files, skipped).map_err(external)?;
        let projected: SchemaRef = Arc::new(self.schema.project(&wanted)?);
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(projected)));
        }
        let data = self.columns.schema.fields();
        let made_up = wanted.iter().any(|i| data.get(*i).is_none_or(|field| field.data_type().is_nested()));
        let places: Vec<usize> = if wanted.iter().any(|i| *i >= data.len()) {
            (0..self.columns.scan.table_schema().fields().len()).collect()
        } else {
            wanted.iter().map(|i| self.columns.place(*i)).collect()
        };
        let whole = all_match && limit.is_none();
        let rows = Rows { table, columns: &self.columns, files: &files, whole };
        let statistics = rows.statistics(&wanted).await?;
        let scan = Scan {
            table,
            columns: &self.columns,
            files: &files,
            projection: places,
            threads: session.config().target_partitions(),
            limit,
            pool: &session.runtime_env().memory_pool,
            parquet: session.config_options().execution.parquet.clone(),
            statistics,
        };
        let plan = scan.plan()?;
        if !made_up {
            return Ok(plan);
        }
        let scanned = DFSchema::try_from(plan.schema())?;
        let expressions = wanted.iter().map(|index| {
            let expr = session.create_physical_expr(self.expression(*index), &scanned)?;
            Ok((expr, self.schema.field(*index).name().clone()))
        });
        Ok(Arc::new(ProjectionExec::try_new(expressions.collect::<Result<Vec<_>>>()?, plan)?))
    }
}

/// How many of `files`, in their order, hold `limit` rows.
fn first_files(table: &Table, files: &[FileId], limit: usize) -> usize {
    let mut rows = 0usize;
    for (index, id) in files.iter().enumerate() {
        if rows >= limit {
            return index;
        }
        let file = table.state().files.get(*id);
        rows = rows.saturating_add(live_count(std::iter::once(file)).unwrap_or(0));
    }
    files.len()
}
