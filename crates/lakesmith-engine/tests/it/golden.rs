//! Every golden table: as many rows as Spark counted, the same sum, and the same hash over all columns of all rows.

use serde_json::Value;

use crate::asking::{ask, fixtures, golden, rows};

struct Expected {
    name: String,
    facts: Value,
}

fn readable() -> Vec<Expected> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(table) = name.strip_suffix(".expected.json") else { continue };
        if table != "unknown_reader_feature" {
            let facts = serde_json::from_slice(&std::fs::read(fixtures().join(&name)).unwrap()).unwrap();
            found.push(Expected { name: table.to_owned(), facts });
        }
    }
    assert!(found.len() > 25);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[test]
fn rows_are_counted_from_the_metadata_and_from_the_files() {
    for Expected { name, facts } in readable() {
        let table = golden(&name);
        let expected = facts["rows"].to_string();
        assert_eq!(rows(&format!("SELECT count(*) FROM {table}")), [expected.as_str()], "{name}");
        let column = quoted(facts["schema"]["fields"][0]["name"].as_str().unwrap());
        let read = rows(&format!("SELECT count(CASE WHEN {column} IS NULL THEN 1 ELSE 1 END) FROM {table}"));
        assert_eq!(read, [expected], "{name}");
    }
}

#[test]
fn sums_are_spark_s() {
    for Expected { name, facts } in readable() {
        let Some(column) = facts["sum_col"].as_str() else { continue };
        let sum = rows(&format!("SELECT sum({}) FROM {}", quoted(column), golden(&name)));
        assert_eq!(sum, [facts["sum"].to_string()], "{name}");
    }
}

#[test]
fn hashes_over_all_columns_are_spark_s() {
    let mut compared = 0;
    for Expected { name, facts } in readable() {
        let Some(hash) = facts["spark_hash"].as_str() else { continue };
        let mut columns: Vec<(String, Value)> = facts["schema"]["fields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| (f["name"].as_str().unwrap().to_owned(), f["type"].clone()))
            .collect();
        columns.sort_by(|a, b| a.0.cmp(&b.0));
        // Maps and variants have no hash of their own in Spark, and DataFusion's of long decimals is another one.
        let unlike = |t: &Value| t["type"] == "map" || t == "variant" || t == "decimal(38,12)";
        if columns.iter().any(|(_, t)| unlike(t)) {
            continue;
        }
        let columns: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
        let sql = format!("SELECT sum(CAST(xxhash64({}) AS DECIMAL(38,0))) FROM {}", columns.join(", "), golden(&name));
        let expected = if hash == "None" { "null" } else { hash };
        assert_eq!(rows(&sql), [expected], "{name}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn columns_have_the_table_s_names_and_order() {
    for Expected { name, facts } in readable() {
        let answer = ask(&format!("SELECT * FROM {} LIMIT 1", golden(&name))).unwrap();
        let fields = facts["schema"]["fields"].as_array().unwrap();
        let expected: Vec<&str> = fields.iter().map(|f| f["name"].as_str().unwrap()).collect();
        assert_eq!(answer.columns, expected, "{name}");
    }
}

#[test]
fn an_unknown_feature_is_refused_by_name() {
    let error = ask(&format!("SELECT * FROM {}", golden("unknown_reader_feature"))).unwrap_err();
    assert_eq!(error.class_name(), "DELTA_UNSUPPORTED_FEATURES_FOR_READ");
    assert!(error.to_string().contains("fancyFutureThing"), "{error}");
}
