//! Windows over floats, and the types of what numbers their rows.

use crate::asking::rows;

const FLOATS: &str = "(VALUES (CAST('-0.0' AS DOUBLE), 2), (0e0, 1), (CAST('NaN' AS DOUBLE), 3), \
                      (-CAST('NaN' AS DOUBLE), 4), (1e0, 5)) t(x, n)";

#[test]
fn zeros_are_one_and_nan_is_the_greatest() {
    for (select, expected) in [
        ("count(*) OVER (PARTITION BY x)", vec!["2|1", "2|2", "2|3", "2|4", "1|5"]),
        ("rank() OVER (ORDER BY x)", vec!["1|1", "1|2", "4|3", "4|4", "3|5"]),
        ("dense_rank() OVER (ORDER BY CAST(x AS FLOAT) DESC)", vec!["3|1", "3|2", "1|3", "1|4", "2|5"]),
        ("row_number() OVER (ORDER BY x, n)", vec!["1|1", "2|2", "4|3", "5|4", "3|5"]),
        ("sum(n) OVER (ORDER BY x)", vec!["3|1", "3|2", "15|3", "15|4", "8|5"]),
    ] {
        assert_eq!(rows(&format!("SELECT {select}, n FROM {FLOATS} ORDER BY n")), expected, "{select}");
    }
    assert_eq!(rows(&format!("SELECT n FROM {FLOATS} ORDER BY x, n")), ["1", "2", "5", "3", "4"]);
    assert_eq!(rows(&format!("SELECT n FROM {FLOATS} ORDER BY x DESC, n LIMIT 3")), ["3", "4", "5"]);
}

#[test]
fn ranks_are_integers() {
    let ranks = "row_number() OVER (ORDER BY id) a, rank() OVER (ORDER BY id) b, \
                 dense_rank() OVER (ORDER BY id DESC) c, ntile(2) OVER (ORDER BY id) d";
    let types = "arrow_typeof(a), arrow_typeof(b), arrow_typeof(c), arrow_typeof(d), arrow_typeof(a + 1)";
    let from = format!("(SELECT {ranks} FROM range(3))");
    assert_eq!(rows(&format!("SELECT {types} FROM {from} LIMIT 1")), ["Int32|Int32|Int32|Int32|Int32"]);
    assert_eq!(rows(&format!("SELECT a, b, c, d FROM {from} WHERE a = 2 AND b <= 2 AND a - c = 0")), ["2|2|2|1"]);
    assert_eq!(rows("SELECT row_number() OVER (ORDER BY id) + 1 FROM range(2) ORDER BY 1"), ["2", "3"]);
    assert_eq!(rows("SELECT id FROM range(5) QUALIFY row_number() OVER (ORDER BY id DESC) = 1"), ["4"]);
    assert_eq!(rows("SELECT row_number() OVER (ORDER BY id) FROM range(2)").len(), 2);
}
