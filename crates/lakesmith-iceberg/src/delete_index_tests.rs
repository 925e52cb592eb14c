use lakesmith_core::table::vector::VectorLocation;
use proptest::prelude::*;

use super::*;

const PATHS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Kind {
    Vector(usize),
    PositionsOf(usize),
    Positions,
    Equality,
}

#[derive(Debug, Clone)]
struct Delete {
    kind: Kind,
    spec_id: i32,
    partition: Option<i64>,
    number: i64,
}

#[derive(Debug, Clone)]
struct Data {
    path: usize,
    spec_id: i32,
    partition: Option<i64>,
    number: i64,
}

fn values(spec_id: i32, partition: Option<i64>) -> Vec<Scalar> {
    // Spec 0 is unpartitioned.
    if spec_id == 0 { Vec::new() } else { vec![partition.map_or(Scalar::Null, Scalar::Long)] }
}

fn info(name: usize) -> DeleteInfo {
    DeleteInfo {
        unique_id: name.to_string(),
        storage_type: "puffin".into(),
        path_or_inline: String::new(),
        offset: None,
        size_in_bytes: 0,
        cardinality: 1,
        at: VectorLocation::Inline(Vec::new()),
    }
}

/// The rules of the specification, one by one, for each pair of a data file and a delete.
fn expected(data: &Data, deletes: &[Delete]) -> Deletes {
    let is_vector = |d: &Delete| matches!(d.kind, Kind::Vector(path) if path == data.path);
    let vector = deletes.iter().position(is_vector);
    let same = |d: &Delete| {
        values(d.spec_id, d.partition) == values(data.spec_id, data.partition) && d.spec_id == data.spec_id
    };
    let applies = |d: &Delete| match d.kind {
        Kind::Vector(_) => false,
        Kind::PositionsOf(path) => vector.is_none() && path == data.path && data.number <= d.number,
        Kind::Positions => vector.is_none() && same(d) && data.number <= d.number,
        Kind::Equality => (d.spec_id == 0 || same(d)) && data.number < d.number,
    };
    let files = (0..).zip(deletes).filter(|(_, d)| applies(d)).map(|(id, _)| DeleteFileId(id)).collect();
    Deletes { vector: vector.map(info), files }
}

fn place() -> impl Strategy<Value = (i32, Option<i64>, i64)> {
    (0..3i32, prop::option::of(0..3i64), 1..6i64)
}

fn delete() -> impl Strategy<Value = Delete> {
    let kind = prop_oneof![
        (0..PATHS.len()).prop_map(Kind::Vector),
        (0..PATHS.len()).prop_map(Kind::PositionsOf),
        Just(Kind::Positions),
        Just(Kind::Equality),
    ];
    (kind, place()).prop_map(|(kind, (spec_id, partition, number))| Delete { kind, spec_id, partition, number })
}

fn data() -> impl Strategy<Value = Data> {
    (0..PATHS.len(), place()).prop_map(|(path, (spec_id, partition, number))| Data { path, spec_id, partition, number })
}

proptest! {
    #[test]
    fn the_index_finds_what_the_rules_say(deletes in prop::collection::vec(delete(), 0..40), data in data()) {
        let mut index = DeleteIndex::default();
        let (mut kept, mut vectors) = (Vec::new(), std::collections::HashSet::new());
        for delete in deletes {
            if let Kind::Vector(path) = delete.kind && !vectors.insert(path) {
                let second = index.add_vector(PATHS[path].into(), delete.number, info(99));
                prop_assert_eq!(second.unwrap_err().kind(), lakesmith_core::ErrorKind::Corrupt);
                continue;
            }
            let id = DeleteFileId(kept.len() as u32);
            let key = PartitionKey::new(delete.spec_id, &values(delete.spec_id, delete.partition));
            match delete.kind {
                Kind::Vector(path) => index.add_vector(PATHS[path].into(), delete.number, info(kept.len())).unwrap(),
                Kind::PositionsOf(path) => index.add_positions_of(PATHS[path].into(), delete.number, id),
                Kind::Positions => index.add_positions(key, delete.number, id),
                Kind::Equality => index.add_equality((delete.spec_id != 0).then_some(key), delete.number, id),
            }
            kept.push(delete);
        }
        index.build();
        let key = PartitionKey::new(data.spec_id, &values(data.spec_id, data.partition));
        let found = index.of(PATHS[data.path], &key, data.number);
        let is_older = |d: &Delete| matches!(d.kind, Kind::Vector(path) if path == data.path) && d.number < data.number;
        if kept.iter().any(is_older) {
            prop_assert_eq!(found.unwrap_err().kind(), lakesmith_core::ErrorKind::Corrupt);
        } else {
            prop_assert_eq!(found.unwrap(), expected(&data, &kept));
        }
    }
}

#[test]
fn partitions_that_only_compare_equal_are_two() {
    let key = |value: f64| PartitionKey::new(1, &[Scalar::Double(value)]);
    assert_ne!(key(0.0), key(-0.0));
    assert_eq!(key(f64::NAN), key(-f64::NAN));
    let text = |a: &str, b: &str| PartitionKey::new(1, &[Scalar::String(a.into()), Scalar::String(b.into())]);
    assert_ne!(text("ab", "c"), text("a", "bc"));
    assert_ne!(PartitionKey::new(1, &[]), PartitionKey::new(2, &[]));
}
