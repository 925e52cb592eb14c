//! What is wrong with a file or its metadata is said of that file, and only to those who need it.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int64Array};
use lakesmith::ErrorKind;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use crate::asking::{ask, ask_in, rows, session};
use crate::crafted::Crafted;

fn numbers(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

fn no_text() -> ArrayRef {
    Arc::new(BinaryArray::from_vec(vec![b"x", b"\xff\xfe"]))
}

#[test]
fn a_value_that_cannot_be_read_is_told_alike_by_rows_and_by_filters() {
    let table = Crafted::new(&json!([Crafted::field("id", "long"), Crafted::field("s", "string")]), &[], &[])
        .with_file(vec![("id", numbers(2)), ("s", no_text())], &json!({}));
    let t = table.sql();
    for sql in [
        format!("SELECT s FROM {t}"),
        format!("SELECT id FROM {t} WHERE s = 'y'"),
        format!("SELECT id FROM {t} WHERE id >= 0 AND s LIKE '%y'"),
        format!("SELECT s FROM {t} ORDER BY s LIMIT 1"),
    ] {
        let error = ask(&sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}: {error:?}");
        assert_eq!(error.context_value("column"), Some("s"), "{sql}: {error:?}");
        assert!(error.context_value("path").is_some_and(|p| p.ends_with(".parquet")), "{sql}: {error:?}");
    }
    assert_eq!(rows(&format!("SELECT count(id) FROM {t} WHERE id > 0")), ["1"]);
}

#[test]
fn text_that_is_none_names_its_file() {
    let table =
        Crafted::new(&json!([Crafted::field("s", "string")]), &[], &[]).with_file(vec![("s", no_text())], &json!({}));
    let schema = Arc::new(parse_message_type("message m { optional binary s (UTF8); }").unwrap());
    let path = std::fs::read_dir(table.path()).unwrap().next().unwrap().unwrap().path();
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(vec![0xff, 0xfe])], Some(&[1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    let table = table.with_size(size);
    let t = table.sql();
    for sql in [format!("SELECT s FROM {t}"), format!("SELECT count(*) FROM {t} WHERE s > 'a'")] {
        let error = ask(&sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}: {error:?}");
        assert!(error.context_value("path").is_some_and(|p| p.ends_with(".parquet")), "{sql}: {error:?}");
    }
}

#[test]
fn a_partition_value_that_does_not_fit_is_corrupt() {
    let fields = json!([Crafted::field("id", "long"), Crafted::field("p", "byte")]);
    let table = Crafted::new(&fields, &["p"], &[])
        .with_file(vec![("id", numbers(1))], &json!({"partitionValues": {"p": "300"}}));
    let t = table.sql();
    for sql in [
        format!("SELECT * FROM {t}"),
        format!("SELECT * FROM {t} WHERE p = 1"),
        format!("SELECT * FROM {t} WHERE p + 1 = 1"),
    ] {
        let error = ask(&sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{sql}: {error:?}");
        assert_eq!(error.context_value("column"), Some("p"), "{sql}: {error:?}");
    }
}

#[test]
fn the_rows_that_a_file_lost_are_read_when_the_file_is() {
    let vector = json!({
        "storageType": "p", "pathOrInlineDv": "file:///no/such/vector.bin", "offset": 1, "sizeInBytes": 40, "cardinality": 1,
    });
    let stats = json!({"numRecords": 2, "tightBounds": false}).to_string();
    let table = Crafted::new(&json!([Crafted::field("id", "long")]), &[], &["deletionVectors"])
        .with_file(vec![("id", numbers(3))], &json!({"stats": json!({"numRecords": 3}).to_string()}))
        .with_file(vec![("id", numbers(2))], &json!({"stats": stats, "deletionVector": vector}));
    let t = table.sql();
    let mut session = session();
    ask_in(&mut session, &format!("EXPLAIN SELECT id FROM {t} WHERE id > 0")).unwrap();
    ask_in(&mut session, &format!("CREATE TEMPORARY VIEW v AS SELECT id FROM {t}")).unwrap();
    assert_eq!(rows(&format!("SELECT id FROM {t} LIMIT 1")), ["0"]);
    assert_eq!(ask_in(&mut session, "SELECT count(*) FROM v").unwrap().rows, [[json!(4)]]);
    let error = ask_in(&mut session, "SELECT id FROM v").unwrap_err();
    assert_eq!(error.class_name(), "FAILED_READ_FILE.FILE_NOT_EXIST", "{error:?}");
    assert!(error.message().contains("VACUUM"), "{error}");
}
