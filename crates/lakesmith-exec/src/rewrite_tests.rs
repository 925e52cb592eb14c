use arrow::array::{ArrayRef, Int64Array};
use lakesmith_core::ErrorKind;
use lakesmith_core::table::{DataType, Field, FileId, PartitionTuple, ReadSpec, Schema, WriteSpec};
use lakesmith_storage::{NoProgress, StoreOptions, SystemWorld};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;

/// Tests that look at batches get all rows as batches.
impl<F: FnMut(RecordBatch) -> Option<RecordBatch>> Between for F {
    fn batch(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        self(batch)
    }

    fn merges(&self) -> bool {
        false
    }

    fn chunks(&mut self, _chunks: &mut [InputChunk]) {}
}

struct Setup {
    folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
    task: RewriteTask,
    context: TaskContext,
}

fn setup() -> Setup {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = Location::from_local_path(folder.path()).unwrap();
    let batch =
        RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from_iter_values(0..300)) as ArrayRef)]).unwrap();
    let path = folder.path().join("in.parquet");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let field = Field {
        name: "v".into(),
        physical: "v".into(),
        id: None,
        data_type: DataType::Long,
        nullable: true,
        metadata: Default::default(),
    };
    let task = RewriteTask {
        id: 3,
        inputs: vec![InputFile {
            id: FileId(0),
            location: root.join("in.parquet").to_string(),
            size: std::fs::metadata(&path).unwrap().len(),
            rows: Some(300),
            deletes: None,
            delete_files: Vec::new(),
            base_row_id: None,
            row_commit_version: None,
        }],
        partition: PartitionTuple::default(),
        read: Arc::new(ReadSpec { schema: Schema { fields: vec![field] }, match_by_id: false }),
        write: Arc::new(WriteSpec {
            partition_fields: vec![],
            partition_indexes: vec![],
            row_tracking: None,
            stats_leaves: vec![],
            max_rows_per_file: None,
            compression: None,
            row_group_rows: 1_000,
            row_group_bytes: 1 << 20,
        }),
        root: root.to_string(),
        output_stem: "out".into(),
        verify: false,
        order: None,
    };
    let control = RewriteControl {
        memory_bytes: 64 << 20,
        threads: 1,
        spill_folder: std::env::temp_dir(),
        cancel: Cancel::default(),
        progress: Arc::new(NoProgress),
        now_ms: Arc::new(SystemWorld),
        runtime: runtime.handle().clone(),
    };
    let store = Store::open(&root, &StoreOptions::default()).unwrap();
    let context = TaskContext::new(store, control);
    Setup { folder, _runtime: runtime, task, context }
}

#[test]
fn a_lost_batch_fails_the_task_and_its_output_is_listed() {
    let setup = setup();
    let mut seen = 0;
    let error = run(&setup.task, &setup.context, &mut |batch: RecordBatch| {
        seen += 1;
        (seen != 2).then_some(batch)
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("300 rows went in, 200 rows"), "{error}");
    assert!(error.to_string().contains("in.parquet"), "{error}");
    let visible = setup.context.visible.lock().unwrap();
    assert_eq!(visible.iter().map(|l| l.file_name()).collect::<Vec<_>>(), ["out.c000.parquet"]);
}

#[test]
fn a_changed_value_fails_verification() {
    let mut setup = setup();
    setup.task.verify = true;
    let mut first = true;
    let error = run(&setup.task, &setup.context, &mut |batch: RecordBatch| {
        if !std::mem::take(&mut first) {
            return Some(batch);
        }
        let other = Int64Array::from_iter_values((0..batch.num_rows() as i64).map(|v| v + 1));
        RecordBatch::try_new(batch.schema(), vec![Arc::new(other)]).ok()
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.message().contains("other values"), "{error}");
}

#[test]
fn cancelling_leaves_no_partial_object() {
    let setup = setup();
    let cancel = setup.context.control.cancel.clone();
    let error = run(&setup.task, &setup.context, &mut |batch: RecordBatch| {
        cancel.cancel();
        Some(batch)
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let names: Vec<_> = std::fs::read_dir(setup.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["in.parquet"]);
    assert!(setup.context.visible.lock().unwrap().is_empty());
}
