//! Bounds of columns, by statistics and by partitions.

use lakesmith_core::Result;
use lakesmith_core::layout::OrderKey;
use lakesmith_core::table::{ColumnBounds, DataType, Field, FileId, Scalar};
use lakesmith_iceberg::{At, IcebergTable, bucket_columns, bucket_of, column_bounds};
use serde_json::json;

use crate::fixtures::{ALL, Fixture};

fn key(field: &Field) -> OrderKey {
    OrderKey { path: vec![field.physical.clone()], name: vec![field.name.clone()], data_type: field.data_type.clone() }
}

async fn bounds(fixture: &Fixture, table: &IcebergTable, columns: &[&str]) -> Result<Vec<ColumnBounds>> {
    let keys: Vec<OrderKey> = columns.iter().map(|name| key(table.state.schema.field(name).unwrap())).collect();
    let files: Vec<FileId> = table.state.files.iter().map(|f| f.id).collect();
    column_bounds(&fixture.store, &fixture.root, table, &keys, &files).await
}

pub(crate) async fn read_all_bounds(fixture: &Fixture, table: &IcebergTable) -> Result<()> {
    let names: Vec<&str> = table.state.schema.fields.iter().map(|f| f.name.as_str()).collect();
    bounds(fixture, table, &names).await.map(drop)
}

#[tokio::test]
async fn ids_that_fill_a_range_are_bounded_by_it() {
    for name in ALL {
        let fixture = Fixture::open(name).await;
        let table = fixture.load(At::Latest).await.unwrap();
        let Some(DataType::Long) = table.state.schema.field("id").map(|f| &f.data_type) else { continue };
        let found = bounds(&fixture, &table, &["id"]).await.unwrap().remove(0);
        for (place, file) in table.state.files.iter().enumerate() {
            let rows = file.rows.unwrap();
            assert!(found.tight[place], "{name} {}", file.path);
            match (&found.low[place], &found.high[place], found.nulls[place]) {
                (Some(Scalar::Long(low)), Some(Scalar::Long(high)), Some(0)) => {
                    assert!((high - low) as u64 + 1 >= rows, "{name} {}: {low} to {high}, {rows} rows", file.path);
                }
                other => panic!("{name} {}: {other:?}", file.path),
            }
        }
    }
}

#[tokio::test]
async fn partition_values_bound_the_columns_that_they_come_from() {
    let fixture = Fixture::open("part_more").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let found = bounds(&fixture, &table, &["k", "d"]).await.unwrap();
    for (place, file) in table.state.files.iter().enumerate() {
        let values = table.partition_values(file.id);
        let rows = file.rows.unwrap();
        if values[1].is_null() {
            for column in &found {
                assert_eq!((&column.low[place], &column.high[place], column.nulls[place]), (&None, &None, Some(rows)));
            }
            continue;
        }
        let (low, high) = (found[0].low[place].clone(), found[0].high[place].clone());
        assert_eq!((low.as_ref(), high.as_ref()), (Some(&values[1]), Some(&values[1])));
        assert_eq!((found[0].nulls[place], found[0].tight[place]), (Some(0), true));
        let (first, last) = if values[0] == Scalar::Long(672) { (20_454, 20_484) } else { (20_485, 20_512) };
        assert!(found[1].low[place].as_ref().unwrap() >= &Scalar::Date(first), "{:?}", found[1].low[place]);
        assert!(found[1].high[place].as_ref().unwrap() <= &Scalar::Date(last), "{:?}", found[1].high[place]);
    }
}

#[tokio::test]
async fn the_bucket_of_a_file_is_that_of_its_values() {
    let fixture = Fixture::open("part_transforms").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let columns = bucket_columns(&table);
    assert!(!columns.is_empty());
    let mut checked = 0;
    for column in &columns {
        let name = table.schema().name_of(column.source_id).unwrap();
        let field = table.state.schema.field(&name).unwrap();
        let found = bounds(&fixture, &table, &[&name]).await.unwrap().remove(0);
        for (place, file) in table.state.files.iter().enumerate() {
            let Some(bucket) = column.bucket(&table, file.id) else { continue };
            assert!((0..column.buckets as i32).contains(&bucket));
            // The smallest and the largest value are both in the file, where they are whole.
            for bound in [&found.low[place], &found.high[place]].into_iter().flatten().filter(|_| found.tight[place]) {
                assert_eq!(bucket_of(bound, &field.data_type, None, column.buckets), Some(bucket), "{}", file.path);
                checked += 1;
            }
        }
    }
    assert!(checked > 0, "no bucket was compared with a value");
}

#[tokio::test]
async fn files_are_answered_in_the_order_asked_and_unknown_columns_say_nothing() {
    let fixture = Fixture::open("many_manifests").await;
    let table = fixture.load(At::Latest).await.unwrap();
    let id = key(table.state.schema.field("id").unwrap());
    let all = bounds(&fixture, &table, &["id"]).await.unwrap().remove(0);
    let last = FileId(table.state.files.len() as u32 - 1);
    let nowhere = OrderKey { path: vec!["nowhere".into()], name: vec!["nowhere".into()], data_type: DataType::Long };
    let asked = [last, FileId(0), last];
    let found = column_bounds(&fixture.store, &fixture.root, &table, &[id, nowhere], &asked).await.unwrap();
    let expected: Vec<_> = asked.iter().map(|file| all.low[file.0 as usize].clone()).collect();
    assert_eq!(found[0].low, expected);
    assert_eq!(found[1], ColumnBounds::unknown(3));
    assert_eq!(json!(all.low.len()), fixture.expected["data_files"]);
}
