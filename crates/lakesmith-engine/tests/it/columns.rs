//! Columns of joins, and what results call columns.

use serde_json::json;

use crate::asking::{ask, ask_in, fixtures, golden, rows, session};

const L: &str = "(SELECT * FROM VALUES ('l1', 1), ('l2', 2) AS v(A, K)) l";
const R: &str = "(SELECT * FROM VALUES (2, 'r2'), (3, 'r3') AS v(k, B)) r";

#[test]
fn a_key_that_joins_is_one_column_of_both_sides() {
    for (sql, columns, expected) in [
        ("SELECT * FROM {L} FULL JOIN {R} USING (k) ORDER BY k", "K A B", "1|l1|null 2|l2|r2 3|null|r3"),
        ("SELECT * FROM {L} NATURAL FULL JOIN {R} ORDER BY k", "K A B", "1|l1|null 2|l2|r2 3|null|r3"),
        ("SELECT * FROM {L} RIGHT JOIN {R} USING (K) ORDER BY 1", "k A B", "2|l2|r2 3|null|r3"),
        ("SELECT * FROM {L} NATURAL RIGHT JOIN {R} ORDER BY k", "k A B", "2|l2|r2 3|null|r3"),
        ("SELECT * FROM {L} JOIN {R} USING (k)", "K A B", "2|l2|r2"),
        ("SELECT * FROM {L} NATURAL JOIN {R}", "K A B", "2|l2|r2"),
        ("SELECT * FROM {L} LEFT JOIN {R} USING (k) ORDER BY k DESC", "K A B", "2|l2|r2 1|l1|null"),
        ("SELECT * FROM {L} LEFT SEMI JOIN {R} USING (k)", "K A", "2|l2"),
        ("SELECT * FROM {L} ANTI JOIN {R} USING (k)", "K A", "1|l1"),
        ("SELECT k, l.K, r.k FROM {L} FULL JOIN {R} USING (k) ORDER BY k", "k K k", "1|1|null 2|2|2 3|null|3"),
        ("SELECT b FROM {L} FULL JOIN {R} USING (k) ORDER BY k DESC", "b", "r3 r2 null"),
        ("SELECT l.*, r.b FROM {L} RIGHT JOIN {R} USING (k) ORDER BY b", "A K b", "l2|2|r2 null|null|r3"),
        ("SELECT k + 1 AS n FROM {L} FULL JOIN {R} USING (k) WHERE k > 1 ORDER BY n", "n", "3 4"),
        (
            "SELECT k, count(*) FROM {L} FULL JOIN {R} USING (k) GROUP BY k HAVING k > 1 ORDER BY k",
            "k count(1)",
            "2|1 3|1",
        ),
        ("SELECT max(k) FROM {L} FULL JOIN {R} USING (k)", "max(k)", "3"),
        (
            "SELECT * FROM {L} FULL JOIN {R} USING (k) FULL JOIN (VALUES (3, 'c'), (4, 'd')) c(k, C) USING (k) ORDER BY k",
            "K A B C",
            "1|l1|null|null 2|l2|r2|null 3|null|r3|c 4|null|null|d",
        ),
        (
            "SELECT * FROM (SELECT 1 AS k, 2 AS x) FULL JOIN (SELECT 5 AS k, 6 AS y) USING (k) ORDER BY k",
            "k x y",
            "1|2|null 5|null|6",
        ),
        ("WITH j AS (SELECT * FROM {L} FULL JOIN {R} USING (k)) SELECT sum(k), max(b) FROM j", "sum(k) max(b)", "6|r3"),
        ("SELECT * EXCEPT (a) FROM {L} FULL JOIN {R} USING (k) ORDER BY k", "K B", "1|null 2|r2 3|r3"),
        (
            "SELECT 0 AS z, * FROM ({L} FULL JOIN {R} USING (k)) ORDER BY k",
            "z K A B",
            "0|1|l1|null 0|2|l2|r2 0|3|null|r3",
        ),
        ("SELECT DISTINCT k FROM {L} RIGHT JOIN {R} USING (k) ORDER BY k", "k", "2 3"),
    ] {
        let sql = sql.replace("{L}", L).replace("{R}", R);
        let answer = ask(&sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(answer.columns.join(" "), columns, "{sql}");
        assert_eq!(rows(&sql).join(" "), expected, "{sql}");
    }
    let error = ask(&format!("SELECT * FROM {L} JOIN {R} USING (nothing)")).unwrap_err();
    assert_eq!(error.class_name(), "UNRESOLVED_USING_COLUMN_FOR_JOIN", "{error}");
    let error = ask(&format!("SELECT * FROM {L} JOIN {R} ON l.k = r.k JOIN {} USING (k)", R.replace(") r", ") s")));
    assert_eq!(error.unwrap_err().class_name(), "AMBIGUOUS_REFERENCE");
}

#[test]
fn names_are_shown_as_they_were_given() {
    for (sql, columns) in [
        ("SELECT 1 AS `a#b`, 2 AS `C#`, 3 AS `#`", "a#b C# #"),
        ("SELECT 1 AS a, 2 AS A", "a A"),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS A)", "a A"),
        ("SELECT 1 AS a, 2 AS a, 3 AS `a#2`", "a a a#2"),
        ("SELECT `a#2` FROM (SELECT 1 AS a, 2 AS a, 3 AS `a#2`)", "a#2"),
        ("SELECT * FROM (SELECT 1 AS Mixed) x, (SELECT 2 AS MIXED) y", "Mixed MIXED"),
        ("SELECT * FROM (SELECT * FROM (SELECT 1 AS Id) x JOIN (SELECT 1 AS ID) y ON x.id = y.id)", "Id ID"),
        ("SELECT *, id AS ID, 'ID' AS x FROM range(1)", "id ID x"),
        ("WITH c(X, y) AS (SELECT 1, 2) SELECT * FROM c", "X y"),
        ("SELECT * FROM VALUES (1, 2)", "col1 col2"),
        ("SELECT col2 FROM VALUES (1, 2)", "col2"),
        ("VALUES (1, 2)", "col1 col2"),
        ("SELECT * FROM VALUES (1) AS t(Qu)", "Qu"),
        ("SELECT 1 AS Nr UNION ALL SELECT 2 AS nr", "Nr"),
        ("SELECT q.* FROM (SELECT 1 AS Nr, 2 AS b) q", "Nr b"),
    ] {
        let answer = ask(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(answer.columns.join(" "), columns, "{sql}");
    }
    assert_eq!(rows("SELECT `a#2` FROM (SELECT 1 AS a, 2 AS a, 3 AS `a#2`)"), ["3"]);
}

#[test]
fn views_keep_the_spelling_of_their_text() {
    let mut session = session();
    ask_in(&mut session, "CREATE TEMP VIEW v AS SELECT 1 AS Mixed, 2 AS `x#Y`, id + 1 FROM range(1)").unwrap();
    ask_in(&mut session, "CREATE TEMP VIEW w AS SELECT *    , 2 AS OTHER FROM v").unwrap();
    let answer = ask_in(&mut session, "SELECT           *            FROM w").unwrap();
    assert_eq!(answer.columns, ["Mixed", "x#Y", "(id + 1)", "OTHER"]);
    let error = ask_in(&mut session, "SELECT nothing FROM w").unwrap_err();
    assert_eq!((error.context_value("line"), error.context_value("position")), (Some("1"), Some("7")), "{error}");
}

#[test]
fn facts_of_files_are_left_out_by_every_star() {
    let mut session = session();
    let plain = golden("plain_24_appends");
    let columns = ask_in(&mut session, &format!("SELECT * FROM {plain} LIMIT 1")).unwrap().columns;
    ask_in(&mut session, &format!("CREATE TEMP VIEW f AS SELECT *, _metadata.file_name AS f FROM {plain}")).unwrap();
    let answer = ask_in(&mut session, "SELECT count(DISTINCT f) FROM f").unwrap();
    assert_eq!(answer.rows, [[json!(24)]]);
    let seen = ask_in(&mut session, "SELECT * FROM f LIMIT 1").unwrap().columns;
    assert_eq!(seen, [columns.clone(), vec!["f".to_owned()]].concat());
    for (select, expected) in [
        ("t.*, t._metadata.row_index AS i FROM {plain} t LIMIT 1", vec![columns.clone(), vec!["i".to_owned()]]),
        (
            "* FROM {plain} a JOIN {plain} b ON a.id = b.id AND a._metadata.file_name = b._metadata.file_name LIMIT 1",
            vec![columns.clone(), columns.clone()],
        ),
        (
            "*, a._metadata.file_size FROM {plain} a NATURAL JOIN {plain} b LIMIT 1",
            vec![columns.clone(), vec!["file_size".to_owned()]],
        ),
    ] {
        let sql = format!("SELECT {}", select.replace("{plain}", &plain));
        let answer = ask_in(&mut session, &sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(answer.columns, expected.concat(), "{sql}");
    }
}

#[test]
fn a_folder_called_like_a_version_is_itself() {
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("t@v1");
    let log = copied.join("_delta_log");
    std::fs::create_dir_all(&log).unwrap();
    let from = fixtures().join("plain_24_appends");
    for entry in std::fs::read_dir(&from).unwrap().map(Result::unwrap).filter(|e| e.path().is_file()) {
        std::fs::copy(entry.path(), copied.join(entry.file_name())).unwrap();
    }
    for entry in std::fs::read_dir(from.join("_delta_log")).unwrap().map(Result::unwrap).filter(|e| e.path().is_file())
    {
        std::fs::copy(entry.path(), log.join(entry.file_name())).unwrap();
    }
    let table = copied.display();
    assert_eq!(rows(&format!("SELECT count(*) FROM delta.`{table}`")), ["1200"]);
    assert_eq!(rows(&format!("SELECT count(*) FROM delta.`{table}` VERSION AS OF 3")), ["200"]);
    assert_eq!(rows(&format!("SELECT count(*) FROM delta.`{table}@v3`")), ["200"]);
}
