//! The golden Iceberg tables, which Spark wrote: the rows that Spark reads, at every snapshot, and none besides.

use lakesmith::ErrorKind;
use lakesmith_testkit::iceberg_fixture;
use serde_json::{Value, json};

use crate::asking::{ask, ask_in, rows, session};

const NAMES: [&str; 13] = [
    "branch_tag",
    "eq_deletes",
    "expired",
    "many_manifests",
    "nested",
    "part_more",
    "part_transforms",
    "pos_deletes",
    "sort_order",
    "unpart_40files",
    "v1_table",
    "v3_dv",
    "with_orphans",
];

fn table(name: &str) -> String {
    format!("iceberg.`{}`", iceberg_fixture(name).display())
}

fn facts(name: &str) -> Value {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iceberg");
    serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.expected.json"))).unwrap()).unwrap()
}

#[test]
fn every_golden_table_has_the_rows_that_spark_reads() {
    for name in NAMES {
        let (table, facts) = (table(name), facts(name));
        let mut columns: Vec<&str> =
            facts["schema"]["fields"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
        columns.sort_unstable();
        let all = columns.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let query = format!("SELECT count(*), sum(CAST(xxhash64({all}) AS DECIMAL(38,0))) FROM {table}");
        let expected = format!("{}|{}", facts["rows"], facts["spark_hash"].as_str().unwrap());
        assert_eq!(rows(&query), [expected], "{name}");
        let counted = rows(&format!("SELECT count(*) FROM {table}"));
        assert_eq!(counted, [facts["rows"].to_string()], "{name}");
    }
}

#[test]
fn branches_and_tags_are_versions() {
    let (table, facts) = (table("branch_tag"), facts("branch_tag"));
    for (name, count) in facts["ref_rows"].as_object().unwrap() {
        for version in [format!("VERSION AS OF '{name}'"), format!("FOR SYSTEM_VERSION AS OF '{name}'")] {
            assert_eq!(rows(&format!("SELECT count(id) FROM {table} {version}")), [count.to_string()], "{version}");
        }
        let id = &facts["refs"][name]["snapshot-id"];
        assert_eq!(rows(&format!("SELECT count(id) FROM {table} VERSION AS OF {id}")), [count.to_string()], "{name}");
    }
    let error = ask(&format!("SELECT * FROM {table} VERSION AS OF 'nobody'")).unwrap_err();
    assert!(error.message().contains("nobody"), "{error}");
    let error = ask(&format!("SELECT * FROM {table} TIMESTAMP AS OF '2001-01-01'")).unwrap_err();
    assert!(error.message().contains("older than"), "{error}");
}

#[test]
fn every_snapshot_can_be_read_and_has_its_own_rows() {
    for name in NAMES {
        let table = table(name);
        let snapshots = ask(&format!("SELECT snapshot_id, summary['total-records'] FROM {table}.snapshots")).unwrap();
        assert_eq!(snapshots.rows.len() as u64, facts(name)["snapshots"].as_u64().unwrap(), "{name}");
        for row in snapshots.rows {
            let count = rows(&format!("SELECT count(id) FROM {table} VERSION AS OF {}", row[0]));
            let live: u64 = count[0].parse().unwrap();
            let physical: u64 = row[1].as_str().unwrap().parse().unwrap();
            // What the summary counts are physical rows.
            assert!(live <= physical && live > 0, "{name} {}: {live} of {physical}", row[0]);
        }
    }
}

#[test]
fn files_that_are_skipped_hold_no_row_of_the_answer() {
    let filters = [
        "id = 17",
        "id > 40",
        "id < 0",
        "id BETWEEN 3 AND 5",
        "id IN (1, 47, 1000)",
        "id IS NULL",
        "id IS NOT NULL",
        "k = 3",
        "k <> 3",
        "k IS NULL",
        "k IS NOT NULL",
        "k > 5 OR id = 2",
        "NOT (k < 4)",
        "v = 'v7'",
        "v LIKE 'v1%'",
        "v >= 'v3'",
        "v IS NULL",
        "d = DATE'2026-01-10'",
        "d > DATE'2026-01-31'",
        "d < DATE'2025-01-01'",
        "d IS NULL",
        "ts >= TIMESTAMP'2026-01-03 00:00:00'",
        "ts < TIMESTAMP'2026-01-02 12:00:00'",
        "ts IS NULL",
        "x > 3.5",
        "x <= 0.0",
        "x IS NULL",
        "dec = 1.50",
        "dec > 10",
        "id % 7 = 3",
        "year(d) = 2026",
        "k = 3 AND d > DATE'2026-01-05'",
    ];
    for name in ["part_more", "part_transforms", "sort_order", "v3_dv", "pos_deletes", "eq_deletes"] {
        let table = table(name);
        let mut session = session();
        for filter in filters {
            let of = |from: &str| format!("SELECT count(*), sum(id), count(v) FROM {from} WHERE {filter}");
            let pruned = ask_in(&mut session, &of(&table)).unwrap_or_else(|e| panic!("{name} {filter}: {e:?}"));
            let whole = ask_in(&mut session, &of(&format!("(SELECT * FROM {table} LIMIT 1000000)"))).unwrap();
            assert_eq!(pruned, whole, "{name} {filter}");
        }
    }
}

#[test]
fn partitions_and_bounds_skip_files() {
    let read = |name: &str, filter: &str| {
        let paths = rows(&format!("SELECT path FROM input_files('SELECT * FROM {} WHERE {filter}')", table(name)));
        paths.len()
    };
    let all = |name: &str| facts(name)["data_files"].as_u64().unwrap() as usize;
    assert!(read("part_more", "k = 3") < all("part_more"));
    assert!(read("part_transforms", "ts < TIMESTAMP''2026-01-02 00:00:00''") < all("part_transforms"));
    assert_eq!(read("unpart_40files", "id = 17"), 1);
}

#[test]
fn hidden_columns_tell_of_the_row_and_its_file() {
    let table = table("v3_dv");
    let answer = rows(&format!("SELECT count(DISTINCT _row_id), count(DISTINCT _file), min(_pos) FROM {table}"));
    assert_eq!(answer, ["269|4|0"]);
    let shown = ask(&format!("SELECT *, _pos FROM {table} LIMIT 1")).unwrap();
    assert_eq!(shown.columns.last().map(String::as_str), Some("_pos"));
    assert!(!shown.columns.contains(&"_row_id".to_owned()));
    let partitions =
        rows(&format!("SELECT DISTINCT _spec_id, _partition.k FROM {} ORDER BY 2", self::table("part_more")));
    assert!(partitions.len() > 5, "{partitions:?}");
}

#[test]
fn an_iceberg_table_is_not_written() {
    let table = table("v1_table");
    for statement in [
        format!("DELETE FROM {table} WHERE id = 1"),
        format!("INSERT INTO {table} SELECT * FROM {table}"),
        format!("OPTIMIZE {table}"),
        format!("VACUUM {table}"),
        format!("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')"),
    ] {
        let error = ask(&statement).unwrap_err();
        assert_eq!(
            (error.kind(), error.class_name()),
            (ErrorKind::Unsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
            "{statement}"
        );
    }
    let as_delta = ask(&format!("SELECT * FROM delta.`{}`", iceberg_fixture("v1_table").display())).unwrap_err();
    assert_eq!(as_delta.class_name(), "PATH_NOT_FOUND");
    let folder = tempfile::tempdir().unwrap();
    let nothing = format!("SELECT * FROM iceberg.`{}`", folder.path().display());
    assert_eq!(ask(&nothing).unwrap_err().class_name(), "TABLE_OR_VIEW_NOT_FOUND");
}

#[test]
fn names_lead_to_tables_in_folders_of_a_catalog() {
    let mut session = session();
    let fixture = iceberg_fixture("branch_tag");
    for (key, value) in [
        ("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog".to_owned()),
        ("spark.sql.catalog.lake.type", "hadoop".to_owned()),
        ("spark.sql.catalog.lake.warehouse", fixture.parent().unwrap().parent().unwrap().display().to_string()),
    ] {
        ask_in(&mut session, &format!("SET {key} = {value}")).unwrap();
    }
    let mut count =
        |from: &str| ask_in(&mut session, &format!("SELECT count(*) FROM {from}")).map(|a| a.rows[0][0].clone());
    assert_eq!(count("lake.iceberg.branch_tag").unwrap(), 70);
    assert_eq!(count("lake.iceberg.branch_tag.refs").unwrap(), 3);
    assert_eq!(count("lake.iceberg.branch_tag VERSION AS OF 't1'").unwrap(), 30);
    assert_eq!(count("lake.iceberg.nobody").unwrap_err().class_name(), "TABLE_OR_VIEW_NOT_FOUND");
    let tables = ask_in(&mut session, "SHOW TABLES IN lake.iceberg").unwrap();
    assert!(tables.rows.len() >= NAMES.len(), "{tables:?}");
}

/// A table with the files of a golden one and a metadata file of its own.
fn with_metadata(name: &str, change: impl Fn(&mut Value)) -> (tempfile::TempDir, String) {
    let newest = facts(name)["current_metadata"].as_str().unwrap().to_owned();
    let bytes = std::fs::read(iceberg_fixture(name).join("metadata").join(newest)).unwrap();
    let mut metadata: Value = serde_json::from_slice(&bytes).unwrap();
    change(&mut metadata);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("metadata")).unwrap();
    std::fs::write(folder.path().join("metadata/v1.metadata.json"), metadata.to_string()).unwrap();
    let table = format!("iceberg.`{}`", folder.path().display());
    (folder, table)
}

#[test]
fn a_column_that_files_lack_has_its_initial_default() {
    let (_folder, table) = with_metadata("v3_dv", |metadata| {
        let fields = metadata["schemas"][0]["fields"].as_array_mut().unwrap();
        let later = [("n", "int", json!(7)), ("s", "string", json!("ü")), ("none", "long", Value::Null)];
        for (id, (name, kind, value)) in (90..).zip(later) {
            let mut field = json!({"id": id, "name": name, "required": false, "type": kind});
            if !value.is_null() {
                field["initial-default"] = value;
            }
            fields.push(field);
        }
    });
    let count =
        |filter: &str| rows(&format!("SELECT count(*), sum(n), min(s), count(none) FROM {table} WHERE {filter}"));
    assert_eq!(count("true"), ["269|1883|ü|0"]);
    for filter in ["n = 7", "n IS NOT NULL", "s = 'ü' AND n > 6", "none IS NULL"] {
        assert_eq!(count(filter), ["269|1883|ü|0"], "{filter}");
    }
    for filter in ["n = 8", "n IS NULL", "s <> 'ü'", "none = 1"] {
        assert_eq!(count(filter), ["0|null|null|0"], "{filter}");
    }
}

#[test]
fn a_column_that_files_lack_is_told_by_their_partition() {
    // Under another id no file has the column, as in files that were taken over from Hive.
    let (_folder, table) = with_metadata("part_more", |metadata| {
        let fields = metadata["schemas"][0]["fields"].as_array_mut().unwrap();
        fields.iter_mut().find(|field| field["name"] == "k").unwrap()["id"] = json!(500);
        let specs = metadata["partition-specs"][0]["fields"].as_array_mut().unwrap();
        specs.iter_mut().find(|field| field["source-id"] == 2).unwrap()["source-id"] = json!(500);
    });
    let golden = self::table("part_more");
    for query in [
        "SELECT id, k FROM {t} ORDER BY id",
        "SELECT count(*), sum(id) FROM {t} WHERE k = 3",
        "SELECT count(*), sum(id) FROM {t} WHERE k IS NULL OR k > 5",
    ] {
        assert_eq!(rows(&query.replace("{t}", &table)), rows(&query.replace("{t}", &golden)), "{query}");
    }
}
