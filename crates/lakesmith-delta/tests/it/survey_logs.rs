//! Made-up logs with checkpoints of every kind: the direct reader must see what the kernel sees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchReader as _, StringArray, StructArray,
    UInt32Array,
};
use arrow::compute::{concat_batches, filter_record_batch, take};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use lakesmith_core::op::TimeTravel;
use lakesmith_delta::write_checkpoint;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::survey::both;
use crate::tables::{TestTable, metadata};

const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors","v2Checkpoint"],"writerFeatures":["deletionVectors","domainMetadata","v2Checkpoint"]}}"#;
const PARTITIONS: [Option<&str>; 4] = [None, Some("x"), Some("a b/ü%"), Some("")];
/// Inline vectors: what their bytes say is not looked at.
const VECTORS: [&str; 3] = ["^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", "00000", "11111"];

#[derive(Debug, Clone)]
enum Change {
    Add { partition: usize, tagged: bool },
    Remove(usize),
    Mark(usize, usize),
    Restore(usize),
    Domain(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Classic,
    Parts(usize),
    HeadJson(usize),
    HeadParquet(usize),
}

#[derive(Debug, Clone, PartialEq)]
struct FileState {
    body: Value,
    vector: Option<usize>,
}

impl FileState {
    fn action(&self, kind: &str, version: u64) -> Value {
        let mut body = self.body.clone();
        if let Some(vector) = self.vector {
            body["deletionVector"] = json!({"storageType": "i", "pathOrInlineDv": VECTORS[vector], "sizeInBytes": 4, "cardinality": vector + 1});
        }
        if kind == "remove" {
            for key in ["modificationTime", "stats", "tags"] {
                body.as_object_mut().unwrap().remove(key);
            }
            body["deletionTimestamp"] = json!(1_700_000_000_000u64 + version);
            body["extendedFileMetadata"] = json!(true);
        }
        json!({ kind: body })
    }
}

/// Writes a log step by step.
#[derive(Default)]
struct Log {
    live: BTreeMap<String, FileState>,
    gone: Vec<(String, FileState)>,
    next: u64,
    domain: Option<String>,
}

impl Log {
    fn commit(&mut self, changes: &[Change], version: u64) -> String {
        let mut lines = vec![json!({"commitInfo": {"operation": "WRITE", "timestamp": version}}).to_string()];
        let mut touched = BTreeSet::new();
        for change in changes {
            match change {
                Change::Add { partition, tagged } => {
                    let path = format!("part%20{:03}.parquet", self.next);
                    self.next += 1;
                    let tags = tagged.then(|| json!({"lakesmith.target": "1073741824", "ZCUBE_ID": null}));
                    let body = json!({"path": path, "partitionValues": {"p": PARTITIONS[*partition]}, "size": 1_000 + self.next,
                        "modificationTime": 5, "dataChange": true, "tags": tags,
                        "stats": format!("{{\"numRecords\":{}}}", self.next + 50)});
                    let file = FileState { body, vector: None };
                    lines.push(file.action("add", version).to_string());
                    touched.insert(path.clone());
                    self.live.insert(path, file);
                }
                Change::Remove(index) => {
                    let Some((path, file)) = pick(&self.live, *index, &mut touched) else { continue };
                    self.live.remove(&path);
                    lines.push(file.action("remove", version).to_string());
                    self.gone.push((path, file));
                }
                Change::Mark(index, vector) => {
                    let Some((path, old)) = pick(&self.live, *index, &mut touched) else { continue };
                    let new = FileState { vector: Some(*vector), ..old.clone() };
                    if new == old {
                        continue;
                    }
                    lines.push(new.action("add", version).to_string());
                    lines.push(old.action("remove", version).to_string());
                    self.live.insert(path, new);
                }
                Change::Restore(index) => {
                    if self.gone.is_empty() {
                        continue;
                    }
                    let (path, file) = self.gone[index % self.gone.len()].clone();
                    if self.live.contains_key(&path) || !touched.insert(path.clone()) {
                        continue;
                    }
                    lines.push(file.action("add", version).to_string());
                    self.live.insert(path, file);
                }
                Change::Domain(set) => {
                    if touched.insert("domain".into()) {
                        let domain = json!({"domain": "test", "configuration": format!("{version}"), "removed": !set});
                        lines.push(json!({"domainMetadata": domain}).to_string());
                        self.domain = set.then(|| lines.last().cloned().unwrap());
                    }
                }
            }
        }
        lines.join("\n")
    }
}

fn pick(
    live: &BTreeMap<String, FileState>,
    index: usize,
    touched: &mut BTreeSet<String>,
) -> Option<(String, FileState)> {
    let all: Vec<_> = live.iter().collect();
    let (path, file) = (!all.is_empty()).then(|| &all[index % all.len()])?;
    touched.insert((*path).clone()).then(|| ((*path).clone(), (*file).clone()))
}

/// Puts a checkpoint of another kind in the place of the classic one of `version`.
fn reshape(log: &Path, version: u64, kind: Kind, head: &[String]) {
    let name = |rest: &str| log.join(format!("{version:020}.checkpoint.{rest}"));
    let classic = name("parquet");
    if matches!(kind, Kind::None | Kind::Classic) {
        return;
    }
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&classic).unwrap()).unwrap().build().unwrap();
    let schema = reader.schema();
    let all = concat_batches(&schema, &reader.map(Result::unwrap).collect::<Vec<_>>()).unwrap();
    std::fs::remove_file(&classic).unwrap();
    std::fs::remove_file(log.join("_last_checkpoint")).unwrap();
    match kind {
        Kind::Parts(count) => {
            for (place, part) in pieces(&all, count).into_iter().enumerate() {
                write(&name(&format!("{:010}.{count:010}.parquet", place + 1)), &part);
            }
        }
        Kind::HeadJson(count) => {
            let mut lines = head.to_vec();
            lines.push(json!({"checkpointMetadata": {"version": version}}).to_string());
            for (path, size) in sidecars(log, &all, count) {
                lines.push(json!({"sidecar": {"path": path, "sizeInBytes": size, "modificationTime": 1}}).to_string());
            }
            std::fs::write(name("6f1b2c1e-0000-4000-8000-000000000000.json"), lines.join("\n")).unwrap();
        }
        Kind::HeadParquet(count) => {
            let sidecars = sidecars(log, &all, count);
            write(&name("6f1b2c1e-0000-4000-8000-000000000000.parquet"), &parquet_head(&all, &sidecars));
        }
        Kind::None | Kind::Classic => {}
    }
}

fn pieces(all: &RecordBatch, count: usize) -> Vec<RecordBatch> {
    let each = all.num_rows().div_ceil(count).max(1);
    let start = |place: usize| (place * each).min(all.num_rows());
    (0..count).map(|place| all.slice(start(place), start(place + 1) - start(place))).collect()
}

fn is_file_action(all: &RecordBatch) -> BooleanArray {
    let valid = |name: &str, row: usize| all.column_by_name(name).unwrap().is_valid(row);
    (0..all.num_rows()).map(|row| Some(valid("add", row) || valid("remove", row))).collect()
}

fn sidecars(log: &Path, all: &RecordBatch, count: usize) -> Vec<(String, u64)> {
    std::fs::create_dir_all(log.join("_sidecars")).unwrap();
    let files = filter_record_batch(all, &is_file_action(all)).unwrap();
    let columns = ["add", "remove"].map(|name| files.schema().index_of(name).unwrap());
    let files = files.project(&columns).unwrap();
    let write_one = |(place, part): (usize, RecordBatch)| {
        let name = format!("part{place}.parquet");
        let path = log.join("_sidecars").join(&name);
        write(&path, &part);
        (name, std::fs::metadata(&path).unwrap().len())
    };
    pieces(&files, count).into_iter().enumerate().map(write_one).collect()
}

/// The rows that are no file actions, then a row for each sidecar and one for the checkpoint itself.
fn parquet_head(all: &RecordBatch, sidecars: &[(String, u64)]) -> RecordBatch {
    let files = is_file_action(all);
    let kept: Vec<Option<u32>> =
        (0..all.num_rows()).filter(|row| !files.value(*row)).map(|row| Some(row as u32)).collect();
    let (own, extra) = (kept.len(), sidecars.len() + 1);
    let rows = UInt32Array::from([kept, vec![None; extra]].concat());
    let mut fields: Vec<Arc<Field>> = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in all.schema().fields().iter().zip(all.columns()) {
        if ["add", "remove", "sidecar", "checkpointMetadata"].contains(&field.name().as_str()) {
            continue;
        }
        fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        columns.push(take(column, &rows, None).unwrap());
    }
    let at = |row: usize| row.checked_sub(own);
    let of_sidecar = |row: usize| at(row).and_then(|i| sidecars.get(i));
    let total = own + extra;
    let paths: StringArray = (0..total).map(|row| of_sidecar(row).map(|s| s.0.clone())).collect();
    let sizes: Int64Array = (0..total).map(|row| of_sidecar(row).map(|s| s.1 as i64)).collect();
    let times: Int64Array = (0..total).map(|row| of_sidecar(row).map(|_| 1)).collect();
    let version: Int64Array = (0..total).map(|row| (row + 1 == total).then_some(1)).collect();
    let mut push = |name: &str, children: Vec<(&str, DataType, ArrayRef)>, valid: Vec<bool>| {
        let inner: Fields = children.iter().map(|(n, t, _)| Field::new(*n, t.clone(), true)).collect();
        let arrays = children.into_iter().map(|(_, _, a)| a).collect();
        let all = StructArray::new(inner.clone(), arrays, Some(valid.into()));
        fields.push(Arc::new(Field::new(name, DataType::Struct(inner), true)));
        columns.push(Arc::new(all));
    };
    let valid = (0..total).map(|row| of_sidecar(row).is_some()).collect();
    push(
        "sidecar",
        vec![
            ("path", DataType::Utf8, Arc::new(paths)),
            ("sizeInBytes", DataType::Int64, Arc::new(sizes)),
            ("modificationTime", DataType::Int64, Arc::new(times)),
        ],
        valid,
    );
    let valid = (0..total).map(|row| row + 1 == total).collect();
    push("checkpointMetadata", vec![("version", DataType::Int64, Arc::new(version))], valid);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn write(path: &PathBuf, batch: &RecordBatch) {
    // Several row groups, so that they are read one after the other.
    let properties =
        parquet::file::properties::WriterProperties::builder().set_max_row_group_row_count(Some(7)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..PARTITIONS.len(), any::<bool>()).prop_map(|(partition, tagged)| Change::Add { partition, tagged }),
        2 => any::<usize>().prop_map(Change::Remove),
        2 => (any::<usize>(), 0..VECTORS.len()).prop_map(|(i, v)| Change::Mark(i, v)),
        1 => any::<usize>().prop_map(Change::Restore),
        1 => any::<bool>().prop_map(Change::Domain),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::None),
        Just(Kind::Classic),
        (2usize..4).prop_map(Kind::Parts),
        (1usize..3).prop_map(Kind::HeadJson),
        (1usize..3).prop_map(Kind::HeadParquet),
    ]
}

fn compare(commits: &[Vec<Change>], kind: Kind, at: u64) {
    let creation = format!("{PROTOCOL}\n{}", metadata("string", true, "{}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut log = Log::default();
    let table = TestTable::with_commits(&[&creation]);
    let mut expected = 0;
    for (place, changes) in commits.iter().enumerate() {
        let version = place as u64 + 1;
        let text = log.commit(changes, version);
        std::fs::write(table.commit_path(version), text).unwrap();
        if version == at && kind != Kind::None {
            runtime.block_on(write_checkpoint(&table.store(), &table.root(), version)).unwrap();
            let head: Vec<String> = creation.lines().map(str::to_owned).chain(log.domain.clone()).collect();
            reshape(&table.path().join("_delta_log"), version, kind, &head);
        }
        expected = log.live.len();
    }
    runtime.block_on(async {
        let (store, root) = (table.store(), table.root());
        let (direct, _) = both(&store, &root, TimeTravel::Latest).await;
        assert_eq!((direct.facts.source, direct.facts.files.len()), ("checkpoint", expected));
        let checkpoint = (kind != Kind::None && at <= commits.len() as u64).then_some(at);
        assert_eq!(direct.facts.log.checkpoint_version, checkpoint);
        for version in [at.saturating_sub(1), at] {
            if version <= commits.len() as u64 {
                both(&store, &root, TimeTravel::Version(version)).await;
            }
        }
        // Statistics of the commits say the rows of every file; those of a checkpoint are not all looked at.
        assert!(kind != Kind::None || direct.facts.files.rows().is_some());
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 60, ..ProptestConfig::default() })]
    #[test]
    fn any_log_is_read_as_the_kernel_reads_it(
        commits in prop::collection::vec(prop::collection::vec(change(), 1..8), 1..8),
        kind in kind(),
        at in 1u64..8,
    ) {
        compare(&commits, kind, at);
    }
}

#[test]
fn each_kind_of_checkpoint_is_understood() {
    let adds = |n: usize| (0..n).map(|i| Change::Add { partition: i % 4, tagged: i % 3 == 0 }).collect::<Vec<_>>();
    let commits = [
        adds(20),
        vec![Change::Mark(3, 0), Change::Remove(9), Change::Domain(true)],
        vec![Change::Mark(3, 1), Change::Restore(0), Change::Domain(false)],
        vec![Change::Remove(3), Change::Mark(1, 2)],
    ];
    for kind in [Kind::None, Kind::Classic, Kind::Parts(3), Kind::HeadJson(2), Kind::HeadParquet(2)] {
        for at in 1..=4 {
            compare(&commits, kind, at);
        }
    }
}
