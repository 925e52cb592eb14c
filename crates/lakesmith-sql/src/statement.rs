//! What SQL text parses into.

use std::collections::BTreeMap;

use lakesmith_core::op::{Inventory, TimeTravel, VacuumMode};
use lakesmith_core::predicate::Expr;
use lakesmith_core::table::Schema;

/// Where a statement stands in the text: lines and columns from 1 (columns count characters), offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Line of the first character.
    pub line: u64,
    /// Column of the first character.
    pub column: u64,
    /// Line after the last character.
    pub end_line: u64,
    /// Column after the last character.
    pub end_column: u64,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What it says.
    pub kind: StatementKind,
    /// Where it stands, without the `;`.
    pub span: Span,
    /// Its text, without the `;`.
    pub text: String,
}

/// Kinds of statement.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// An operation on one table.
    Table {
        /// The table.
        table: TableRef,
        /// The operation.
        op: StatementOp,
    },
    /// `SET key = value`, `SET key` (no value) and `SET` (no key).
    Set {
        /// Key.
        key: Option<String>,
        /// Value; backquotes around it are gone, other quotes belong to it, as in Spark.
        value: Option<String>,
    },
    /// `RESET key` and `RESET`.
    Reset {
        /// Key.
        key: Option<String>,
    },
    /// A statement for a query engine, as text.
    Query {
        /// The statement.
        text: String,
    },
}

/// A table as named in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableRef {
    /// ``delta.`path` `` or `'path'`.
    Path(String),
    /// `catalog.schema.table`, as parts.
    Name(Vec<String>),
}

/// A WHERE clause and its source text.
pub type Predicate = (Expr, String);

/// The clauses of VACUUM.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VacuumClauses {
    /// FULL or LITE, if one is said.
    pub mode: Option<VacuumMode>,
    /// USING INVENTORY
    pub inventory: Option<Inventory>,
    /// RETAIN n HOURS, in milliseconds.
    pub retain_ms: Option<i64>,
    /// DRY RUN
    pub dry_run: bool,
}

/// The clauses of CREATE TABLE from column definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateClauses {
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// The columns.
    pub schema: Schema,
    /// PARTITIONED BY
    pub partition_by: Vec<String>,
    /// CLUSTER BY columns, as parts of their paths.
    pub cluster_by: Vec<Vec<String>>,
    /// COMMENT
    pub comment: Option<String>,
    /// TBLPROPERTIES
    pub properties: BTreeMap<String, String>,
    /// LOCATION
    pub location: Option<String>,
}

/// Operations on one table.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementOp {
    /// OPTIMIZE
    Optimize {
        /// FULL
        full: bool,
        /// WHERE
        predicate: Option<Predicate>,
        /// ZORDER BY columns, as parts of their paths.
        zorder_by: Vec<Vec<String>>,
    },
    /// REORG TABLE … APPLY (PURGE)
    ReorgPurge {
        /// WHERE
        predicate: Option<Predicate>,
    },
    /// VACUUM
    Vacuum(VacuumClauses),
    /// DESCRIBE DETAIL
    Detail,
    /// DESCRIBE HISTORY
    History {
        /// LIMIT
        limit: Option<u64>,
    },
    /// SHOW TBLPROPERTIES
    ShowProperties {
        /// The one property that is asked for.
        key: Option<String>,
    },
    /// ALTER TABLE … SET | UNSET TBLPROPERTIES
    AlterProperties {
        /// Keys and values to set.
        set: Vec<(String, String)>,
        /// Keys to unset.
        unset: Vec<String>,
        /// IF EXISTS
        if_exists: bool,
    },
    /// ALTER TABLE … CLUSTER BY
    ClusterBy {
        /// Columns as parts of their paths; none: CLUSTER BY NONE.
        columns: Vec<Vec<String>>,
    },
    /// CREATE TABLE from column definitions.
    CreateTable(Box<CreateClauses>),
    /// RESTORE TABLE … TO
    Restore {
        /// The version.
        to: TimeTravel,
        /// A time as it was written.
        timestamp_text: Option<String>,
    },
}
