use proptest::prelude::*;

use super::*;

const SCHEMA: &str = r#"{"type": "record", "name": "manifest_entry", "fields": [
    {"name": "status", "type": "int", "field-id": 0},
    {"name": "snapshot_id", "type": ["null", "long"], "field-id": 1},
    {"name": "sequence_number", "type": ["null", "long"], "field-id": 3},
    {"name": "file_sequence_number", "type": ["null", "long"], "field-id": 4},
    {"name": "unheard_of", "field-id": 999, "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
    {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
        {"name": "content", "type": "int", "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {"name": "partition", "field-id": 102, "type": {"type": "record", "name": "r102", "fields": [
            {"name": "k", "type": ["null", "int"], "field-id": 1000}]}},
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        {"name": "first_row_id", "type": ["null", "long"], "field-id": 142}]}}]}"#;

const METADATA: &str = r#"{"format-version": 3, "location": "/t", "last-updated-ms": 0, "current-schema-id": 0,
    "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 7, "name": "k", "required": false, "type": "int"}]}],
    "default-spec-id": 2, "partition-specs": [{"spec-id": 2, "fields": [
        {"name": "k", "source-id": 7, "field-id": 1000, "transform": "identity"},
        {"name": "gone", "source-id": 8, "field-id": 1001, "transform": "void"}]}]}"#;

#[derive(Debug, Clone)]
struct Row {
    status: i64,
    snapshot_id: Option<i64>,
    sequence_number: Option<i64>,
    content: i64,
    rows: i64,
    first_row_id: Option<i64>,
}

fn long(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn optional(bytes: &mut Vec<u8>, value: Option<i64>) {
    long(bytes, i64::from(value.is_some()));
    if let Some(value) = value {
        long(bytes, value);
    }
}

fn text(bytes: &mut Vec<u8>, value: &[u8]) {
    long(bytes, value.len() as i64);
    bytes.extend(value);
}

fn manifest(rows: &[Row]) -> Vec<u8> {
    let mut block = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        long(&mut block, row.status);
        for value in [row.snapshot_id, row.sequence_number, row.sequence_number] {
            optional(&mut block, value);
        }
        // A map with one list of two numbers, which nobody asks for.
        long(&mut block, 1);
        text(&mut block, b"key");
        long(&mut block, -2);
        long(&mut block, 16);
        block.extend([0; 16]);
        block.extend([0, 0]);
        long(&mut block, row.content);
        text(&mut block, number.to_string().as_bytes());
        text(&mut block, b"PARQUET");
        optional(&mut block, (number % 2 == 0).then_some(number as i64));
        long(&mut block, row.rows);
        long(&mut block, 1);
        optional(&mut block, row.first_row_id);
    }
    let mut file = b"Obj\x01".to_vec();
    long(&mut file, 2);
    text(&mut file, b"avro.schema");
    text(&mut file, SCHEMA.as_bytes());
    text(&mut file, b"avro.codec");
    text(&mut file, b"null");
    file.push(0);
    file.extend([7; 16]);
    long(&mut file, rows.len() as i64);
    text(&mut file, &block);
    file.extend([7; 16]);
    file
}

fn listed(content: ManifestContent, sequence_number: i64, first_row_id: Option<i64>) -> ManifestFile {
    ManifestFile {
        partition_spec_id: Some(2),
        content,
        sequence_number,
        first_row_id,
        ..ManifestFile::unlisted("m", 70)
    }
}

fn read(rows: &[Row], listed: &ManifestFile) -> Result<Vec<Entry>> {
    let metadata = TableMetadata::parse(METADATA.as_bytes()).unwrap();
    parse(&manifest(rows), listed, &metadata, &Metrics::All)
}

fn row() -> impl Strategy<Value = Row> {
    let numbers = (prop::option::of(1..9i64), prop::option::of(1..9i64), prop::option::of(500..900i64));
    (0..3i64, numbers, 0..50i64).prop_map(|(status, (snapshot_id, number, first_row_id), rows)| Row {
        status,
        snapshot_id,
        // Only what is new may leave its number to the manifest.
        sequence_number: if status == 0 { Some(number.unwrap_or(1)) } else { number },
        content: 0,
        rows,
        first_row_id,
    })
}

proptest! {
    #[test]
    fn entries_inherit_what_they_lack(rows in prop::collection::vec(row(), 0..20), first in prop::option::of(100..200i64)) {
        let entries = read(&rows, &listed(ManifestContent::Data, 9, first)).unwrap();
        prop_assert_eq!(entries.len(), rows.len());
        for (place, (entry, row)) in entries.iter().zip(&rows).enumerate() {
            prop_assert_eq!(entry.snapshot_id, Some(row.snapshot_id.unwrap_or(70)));
            let inherited = if row.status == 1 { Some(9) } else { None };
            prop_assert_eq!(entry.sequence_number, row.sequence_number.or(inherited));
            prop_assert_eq!(entry.file_sequence_number, row.sequence_number.or(inherited));
            let counts = |row: &&Row| row.status != 2 && row.first_row_id.is_none();
            let before: i64 = rows[..place].iter().filter(counts).map(|row| row.rows).sum();
            let expected = match (first, row.first_row_id) {
                (None, _) => None,
                (_, Some(own)) => Some(own),
                (Some(first), None) => counts(&row).then_some(first + before),
            };
            prop_assert_eq!(entry.file.first_row_id, expected);
            let k = if place % 2 == 0 { Scalar::Long(place as i64) } else { Scalar::Null };
            prop_assert_eq!(&entry.file.partition, &vec![k, Scalar::Null]);
        }
    }
}

fn plain() -> Row {
    Row { status: 1, snapshot_id: None, sequence_number: None, content: 0, rows: 5, first_row_id: None }
}

#[test]
fn files_of_old_manifests_have_the_number_0() {
    let entries = read(&[Row { status: 0, ..plain() }], &listed(ManifestContent::Data, 0, None)).unwrap();
    assert_eq!((entries[0].sequence_number, entries[0].file_sequence_number), (Some(0), Some(0)));
}

#[test]
fn entries_that_make_no_sense_are_refused() {
    let data = listed(ManifestContent::Data, 9, Some(0));
    let deletes = listed(ManifestContent::Deletes, 9, None);
    for (row, listed, kind) in [
        (Row { status: 0, ..plain() }, &data, lakesmith_core::ErrorKind::Corrupt),
        (Row { status: 3, ..plain() }, &data, lakesmith_core::ErrorKind::Corrupt),
        (Row { rows: -1, ..plain() }, &data, lakesmith_core::ErrorKind::Corrupt),
        (Row { content: 1, ..plain() }, &data, lakesmith_core::ErrorKind::Corrupt),
        (plain(), &deletes, lakesmith_core::ErrorKind::Corrupt),
        (Row { content: 3, ..plain() }, &deletes, lakesmith_core::ErrorKind::Unsupported),
    ] {
        let error = read(std::slice::from_ref(&row), listed).unwrap_err();
        assert_eq!(error.kind(), kind, "{row:?}");
        assert_eq!(error.context_value("file"), Some("0"), "{row:?}");
    }
    let huge = Row { rows: i64::MAX, ..plain() };
    assert!(read(&[huge.clone(), huge], &listed(ManifestContent::Data, 9, Some(5))).is_err());
    let elsewhere = ManifestFile { partition_spec_id: Some(3), ..data };
    assert_eq!(read(&[], &elsewhere).unwrap_err().kind(), lakesmith_core::ErrorKind::Corrupt);
}

#[test]
fn equal_bounds_of_the_path_name_the_one_file_that_is_meant() {
    let mut file = ContentFile { content: Content::PositionDeletes, ..ContentFile::empty(0) };
    assert_eq!(file.deletes_of(), None);
    file.lower_bounds = Some(vec![(DELETED_PATH, b"a".to_vec())]);
    file.upper_bounds = Some(vec![(DELETED_PATH, b"b".to_vec())]);
    assert_eq!(file.deletes_of(), None);
    file.upper_bounds = file.lower_bounds.clone();
    assert_eq!(file.deletes_of(), Some("a"));
    file.referenced_data_file = Some("c".into());
    assert_eq!(file.deletes_of(), Some("c"));
    file.content = Content::EqualityDeletes;
    assert_eq!(file.deletes_of(), None);
}
