//! Columns of tables that `*` leaves out: what they tell is not of the row but of where it is.
//!
//! # Source
//! Spark "Hidden File Metadata"; Iceberg spec, "Reserved Field IDs".

use lakesmith_core::table::{DataType, Field, FileId, Scalar, Value};

use crate::Table;
use crate::format::{Opened, iceberg};

/// A column that `*` leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenColumn {
    /// Its name.
    pub name: String,
    /// What it tells.
    pub fact: RowFact,
}

/// What a hidden column tells of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowFact {
    /// A struct of everything that is known of its file, and of its place there.
    File,
    /// Its number in its file, from 0.
    Position,
    /// Its id, which survives rewrites.
    Id,
    /// The version that wrote it last.
    Version,
    /// What is the same for all rows of a file: [`Table::file_value`].
    OfFile(Field),
}

/// Names of hidden columns, whatever the table.
pub const HIDDEN_NAMES: [&str; 7] =
    ["_metadata", "_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"];

impl Table {
    /// The columns that `*` leaves out.
    pub fn hidden_columns(&self) -> Vec<HiddenColumn> {
        let column = |name: &str, fact| HiddenColumn { name: name.to_owned(), fact };
        match self.opened() {
            Opened::Delta(_) => vec![column("_metadata", RowFact::File)],
            Opened::Iceberg(table) => {
                let field = |name: &str, data_type| Field {
                    name: name.to_owned(),
                    physical: name.to_owned(),
                    id: None,
                    data_type,
                    nullable: true,
                    metadata: Default::default(),
                };
                let of_file = |name, data_type| column(name, RowFact::OfFile(field(name, data_type)));
                let partition = iceberg::partition_type(table);
                let mut found = vec![
                    of_file("_file", DataType::String),
                    column("_pos", RowFact::Position),
                    of_file("_spec_id", DataType::Integer),
                    of_file("_partition", DataType::Struct(partition)),
                ];
                if self.row_tracking().is_some() {
                    found.push(column("_row_id", RowFact::Id));
                    found.push(column("_last_updated_sequence_number", RowFact::Version));
                }
                found
            }
        }
    }

    /// Values by field id that columns have in all rows of a file, if the file itself lacks them: those of its partition.
    pub fn file_constants(&self, file: FileId) -> Vec<(i32, Scalar)> {
        match self.opened() {
            Opened::Delta(_) => Vec::new(),
            Opened::Iceberg(table) => table.constants(file),
        }
    }

    /// What a hidden column has in all rows of a file.
    pub fn file_value(&self, column: &str, file: FileId) -> Value {
        match self.opened() {
            Opened::Delta(_) => Value::NULL,
            Opened::Iceberg(table) => match column {
                "_file" => self.state().files.get(file).path.into(),
                "_spec_id" => table.facts(file).spec_id.into(),
                "_partition" => iceberg::partition_struct(table, file),
                _ => Value::NULL,
            },
        }
    }
}
