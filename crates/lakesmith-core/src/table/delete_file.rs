//! Delete files: rows that are deleted by files which hold for many data files at once.
//!
//! # Source
//! Iceberg spec, "Scan Planning" and "Delete Formats". Delta has deletion vectors only, which belong to one data file.

use super::Field;

/// Row number of a delete file in [`super::FileTable::delete_files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct DeleteFileId(pub u32);

/// What a delete file holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum DeleteContent {
    /// Paths of data files and positions of rows in them.
    Positions,
    /// Values of these columns: a row that has them all is deleted, NULL equals NULL. Columns may have left the table's
    /// schema; types are those of the newest schema that has the column.
    Equality(Vec<Field>),
}

/// Encoding of a data file or a delete file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum FileFormat {
    /// Apache Parquet.
    #[default]
    Parquet,
    /// Apache ORC.
    Orc,
    /// Apache Avro.
    Avro,
}

/// A file that deletes rows of data files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeleteFile {
    /// Path as the metadata has it.
    pub path: String,
    /// Bytes on storage.
    pub size: u64,
    /// Rows of the file.
    pub rows: u64,
    /// How it is encoded.
    pub format: FileFormat,
    /// What it holds.
    pub content: DeleteContent,
}
