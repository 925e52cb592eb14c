//! What a condition guards, fails for no row that the guard keeps out: wherever the parts of the condition are asked.

use std::sync::Arc;

use arrow::array::{Int32Array, Int64Array, StringArray};
use serde_json::json;

use crate::asking::{ask, ask_in, rows, session};
use crate::crafted::Crafted;

const ROWS: i64 = 1000;

/// Every second `text` is a number, and every third `b` is zero, or unknown.
fn kinds() -> Crafted {
    let fields = json!([
        Crafted::field("id", "long"),
        Crafted::field("kind", "string"),
        Crafted::field("text", "string"),
        Crafted::field("b", "integer"),
    ]);
    let kind = |i: i64| if i % 2 == 0 { "number" } else { "a kind with a long name that makes it the dearer column" };
    let text = |i: i64| if i % 2 == 0 { i.to_string() } else { format!("x{i}") };
    let b = |i: i64| match i % 3 {
        0 => Some(0),
        1 => None,
        _ => Some(i as i32),
    };
    Crafted::new(&fields, &[], &[]).with_file(
        vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
            ("kind", Arc::new(StringArray::from_iter_values((0..ROWS).map(kind)))),
            ("text", Arc::new(StringArray::from_iter_values((0..ROWS).map(text)))),
            ("b", Arc::new(Int32Array::from_iter((0..ROWS).map(b)))),
        ],
        &json!({}),
    )
}

#[test]
fn no_row_is_asked_what_its_guard_keeps_from_it() {
    let table = kinds();
    let t = table.sql();
    let mut session = session();
    for (sql, expected) in [
        (format!("SELECT count(*) FROM {t} WHERE b <> 0 AND 1000 / b > 2"), 166),
        (format!("SELECT count(*) FROM {t} WHERE kind = 'number' AND CAST(text AS INT) >= 500"), 250),
        (format!("SELECT count(*) FROM {t} WHERE kind = 'number' AND text = 500"), 1),
        (
            format!(
                "SELECT count(*) FROM {t} WHERE kind = 'number' AND CAST(text AS INT) > 0 AND 10 / CAST(text AS INT) > 1"
            ),
            4,
        ),
        (format!("SELECT count(*) FROM (SELECT * FROM {t} WHERE b <> 0) WHERE 1000 / b > 2"), 166),
        (format!("SELECT count(*) FROM (SELECT *, 1000 / b AS q FROM {t}) WHERE b <> 0 AND q > 2"), 166),
        (format!("SELECT count(*) FROM {t} WHERE b IS NOT NULL AND b <> 0 AND 1000 / b > 2 AND 1000 / b < 900"), 166),
        (format!("SELECT count(*) FROM {t} WHERE id < 0 OR (b <> 0 AND 1000 / b > 2)"), 166),
        (format!("SELECT count(*) FROM {t} WHERE b = 0 OR 1000 / b > 2"), 500),
        (format!("SELECT count(*) FROM {t} WHERE NOT (b = 0 OR b IS NULL OR 1000 / b <= 2)"), 166),
        (format!("SELECT count(*) FROM {t} WHERE CASE WHEN b <> 0 THEN 1000 / b > 2 END"), 166),
        (format!("SELECT count(*) FROM {t} WHERE if(b <> 0, 1000 / b > 2, false)"), 166),
        (format!("SELECT count(CASE WHEN b <> 0 AND 1000 / b > 2 THEN 1 END) FROM {t}"), 166),
        (format!("SELECT sum(CASE WHEN b <> 0 AND 1000 / b > 2 AND 1000 / b < 900 THEN 1 ELSE 0 END) FROM {t}"), 166),
        (format!("SELECT count(*) FROM {t} GROUP BY b <> 0 AND 1000 / b > 2 ORDER BY 1 LIMIT 1"), 166),
        (format!("SELECT count(*) FROM {t} t JOIN range(1000) r ON t.id = r.id AND t.b <> 0 AND 1000 / t.b > 2"), 166),
        (format!("SELECT count(*) FROM {t} t JOIN range(3) r ON t.b <> 0 AND 1000 / t.b > r.id + 100"), 9),
        (format!("SELECT count(*) FROM {t} t LEFT JOIN range(3) r ON t.b <> 0 AND 1000 / t.b > r.id + 100"), 1006),
        (
            format!(
                "SELECT count(*) FROM {t} t, range(1000) r WHERE t.id = r.id + 1 AND t.b <> 0 AND 1000 / t.b > r.id"
            ),
            11,
        ),
        (
            format!(
                "SELECT count(*) FROM range(1000) r LEFT JOIN {t} t ON t.id = r.id WHERE (t.b <> 0 OR r.id < 0) AND 1000 DIV t.b = r.id + 498"
            ),
            1,
        ),
        (format!("SELECT count(*) FROM {t} t, range(1000) r WHERE t.b <> 0 AND 1000 DIV t.b = r.id"), 333),
        (format!("SELECT count(*) FROM {t} WHERE b <> 0 AND 1000 / b > (SELECT max(id) FROM range(3))"), 166),
        (
            format!(
                "SELECT count(*) FROM {t} t WHERE EXISTS (SELECT 1 FROM {t} u WHERE u.id = t.id AND u.b <> 0 AND 1000 / u.b > 2)"
            ),
            166,
        ),
    ] {
        match ask_in(&mut session, &sql) {
            Ok(answer) => assert_eq!(answer.rows, [[json!(expected)]], "{sql}"),
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }
}

#[test]
fn nothing_is_computed_of_rows_that_a_filter_keeps_out() {
    let table = kinds();
    let t = table.sql();
    for (sql, expected) in [
        (format!("SELECT count(q) FROM (SELECT b, 1000 / b + id AS q FROM {t} WHERE b <> 0)"), "333"),
        (format!("SELECT b, 1000 DIV b + id FROM {t} WHERE b <> 0 ORDER BY b LIMIT 1"), "2|502"),
        (
            format!(
                "SELECT b, n DIV b FROM (SELECT b, count(*) AS n FROM {t} GROUP BY b) WHERE b <> 0 ORDER BY b LIMIT 1"
            ),
            "2|0",
        ),
        (
            "SELECT r.id, 6 DIV r.id + s FROM (SELECT id, id AS s, id AS u FROM range(4)) r WHERE r.id > 0 AND u < 2"
                .to_owned(),
            "1|7",
        ),
    ] {
        assert_eq!(rows(&sql), [expected], "{sql}");
    }
}

#[test]
fn what_is_not_guarded_fails_by_its_own_name() {
    let table = kinds();
    let t = table.sql();
    for (filter, class) in [
        ("1000 / b > 2", "DIVIDE_BY_ZERO"),
        ("CAST(text AS INT) > 5", "CAST_INVALID_INPUT"),
        ("b <> 1 AND 1000 / b > 2", "DIVIDE_BY_ZERO"),
        ("id >= 0 OR 1 / b > 2", ""),
        ("CAST(id AS TINYINT) % 2 = 5", "CAST_OVERFLOW"),
        ("id + 9223372036854775000 > 5", "ARITHMETIC_OVERFLOW"),
    ] {
        let class_of =
            ask(&format!("SELECT count(*) FROM {t} WHERE {filter}")).err().map(|e| e.class_name().to_owned());
        assert_eq!(class_of.as_deref().unwrap_or_default(), class, "{filter}");
    }
}

#[test]
fn filters_that_cannot_fail_still_skip_rows_of_files() {
    let table = kinds();
    let plan =
        ask(&format!("EXPLAIN SELECT id FROM {} WHERE id < 10 AND kind = 'number' AND 1000 / b > 2", table.sql()));
    let text = format!("{:?}", plan.unwrap().rows);
    let reader = text.find("DataSourceExec").unwrap();
    assert!(text[reader..].contains("predicate=id@0 < 10 AND kind@1 = number"), "{text}");
    assert!(!text[reader..].contains("div"), "{text}");
    assert_eq!(rows(&format!("SELECT count(*) FROM {} WHERE id < 10 AND -5 < b", table.sql())), ["7"]);
}
