//! What SQL text parses into.

use std::collections::BTreeMap;

use lakesmith_core::op::{ColumnDefault, Inventory, Replacing, TableChange, TimeTravel, VacuumMode};
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
    /// A statement about names.
    Catalog(CatalogStatement),
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableRef {
    /// ``delta.`path` `` or `'path'`.
    Path(String),
    /// ``iceberg.`path` ``.
    IcebergPath(String),
    /// `catalog.schema.table`, as parts.
    Name(Vec<String>),
}

impl TableRef {
    /// The table that a dotted name means: ``format.`path` `` or its parts.
    pub fn of_parts(mut parts: Vec<String>) -> Self {
        match parts.as_slice() {
            [format, _] if format.eq_ignore_ascii_case("delta") => Self::Path(parts.swap_remove(1)),
            [format, _] if format.eq_ignore_ascii_case("iceberg") => Self::IcebergPath(parts.swap_remove(1)),
            _ => Self::Name(parts),
        }
    }
}

/// Statements about databases and the names of tables. Names are parts; an empty one is the database in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogStatement {
    /// CREATE DATABASE
    CreateDatabase {
        /// The database.
        name: Vec<String>,
        /// IF NOT EXISTS
        if_not_exists: bool,
        /// COMMENT
        comment: Option<String>,
    },
    /// DROP DATABASE
    DropDatabase {
        /// The database.
        name: Vec<String>,
        /// IF EXISTS
        if_exists: bool,
        /// CASCADE: with all of its tables.
        cascade: bool,
    },
    /// DESCRIBE DATABASE
    DescribeDatabase {
        /// The database.
        name: Vec<String>,
        /// EXTENDED
        extended: bool,
    },
    /// USE
    Use {
        /// A database, a catalog and a database, or a catalog.
        name: Vec<String>,
    },
    /// SHOW DATABASES
    ShowDatabases {
        /// The catalog.
        within: Vec<String>,
        /// LIKE
        like: Option<String>,
    },
    /// SHOW TABLES
    ShowTables {
        /// The database.
        database: Vec<String>,
        /// LIKE
        like: Option<String>,
    },
    /// DROP TABLE
    DropTable {
        /// The table.
        table: TableRef,
        /// IF EXISTS
        if_exists: bool,
    },
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CreateClauses {
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// OR REPLACE
    pub replacing: Replacing,
    /// The columns; none: those of the table at the location.
    pub schema: Schema,
    /// DEFAULT values by column.
    pub defaults: Vec<(String, ColumnDefault)>,
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
    /// ALTER TABLE of columns and constraints.
    Alter(TableChange),
    /// ALTER TABLE … CLUSTER BY
    ClusterBy {
        /// Columns as parts of their paths; none: CLUSTER BY NONE.
        columns: Vec<Vec<String>>,
    },
    /// SHOW COLUMNS
    ShowColumns,
    /// SHOW CREATE TABLE
    ShowCreate,
    /// DESCRIBE TABLE
    Describe {
        /// EXTENDED
        extended: bool,
    },
    /// DESCRIBE TABLE t column
    DescribeColumn {
        /// The column.
        column: String,
    },
    /// CREATE TABLE from column definitions.
    CreateTable(Box<CreateClauses>),
    /// RESTORE TABLE … TO
    Restore {
        /// The version.
        to: TimeTravel,
    },
}
