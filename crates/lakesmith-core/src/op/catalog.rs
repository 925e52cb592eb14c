//! Names of tables, and what statements about them answer.

/// Where names are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarehouseOptions {
    /// Path or URL of the folder that holds a folder for each database and table.
    pub location: String,
}

impl Default for WarehouseOptions {
    fn default() -> Self {
        Self { location: "./lakesmith-warehouse".into() }
    }
}

/// The full name of a table in a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// Catalog.
    pub catalog: String,
    /// Database.
    pub database: String,
    /// Table, in lower case.
    pub table: String,
    /// True if the table lies in the warehouse, which deletes its files when it is dropped.
    pub managed: bool,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |part: &str| crate::plan::keys::reference_name(&[part.to_owned()]);
        write!(f, "{}.{}.{}", quoted(&self.catalog), quoted(&self.database), quoted(&self.table))
    }
}

/// Rows of text: what SHOW COLUMNS, SHOW CREATE TABLE and DESCRIBE TABLE answer, columns as Spark names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextRows {
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// Values, one a column.
    pub rows: Vec<Vec<Option<String>>>,
}

impl TextRows {
    /// No rows yet.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row of texts.
    pub fn push(&mut self, values: &[&str]) {
        self.rows.push(values.iter().map(|value| Some((*value).to_owned())).collect());
    }
}

impl serde::Serialize for TextRows {
    /// A list of objects.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|row| Row { columns: &self.columns, values: row }))
    }
}

struct Row<'a> {
    columns: &'a [&'static str],
    values: &'a [Option<String>],
}

impl serde::Serialize for Row<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns.iter().zip(self.values))
    }
}
