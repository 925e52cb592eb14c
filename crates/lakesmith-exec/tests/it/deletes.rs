//! Deleted rows stay away, and the row map tells where the others went.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use lakesmith_core::table::{DataType, RowTrackingColumns, vector::VectorLocation};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

use crate::bench_table::{Bench, field, inline, plain_write, spec};

fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("v", Arc::new(Int64Array::from_iter_values(range)) as _)]).unwrap()
}

fn column(batch: &RecordBatch, name: &str) -> Vec<i64> {
    batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn row_map_leads_every_live_row_to_its_output(
        files in prop::collection::vec((1u64..400, prop::collection::btree_set(0u64..400, 0..80)), 1..5),
        cap in prop::option::of(1u64..300),
        group_rows in 1usize..200,
    ) {
        let mut bench = Bench::new();
        let mut start = 0;
        let mut live: Vec<Vec<i64>> = Vec::new();
        for (rows, deleted) in &files {
            let deleted: Vec<u64> = deleted.iter().copied().filter(|d| d < rows).collect();
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
            let input = bench.add(&numbers(start..start + *rows as i64), properties);
            live.push((0..*rows).filter(|r| !deleted.contains(r)).map(|r| start + r as i64).collect());
            if !deleted.is_empty() {
                input.deletes = Some(inline(deleted));
            }
            start += *rows as i64;
        }
        let mut write = plain_write();
        write.max_rows_per_file = cap;
        write.row_group_rows = 64;
        let outcome = bench.run(spec(vec![field("v", DataType::Long)]), write).unwrap();
        let expected: Vec<i64> = live.iter().flatten().copied().collect();
        prop_assert_eq!(outcome.rows_out, expected.len() as u64);
        let outputs: Vec<Vec<i64>> = outcome.outputs.iter().map(|o| column(&bench.rows(&o.path), "v")).collect();
        prop_assert_eq!(outputs.concat(), expected);
        prop_assert!(outputs.iter().all(|o| !o.is_empty() && cap.is_none_or(|c| o.len() as u64 <= c)));
        let mut mapped = 0;
        for s in &outcome.row_map {
            for k in 0..s.rows {
                let value = outputs[s.output as usize][(s.output_start + k) as usize];
                prop_assert_eq!(value, live[s.input.0 as usize][(s.first_live + k) as usize]);
            }
            mapped += s.rows;
        }
        prop_assert_eq!(mapped, outcome.rows_in);
    }
}

#[test]
fn no_output_is_made_when_every_row_is_deleted() {
    let mut bench = Bench::new();
    bench.add(&numbers(0..10), WriterProperties::default()).deletes = Some(inline(0..10));
    let outcome = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap();
    assert_eq!((outcome.outputs.len(), outcome.rows_in, outcome.rows_out), (0, 0, 0));
    assert_eq!(bench.other_names(), Vec::<String>::new());
}

#[test]
fn vectors_that_contradict_the_log_are_refused_with_their_class() {
    let framed = |bitmap: &[u8]| {
        let mut bytes = vec![1u8];
        bytes.extend((bitmap.len() as u32).to_be_bytes());
        bytes.extend(bitmap);
        bytes.extend(crc32fast::hash(bitmap).to_be_bytes());
        bytes
    };
    type Spoil = fn(&mut Vec<u8>, &mut lakesmith_core::table::DeleteInfo);
    let cases: [(&str, Vec<u64>, Spoil); 5] = [
        ("DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH", vec![1, 3], |bytes, _| bytes[20] ^= 1),
        ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", vec![1, 3], |_, info| info.size_in_bytes -= 1),
        ("DELTA_DELETION_VECTOR_SIZE_MISMATCH", vec![1, 3], |_, info| info.size_in_bytes += 100),
        ("DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH", vec![1, 3], |_, info| info.cardinality += 1),
        ("DELTA_DELETION_VECTOR_INVALID_ROW_INDEX", vec![1, 10], |_, _| {}),
    ];
    for (class, rows, spoil) in cases {
        let mut bench = Bench::new();
        let mut info = inline(rows);
        let VectorLocation::Inline(bitmap) = info.at.clone() else { unreachable!() };
        let mut bytes = framed(&bitmap);
        spoil(&mut bytes, &mut info);
        std::fs::write(bench.path("vector.bin"), bytes).unwrap();
        info.at = VectorLocation::File { location: bench.root().join("vector.bin").to_string(), offset: 1 };
        bench.add(&numbers(0..10), WriterProperties::default()).deletes = Some(info);
        let error = bench.run(spec(vec![field("v", DataType::Long)]), plain_write()).unwrap_err();
        assert_eq!(error.class_name(), class, "{error}");
        assert_eq!(bench.other_names(), ["vector.bin"]);
    }
}

#[test]
fn row_ids_count_deleted_rows_and_materialised_values_win() {
    let columns = RowTrackingColumns { row_id: "_rid".into(), commit_version: "_rcv".into(), field_ids: None };
    let mut bench = Bench::new();
    let input = bench.add(&numbers(0..5), WriterProperties::default());
    input.deletes = Some(inline([1, 2]));
    (input.base_row_id, input.row_commit_version) = (Some(100), Some(7));
    let moved = RecordBatch::try_from_iter([
        ("v", Arc::new(Int64Array::from(vec![5, 6, 7])) as _),
        ("_rid", Arc::new(Int64Array::from(vec![Some(40), None, Some(41)])) as _),
        ("_rcv", Arc::new(Int64Array::from(vec![Some(1), None, Some(2)])) as _),
    ])
    .unwrap();
    let input = bench.add(&moved, WriterProperties::default());
    (input.base_row_id, input.row_commit_version) = (Some(200), Some(9));
    let mut write = plain_write();
    write.row_tracking = Some(columns);
    let outcome = bench.run(spec(vec![field("v", DataType::Long)]), write.clone()).unwrap();
    let rows = bench.rows(&outcome.outputs[0].path);
    assert_eq!(column(&rows, "v"), [0, 3, 4, 5, 6, 7]);
    assert_eq!(column(&rows, "_rid"), [100, 103, 104, 40, 201, 41]);
    assert_eq!(column(&rows, "_rcv"), [7, 7, 7, 1, 9, 2]);

    let mut bench = Bench::new();
    bench.add(&numbers(0..5), WriterProperties::default());
    let error = bench.run(spec(vec![field("v", DataType::Long)]), write).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS");
    assert_eq!(bench.other_names(), Vec::<String>::new());
}
