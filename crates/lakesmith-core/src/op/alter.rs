//! ALTER TABLE of columns and constraints.

use crate::predicate::Expr;
use crate::table::{DataType, Field};

/// Where a column goes among its siblings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// FIRST
    First,
    /// AFTER a sibling.
    After(String),
}

/// A column to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedColumn {
    /// Path of the column that it is added to; empty: the table.
    pub parent: Vec<String>,
    /// The column.
    pub field: Field,
    /// DEFAULT, as text.
    pub has_default: bool,
    /// Its place; none: the last.
    pub position: Option<Position>,
}

/// The value of a column in rows that don't name it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefault {
    /// As it was written.
    pub text: String,
    /// What it says; none if it is more than can be looked through without an engine.
    pub value: Option<Expr>,
}

/// What changes about one column. Fields that are `None` stay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnChange {
    /// Path of the column, in any case.
    pub path: Vec<String>,
    /// COMMENT
    pub comment: Option<String>,
    /// FIRST, AFTER
    pub position: Option<Position>,
    /// TYPE
    pub data_type: Option<DataType>,
    /// DROP NOT NULL (true), SET NOT NULL (false)
    pub nullable: Option<bool>,
    /// SET DEFAULT, DROP DEFAULT
    pub default: Option<Option<ColumnDefault>>,
}

/// Kinds of change.
#[derive(Debug, Clone, PartialEq)]
pub enum TableChange {
    /// ADD COLUMNS
    AddColumns(Vec<AddedColumn>),
    /// RENAME COLUMN
    RenameColumn {
        /// Path of the column, in any case.
        path: Vec<String>,
        /// Its new name.
        to: String,
    },
    /// DROP COLUMNS
    DropColumns {
        /// Paths of the columns, in any case.
        paths: Vec<Vec<String>>,
        /// IF EXISTS: a missing column is no error.
        if_exists: bool,
    },
    /// ALTER COLUMN
    ChangeColumns(Vec<ColumnChange>),
    /// ADD CONSTRAINT … CHECK
    AddConstraint {
        /// Its name.
        name: String,
        /// The condition, its tokens parted by spaces.
        check: String,
        /// What it says; none if it is more than can be looked through without an engine.
        condition: Option<Expr>,
    },
    /// DROP CONSTRAINT
    DropConstraint {
        /// Its name, in any case.
        name: String,
        /// IF EXISTS: a missing constraint is no error.
        if_exists: bool,
    },
}

/// ALTER TABLE of columns and constraints.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// What changes.
    pub change: TableChange,
    /// Text kept in the history.
    pub user_metadata: Option<String>,
}
