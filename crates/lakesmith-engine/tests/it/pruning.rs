//! Skipping files never loses a row: whatever a filter is, the rows that it lets through are those that it lets through
//! when every row is read and asked.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Float32Array, Float64Array};
use serde_json::json;

use crate::asking::{ask_in, golden, rows, session};
use crate::crafted::Crafted;

/// A table, its columns and values to compare them with.
struct Filtered {
    table: &'static str,
    columns: Columns,
}

type Columns = &'static [(&'static str, &'static [&'static str])];

const TABLES: [Filtered; 11] = [
    Filtered {
        table: "partitioned_special",
        columns: &[
            ("s", &["'a/b'", "'x y'", "''", "'z'", "'A'", "'%'"]),
            ("d", &["DATE'2026-01-01'", "DATE'2024-02-29'", "DATE'2027-12-31'"]),
            ("id", &["0", "10", "25", "41"]),
        ],
    },
    Filtered {
        table: "nan_inf",
        columns: &[("x", DOUBLES), ("f", DOUBLES), ("ok", DOUBLES), ("id", &["0", "2", "5"])],
    },
    Filtered {
        table: "long_strings",
        columns: &[("s", STRINGS), ("s32", STRINGS), ("allnull", STRINGS), ("esc", STRINGS), ("id", &["0", "3", "7"])],
    },
    Filtered { table: "plain_24_appends", columns: &[("id", &["0", "49", "50", "777", "1199", "5000"])] },
    Filtered {
        table: "dv_file",
        columns: &[("id", &["0", "3", "102", "480", "520", "999", "1499"]), ("k", &["0", "1", "5"])],
    },
    Filtered {
        table: "type_widening",
        columns: &[
            ("id", &["0", "5", "39", "3000000000"]),
            ("b", &["0", "5", "39", "1000"]),
            ("f", &["0.5", "1.25e0", "1e0", "3.5e0"]),
            ("dec", &["0.5", "1.25", "100", "12.3456"]),
            ("dt", &["TIMESTAMP_NTZ'2026-01-01 00:00:00'", "TIMESTAMP_NTZ'2026-02-01 12:00:00'"]),
        ],
    },
    Filtered {
        table: "decimals",
        columns: &[("id", &["0", "1", "20"]), ("d5", DECIMALS), ("d18", DECIMALS), ("d38", DECIMALS)],
    },
    Filtered { table: "colmap_id", columns: &[("b", &["'x'", "'b1'", "'5'"])] },
    Filtered { table: "nested", columns: &[("id", &["0", "3", "9"])] },
    Filtered {
        table: "timestamp_ntz",
        columns: &[
            ("n", &["TIMESTAMP_NTZ'2026-01-01 00:00:00'", "TIMESTAMP_NTZ'2026-01-01 00:00:05.000005'"]),
            ("t", &["TIMESTAMP'2026-01-01 00:00:00'", "TIMESTAMP'2026-01-01 00:00:05.000005'"]),
        ],
    },
    Filtered { table: "liquid_after", columns: &[("k", &["0", "3", "50", "99"]), ("id", &["0", "7", "70", "3000"])] },
];

const DOUBLES: &[&str] = &[
    "0e0",
    "0.0",
    "1.5",
    "CAST('-0.0' AS DOUBLE)",
    "1e0",
    "-1e0",
    "CAST('NaN' AS DOUBLE)",
    "CAST('Infinity' AS DOUBLE)",
    "CAST('-Infinity' AS DOUBLE)",
];
const DECIMALS: &[&str] = &["0", "1.25", "-3.5", "12", "999.99"];
const STRINGS: &[&str] =
    &["'a'", "'b'", "'zzzz'", "''", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "'\u{10ffff}'"];

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }

    fn term(&mut self, columns: &[(&str, &[&str])]) -> String {
        let (column, values) = self.pick(columns);
        let value = self.pick(values);
        match self.roll(8) {
            0 => format!("{column} IS NULL"),
            1 => format!("{column} IS NOT NULL"),
            2 => format!("{column} BETWEEN {value} AND {}", self.pick(values)),
            3 => format!("{column} IN ({value}, {})", self.pick(values)),
            4 => format!("NOT ({column} > {value})"),
            5 => format!("{column} <=> {value}"),
            _ => format!("{column} {} {value}", self.pick(&["=", "<", "<=", ">", ">=", "<>"])),
        }
    }

    fn filter(&mut self, columns: &[(&str, &[&str])], depth: usize) -> String {
        if depth == 0 || self.roll(3) == 0 {
            return self.term(columns);
        }
        let (left, right) = (self.filter(columns, depth - 1), self.filter(columns, depth - 1));
        format!("({left} {} {right})", self.pick(&["AND", "OR"]))
    }
}

/// Files with NaN and zeros of either sign, a column that was FLOAT once, and bounds as writers tell them: without NaN.
fn odd_floats() -> Crafted {
    let changed = json!({"delta.typeChanges": [{"fromType": "float", "toType": "double"}]});
    let fields =
        json!([Crafted::field("x", "double"), {"name": "w", "type": "double", "nullable": true, "metadata": changed}]);
    let mut table = Crafted::new(&fields, &[], &["typeWidening"]);
    let values = [
        vec![Some(f64::NAN), Some(1.0)],
        vec![Some(0.0), Some(-0.0)],
        vec![Some(-0.0)],
        vec![Some(0.0), None],
        vec![Some(f64::NAN)],
        vec![Some(0.7), Some(f64::INFINITY)],
        vec![Some(-1.0), Some(0.7)],
    ];
    for (at, values) in values.into_iter().enumerate() {
        let floats: Vec<Option<f32>> = values.iter().map(|v| v.map(|v| v as f32)).collect();
        let widened: ArrayRef = match at % 2 {
            0 => Arc::new(Float32Array::from(floats)),
            _ => Arc::new(Float64Array::from(values.clone())),
        };
        let known: Vec<f64> = values.iter().flatten().copied().filter(|v| v.is_finite()).collect();
        let low = known.iter().copied().reduce(f64::min);
        let high = known.iter().copied().reduce(f64::max).filter(|_| values.iter().flatten().all(|v| !v.is_infinite()));
        let nulls = values.iter().filter(|v| v.is_none()).count();
        let bounds = |bound: Option<f64>| bound.map_or(json!({}), |bound| json!({"x": bound, "w": bound}));
        let stats = json!({
            "numRecords": values.len(), "minValues": bounds(low), "maxValues": bounds(high),
            "nullCount": {"x": nulls, "w": nulls},
        });
        let columns: Vec<(&str, ArrayRef)> = vec![("x", Arc::new(Float64Array::from(values))), ("w", widened)];
        table = table.with_file(columns, &json!({"stats": stats.to_string()}));
    }
    table
}

#[test]
fn bounds_that_are_floats_themselves_lose_no_row() {
    // 17 digits are all that a DOUBLE has for 27.
    let decimal = Decimal128Array::from(vec![123_456_789_012_345_678_912_345_678]).with_precision_and_scale(38, 10);
    let stats = r#"{"numRecords":1,"minValues":{"d":1.2345678901234568e+16},"maxValues":{"d":1.2345678901234568e+16}}"#;
    let decimals = Crafted::new(&json!([Crafted::field("d", "decimal(38,10)")]), &[], &[])
        .with_file(vec![("d", Arc::new(decimal.unwrap()))], &json!({"stats": stats}));
    let count = |filter: &str| rows(&format!("SELECT count(*) FROM {} WHERE {filter}", decimals.sql()));
    assert_eq!(count("d = 12345678901234567.8912345678"), ["1"]);
    assert_eq!(count("d <= 12345678901234567.8912345678"), ["1"]);
    let odd = odd_floats();
    let found = rows(&format!("SELECT count(*) FROM {} WHERE w < 0.7e0 AND w > 0.6e0", odd.sql()));
    assert_eq!(found, ["1"]);
}

#[test]
fn filters_find_what_reading_everything_finds() {
    let mut session = session();
    let mut some = 0;
    let odd = odd_floats();
    let golden_tables = TABLES.iter().map(|Filtered { table, columns }| (golden(table), *columns));
    let tables = golden_tables.chain([(odd.sql(), &[("x", DOUBLES), ("w", DOUBLES)] as Columns)]);
    for (seed, (table, columns)) in tables.enumerate() {
        let mut dice = Dice(seed as u64 + 1);
        for _ in 0..30 {
            let filter = dice.filter(columns, 2);
            let pruned = ask_in(&mut session, &format!("SELECT count(*) FROM {table} WHERE {filter}"));
            let whole = ask_in(&mut session, &format!("SELECT count(CASE WHEN {filter} THEN 1 END) FROM {table}"));
            let count = |answer: Result<crate::asking::Answer, lakesmith::Error>| match answer {
                Ok(answer) => answer.rows[0][0].clone(),
                Err(error) => panic!("{table} WHERE {filter}: {error:?}"),
            };
            let (pruned, whole) = (count(pruned), count(whole));
            assert_eq!(pruned, whole, "{table} WHERE {filter}");
            some += usize::from(whole != 0);
        }
    }
    assert!(some > 80, "only {some} filters let a row through");
}

/// Files that EXPLAIN says are read.
fn files_read(sql: &str) -> (u64, u64) {
    let answer = ask_in(&mut session(), &format!("EXPLAIN {sql}")).unwrap();
    let line = answer.rows[1][0].as_str().unwrap().to_owned();
    let number = |before: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|w| w.trim_end_matches(',') == before).unwrap();
        words[at - 1].parse().unwrap()
    };
    (number("files"), number("read"))
}

#[test]
fn files_are_skipped_by_partition_and_by_bounds() {
    let plain = golden("plain_24_appends");
    assert_eq!(files_read(&format!("SELECT * FROM {plain} WHERE id = 60")), (24, 1));
    assert_eq!(files_read(&format!("SELECT * FROM {plain} WHERE id < 100")), (24, 2));
    assert_eq!(files_read(&format!("SELECT * FROM {plain} WHERE id IN (1, 1199)")), (24, 2));
    assert_eq!(files_read(&format!("SELECT * FROM {plain} LIMIT 60")), (24, 2));
    assert_eq!(files_read(&format!("SELECT count(*) FROM {plain}")), (24, 0));
    let floats = golden("nan_inf");
    for (double, decimal) in [("x < -1e0", "x < -1.0"), ("x = 1e6", "x = 1000000.0"), ("f > 1e0", "f > 1.0")] {
        let read = |filter: &str| files_read(&format!("SELECT * FROM {floats} WHERE {filter}"));
        assert_eq!(read(decimal), read(double), "{decimal}");
    }
    let odd = odd_floats();
    let read = |filter: &str| files_read(&format!("SELECT * FROM {} WHERE {filter}", odd.sql()));
    // Two files hold nothing but NaN or tell no minimum; of the others one begins below zero.
    assert_eq!(read("x < -0.5e0"), (7, 2));
    assert_eq!(read("x < -0.5"), (7, 2));
    assert_eq!(read("w < -0.5 AND x < -0.5e0"), (7, 2));
    let special = golden("partitioned_special");
    let decided = format!("SELECT count(*) FROM {special} WHERE d = DATE'2026-01-02' OR s IS NULL");
    assert_eq!(files_read(&decided).1, 0);
    let (all, read) =
        files_read(&format!("SELECT * FROM {} WHERE d = DATE'2026-01-02'", golden("partitioned_special")));
    assert!(read < all, "{read} of {all}");
}

#[test]
fn input_files_are_those_that_a_query_reads() {
    let plain = golden("plain_24_appends");
    let sql = format!("SELECT count(*) FROM input_files(\"SELECT * FROM {plain} WHERE id < 100\")");
    assert_eq!(crate::asking::rows(&sql), ["2"]);
}
