//! Tables to work on and a reader that shares no code with the rewriter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use lakesmith::op::{FileEntry, Operation, Report, TimeTravel};
use lakesmith::{Result, Session, SessionOptions, Store};
use lakesmith_testkit::{BuiltTable, TableBuilder, read_vector};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Eight small files in three appends, four of them with deleted rows: 800 rows, 760 live.
pub(crate) fn small_files(folder: &Path) -> BuiltTable {
    let every_tenth: Vec<u64> = (0..100).step_by(10).collect();
    let builder = TableBuilder::new(folder).append(300, 3).append(300, 3).append(200, 2);
    [0, 2, 4, 7].into_iter().fold(builder, |b, file| b.delete_rows(file, &every_tenth)).build().unwrap()
}

pub(crate) fn session() -> Session {
    Session::new(SessionOptions::default()).unwrap()
}

/// A session whose requests go to `store`.
pub(crate) fn session_on(store: Store) -> Session {
    let opener: lakesmith::StoreOpener = Arc::new(move |_| Ok(store.clone()));
    Session::new(SessionOptions { store: Some(opener), ..Default::default() }).unwrap()
}

pub(crate) fn files(table: &BuiltTable) -> Vec<FileEntry> {
    match session().run(&table.folder.to_string_lossy(), Operation::Files(TimeTravel::Latest)).unwrap() {
        Report::Files(files) => files.iter().collect(),
        other => panic!("{other:?}"),
    }
}

/// Where a path of the log is.
pub(crate) fn on_disk(table: &BuiltTable, path: &str) -> PathBuf {
    table.root.resolve(path).unwrap().local_path().unwrap()
}

/// Live ids with how often each is seen, read with the Parquet library alone.
pub(crate) fn ids(table: &BuiltTable) -> BTreeMap<i64, u64> {
    let mut seen = BTreeMap::new();
    for file in files(table) {
        let built = table.files.iter().find(|f| f.path == file.path);
        let deleted = match (&file.deletion_vector, built) {
            (None, _) => vec![],
            (Some(_), Some(built)) if built.deleted.len() as u64 == file.deleted_rows => built.deleted.clone(),
            (Some(id), _) => read_vector(&table.folder, id).unwrap().iter().collect(),
        };
        assert_eq!(deleted.len() as u64, file.deleted_rows);
        let opened = std::fs::File::open(on_disk(table, &file.path)).unwrap();
        let mut position = 0;
        for batch in ParquetRecordBatchReaderBuilder::try_new(opened).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let column = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
            for i in 0..column.len() {
                if !deleted.contains(&position) {
                    *seen.entry(column.value(i)).or_insert(0) += 1;
                }
                position += 1;
            }
        }
        assert_eq!(Some(position), file.num_records);
    }
    seen
}

pub(crate) fn run(
    session: &Session,
    table: &BuiltTable,
    operation: Operation,
) -> Result<lakesmith::op::OptimizeReport> {
    match session.run(&table.folder.to_string_lossy(), operation)? {
        Report::Optimize(report) => Ok(*report),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn optimize(session: &Session) -> Operation {
    Operation::Optimize(session.optimize_options().unwrap())
}

pub(crate) fn purge(session: &Session) -> Operation {
    Operation::Reorg(session.reorg_options().unwrap())
}
