//! Temporary views live as long as their session.

use serde_json::json;

use crate::asking::{ask_in, golden, session};

#[test]
fn a_view_is_a_query_with_a_name() {
    let mut session = session();
    let plain = golden("plain_24_appends");
    ask_in(&mut session, &format!("CREATE TEMPORARY VIEW small AS SELECT id AS Nr FROM {plain} WHERE id < 10"))
        .unwrap();
    let answer = ask_in(&mut session, "SELECT count(*), max(nr) FROM small").unwrap();
    assert_eq!(answer.rows, [[json!(10), json!(9)]]);
    let error = ask_in(&mut session, "CREATE TEMPORARY VIEW small AS SELECT 1 AS a").unwrap_err();
    assert_eq!(error.class_name(), "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS");
    ask_in(&mut session, "CREATE OR REPLACE TEMP VIEW Small AS SELECT 1 AS a").unwrap();
    assert_eq!(ask_in(&mut session, "SELECT a FROM SMALL s").unwrap().rows, [[json!(1)]]);
    ask_in(&mut session, "DROP VIEW small").unwrap();
    assert_eq!(ask_in(&mut session, "SELECT * FROM small").unwrap_err().class_name(), "TABLE_OR_VIEW_NOT_FOUND");
}

#[test]
fn a_view_that_means_nothing_is_refused() {
    let error = ask_in(&mut session(), "CREATE TEMPORARY VIEW v AS SELECT nothing FROM range(1)").unwrap_err();
    assert_eq!(error.class_name(), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
}

#[test]
fn what_cannot_be_done_whole_is_not_done_at_all() {
    let mut session = session();
    ask_in(&mut session, "CREATE TEMP VIEW v AS SELECT 1 AS a").unwrap();
    ask_in(&mut session, "CREATE TEMP VIEW w AS SELECT 2 AS a").unwrap();
    for (sql, class) in [
        ("EXPLAIN DROP VIEW v", "UNSUPPORTED_FEATURE"),
        ("EXPLAIN CREATE TEMP VIEW x AS SELECT 1 AS a", "UNSUPPORTED_FEATURE"),
        ("EXPLAIN CREATE OR REPLACE TEMP VIEW v AS SELECT 3 AS a", "UNSUPPORTED_FEATURE"),
        ("DROP VIEW v, w", "PARSE_SYNTAX_ERROR"),
    ] {
        let error = ask_in(&mut session, sql).unwrap_err();
        assert_eq!(error.class_name(), class, "{sql}: {error}");
    }
    assert_eq!(ask_in(&mut session, "SELECT v.a, w.a FROM v, w").unwrap().rows, [[json!(1), json!(2)]]);
    assert_eq!(ask_in(&mut session, "SELECT * FROM x").unwrap_err().class_name(), "TABLE_OR_VIEW_NOT_FOUND");
}
