//! Tables made for a test: files of given rows below a log written by hand.

use std::fs::{self, File};
use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A table of one version.
pub(crate) struct Crafted {
    folder: TempDir,
    actions: Vec<Value>,
}

impl Crafted {
    /// A table without files; `fields` are those of its schema, `features` what readers must know.
    pub(crate) fn new(fields: &Value, partition_columns: &[&str], features: &[&str]) -> Self {
        let schema = json!({"type": "struct", "fields": fields}).to_string();
        let protocol = match features {
            [] => json!({"minReaderVersion": 1, "minWriterVersion": 2}),
            _ => json!({
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
            }),
        };
        let metadata = json!({
            "id": "crafted", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": partition_columns, "configuration": {}, "createdTime": 0,
        });
        let actions = vec![json!({"protocol": protocol}), json!({"metaData": metadata})];
        Self { folder: TempDir::new().unwrap(), actions }
    }

    /// A nullable column of a primitive type.
    pub(crate) fn field(name: &str, data_type: &str) -> Value {
        json!({"name": name, "type": data_type, "nullable": true, "metadata": {}})
    }

    /// The folder of the table.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a file of `columns`; `more` goes into its action.
    pub(crate) fn with_file(mut self, columns: Vec<(&str, ArrayRef)>, more: &Value) -> Self {
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let name = format!("part-{}.parquet", self.actions.len());
        let file = File::create(self.path().join(&name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let size = fs::metadata(self.path().join(&name)).unwrap().len();
        let mut add =
            json!({"path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": true});
        for (key, value) in more.as_object().unwrap() {
            add[key] = value.clone();
        }
        self.actions.push(json!({"add": add}));
        self
    }

    /// Notes another size of the last file.
    pub(crate) fn with_size(mut self, size: u64) -> Self {
        self.actions.last_mut().unwrap()["add"]["size"] = size.into();
        self
    }

    /// The table as SQL names it, once its log is written.
    pub(crate) fn sql(&self) -> String {
        let log = self.path().join("_delta_log");
        fs::create_dir_all(&log).unwrap();
        let lines: Vec<String> = self.actions.iter().map(ToString::to_string).collect();
        fs::write(log.join(format!("{:020}.json", 0)), lines.join("\n")).unwrap();
        format!("delta.`{}`", self.path().display())
    }
}
