//! The whole vocabulary of the shells: one options struct and one report an operation.

pub mod alter;
pub mod catalog;
pub mod checkpoint;
pub mod ddl;
pub mod describe;
pub mod entries;
pub mod fsck;
pub mod health;
pub mod optimize;
pub mod plan_file;
pub mod properties;
pub mod restore;
pub mod vacuum;

pub use alter::{AddedColumn, AlterTable, ColumnChange, ColumnDefault, Position, TableChange};
pub use catalog::{TableName, TextRows, WarehouseOptions};
pub use checkpoint::{CheckpointOptions, CheckpointReport, ExpiredLogFile, LogCleanupReport};
pub use ddl::{ClusterBy, CreateTable, Replacing};
pub use describe::{DetailReport, FileEntry, FilesReport, HistoryEntry, HistoryOptions, HistoryReport, TimeTravel};
pub use entries::{EntryList, EntrySource};
pub use fsck::{FsckFinding, FsckOptions, FsckReport, StatisticsCheck};
pub use health::{Finding, HealthOptions, HealthReport, HistogramBin, Severity};
pub use optimize::{
    Compat, CubeSizes, FileSizes, OptimizeMetrics, OptimizeOptions, OptimizeReport, OrderBy, ReorgOptions,
    RewriteLimits,
};
pub use plan_file::{
    ApplyOptions, ApplyReport, NotApplied, PLAN_FORMAT, PlanEntry, PlanHeader, PlanLine, PlannedOperation,
};
pub use properties::{AlterProperties, PropertiesReport};
pub use restore::{RestoreMetrics, RestoreOptions, RestoreReport};
pub use vacuum::{
    CondemnedRun, Inventory, InventoryFormat, KeptEntry, SweptEntry, VacuumFailure, VacuumMode, VacuumOptions,
    VacuumReport,
};

/// A maintenance or metadata operation on one table.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// OPTIMIZE
    Optimize(OptimizeOptions),
    /// REORG … APPLY (PURGE)
    Reorg(ReorgOptions),
    /// DESCRIBE DETAIL
    Detail(TimeTravel),
    /// DESCRIBE HISTORY
    History(HistoryOptions),
    /// The live files.
    Files(TimeTravel),
    /// The health check.
    Health(HealthOptions),
    /// SHOW TBLPROPERTIES, with one key or all.
    ShowProperties(Option<String>),
    /// ALTER TABLE … SET | UNSET TBLPROPERTIES
    AlterProperties(AlterProperties),
    /// ALTER TABLE of columns and constraints.
    AlterTable(AlterTable),
    /// ALTER TABLE … CLUSTER BY
    ClusterBy(ClusterBy),
    /// CREATE TABLE from column definitions.
    CreateTable(CreateTable),
    /// SHOW COLUMNS
    ShowColumns,
    /// SHOW CREATE TABLE
    ShowCreate,
    /// DESCRIBE TABLE
    DescribeTable {
        /// EXTENDED
        extended: bool,
    },
    /// DESCRIBE TABLE of one column.
    DescribeColumn(String),
    /// Writes a checkpoint of the newest version, and cleans up the log if asked to.
    Checkpoint(CheckpointOptions),
    /// VACUUM
    Vacuum(VacuumOptions),
    /// Compares the table with its log.
    Fsck(FsckOptions),
    /// RESTORE
    Restore(RestoreOptions),
}

impl Operation {
    /// The operation's verb, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Optimize(_) => "optimize",
            Operation::Reorg(_) => "reorg",
            Operation::Detail(_) => "detail",
            Operation::History(_) => "history",
            Operation::Files(_) => "files",
            Operation::Health(_) => "health",
            Operation::ShowProperties(_) => "show properties",
            Operation::AlterProperties(_) => "alter properties",
            Operation::AlterTable(_) => "alter table",
            Operation::ClusterBy(_) => "cluster by",
            Operation::CreateTable(_) => "create table",
            Operation::ShowColumns => "show columns",
            Operation::ShowCreate => "show create table",
            Operation::DescribeTable { .. } | Operation::DescribeColumn(_) => "describe table",
            Operation::Checkpoint(_) => "checkpoint",
            Operation::Vacuum(_) => "vacuum",
            Operation::Fsck(_) => "fsck",
            Operation::Restore(_) => "restore",
        }
    }
}

/// What an [`Operation`] returns.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Report {
    /// OPTIMIZE and REORG
    Optimize(Box<OptimizeReport>),
    /// DESCRIBE DETAIL
    Detail(Box<DetailReport>),
    /// DESCRIBE HISTORY
    History(HistoryReport),
    /// The live files.
    Files(FilesReport),
    /// The health check.
    Health(Box<HealthReport>),
    /// SHOW TBLPROPERTIES
    Properties(PropertiesReport),
    /// SHOW COLUMNS, SHOW CREATE TABLE and DESCRIBE TABLE
    Rows(TextRows),
    /// VACUUM
    Vacuum(Box<VacuumReport>),
    /// A plan that was carried out from a file.
    Apply(Box<ApplyReport>),
    /// FSCK
    Fsck(Box<FsckReport>),
    /// A checkpoint.
    Checkpoint(Box<CheckpointReport>),
    /// RESTORE
    Restore(Box<RestoreReport>),
    /// CREATE TABLE and ALTER TABLE: the version that they made or found.
    Done {
        /// Version after the operation.
        version: u64,
    },
}
