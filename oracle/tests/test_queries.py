"""The same queries, asked of Spark and of us, on tables that Spark wrote with everything odd at once."""

import json

import pytest

from answers import near, plain, shown
from lakesmith_binary import Failed

DAYS = "date_add(DATE'2026-01-01', CAST(id % 5 AS INT))"


@pytest.fixture(scope="module")
def odd(spark, tmp_path_factory):
    """Mapped and renamed columns, deleted rows, partitions by string and date with nulls, wider types, nested columns."""
    path = str(tmp_path_factory.mktemp("odd") / "t")
    name = f"delta.`{path}`"
    spark.sql(f"""CREATE TABLE {name} (id BIGINT, Old_Name STRING, n INT, price DECIMAL(10,2), x DOUBLE, f FLOAT, ok BOOLEAN, d DATE,
        ts TIMESTAMP, ntz TIMESTAMP_NTZ, st STRUCT<A: INT, b: STRUCT<c: STRING>>, arr ARRAY<INT>, m MAP<STRING, INT>, bin BINARY,
        p STRING, pd DATE, dropped INT) USING DELTA PARTITIONED BY (p, pd)
        TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true', 'delta.enableTypeWidening'='true',
        'delta.enableRowTracking'='true', 'delta.checkpointInterval'='5')""")
    for part in range(3):
        spark.range(part * 400, part * 400 + 400, 1, 2).selectExpr(
            "id", "concat('name ', id % 37)", f"CAST(id % 100 AS {'INT' if part == 0 else 'BIGINT'})", "CAST(id * 1.37 AS DECIMAL(10,2))",
            "CASE id % 7 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-0.0') WHEN 2 THEN double('Infinity') ELSE id / 3 END",
            "CAST(CASE id % 9 WHEN 0 THEN 'NaN' ELSE id / 4 END AS FLOAT)", "id % 2 = 0", DAYS,
            "timestamp_micros(1767225600000000 + id * 1000003)", "CAST(timestamp_micros(1767225600000000 + id * 1000003) AS TIMESTAMP_NTZ)",
            "CASE WHEN id % 11 > 0 THEN named_struct('A', CAST(id AS INT), 'b', named_struct('c', CAST(id % 3 AS STRING))) END",
            "array(CAST(id AS INT), null)", "map('k', CAST(id AS INT))", "unhex(hex(id))",
            "CASE id % 4 WHEN 0 THEN null WHEN 1 THEN 'a/b =%' WHEN 2 THEN 'ü' ELSE 'z' END", f"CASE WHEN id % 6 > 0 THEN {DAYS} END", "1",
        ).toDF("id", "Old_Name", "n", "price", "x", "f", "ok", "d", "ts", "ntz", "st", "arr", "m", "bin", "p", "pd", "dropped") \
            .write.format("delta").mode("append").save(path)
        if part == 0:
            spark.sql(f"ALTER TABLE {name} RENAME COLUMN Old_Name TO `New Name`")
            spark.sql(f"ALTER TABLE {name} DROP COLUMN dropped")
            spark.sql(f"ALTER TABLE {name} ADD COLUMN dropped STRING")
            spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
            spark.sql(f"ALTER TABLE {name} ADD COLUMN st.later DOUBLE")
            spark.sql(f"INSERT INTO {name} (id, n, p, pd) VALUES (-1, 5000000000, 'z', null)")
            spark.sql(f"ALTER TABLE {name} RENAME COLUMN `New Name` TO Old_Name")
            spark.sql(f"ALTER TABLE {name} DROP COLUMN dropped")
            spark.sql(f"ALTER TABLE {name} ADD COLUMN dropped INT")
            spark.sql(f"ALTER TABLE {name} DROP COLUMN st.later")
    spark.sql(f"DELETE FROM {name} WHERE id % 13 = 5")
    spark.sql(f"UPDATE {name} SET price = price + 1 WHERE id % 50 = 7")
    return name


QUERIES = [
    "SELECT * FROM {t} ORDER BY id",
    "SELECT count(*), count(x), sum(id), min(price), max(price), avg(n) FROM {t}",
    "SELECT P, count(*) AS Anzahl FROM {t} GROUP BY p ORDER BY p",
    "SELECT pd, p, sum(price) FROM {t} GROUP BY pd, p ORDER BY pd, p",
    "SELECT id FROM {t} WHERE p IS NULL AND pd IS NULL ORDER BY 1",
    "SELECT id FROM {t} WHERE p = 'a/b =%' AND pd >= DATE'2026-01-03' ORDER BY id",
    "SELECT id, x FROM {t} WHERE x > 300 ORDER BY id",
    "SELECT id, x FROM {t} WHERE x = 0 ORDER BY id",
    "SELECT id FROM {t} WHERE x = double('NaN') ORDER BY id",
    "SELECT id FROM {t} WHERE f < 20 OR f >= 299 ORDER BY id",
    "SELECT x, count(*) FROM {t} WHERE id < 60 GROUP BY x ORDER BY x",
    "SELECT max(x), min(x), max(f) FROM {t}",
    "SELECT id, n FROM {t} WHERE n > 2147483647",
    "SELECT id FROM {t} WHERE price BETWEEN 100 AND 120.5 ORDER BY id",
    "SELECT id, price * 2, price / 3, price + n, n / 7, n % 7, n div 7, -n FROM {t} WHERE id IN (1, 50, 107) ORDER BY id",
    "SELECT id FROM {t} WHERE ts >= TIMESTAMP'2026-01-01 00:16:00' AND ts < TIMESTAMP'2026-01-01 00:17:00' ORDER BY id",
    "SELECT id FROM {t} WHERE ntz = TIMESTAMP_NTZ'2026-01-01 00:01:40.0003'",
    "SELECT id, ts, ntz, d FROM {t} WHERE id < 3 ORDER BY id",
    "SELECT id, st.a, st.B.c FROM {t} WHERE st.a < 20 ORDER BY id",
    "SELECT id FROM {t} WHERE st IS NULL ORDER BY id",
    "SELECT id FROM {t} WHERE st.b.c = '2' AND id > 1100 ORDER BY id",
    "SELECT id, arr, m, bin FROM {t} WHERE id % 100 = 3 ORDER BY id",
    "SELECT id, arr[0], m['k'], size(arr) FROM {t} WHERE id BETWEEN 10 AND 20 ORDER BY id",
    "SELECT OLD_NAME, count(DISTINCT n) AS c FROM {t} GROUP BY old_name HAVING c > 30 ORDER BY c DESC, old_name LIMIT 5",
    "SELECT a.id, b.n FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE a.id < 12 ORDER BY a.id",
    "SELECT id FROM {t} WHERE id IN (SELECT max(id) FROM {t} GROUP BY p) ORDER BY id",
    "SELECT id, row_number() OVER (PARTITION BY p ORDER BY id DESC) AS r FROM {t} WHERE id > 1150 ORDER BY id",
    "WITH s AS (SELECT p, sum(n) AS total FROM {t} WHERE id >= 0 GROUP BY p) SELECT * FROM s WHERE total > 1000 ORDER BY p",
    "SELECT CASE WHEN ok THEN 'even' ELSE 'odd' END AS kind, count(*) FROM {t} GROUP BY 1 ORDER BY 1",
    "SELECT id FROM {t} WHERE NOT (ok AND n > 50) AND id < 120 ORDER BY id",
    "SELECT upper(Old_Name), length(old_name), substring(old_name, 6, 2) FROM {t} WHERE id < 6 ORDER BY id",
    "SELECT year(d), month(d), dayofmonth(d), date_add(d, 3), datediff(d, DATE'2025-12-31') FROM {t} WHERE id < 6 ORDER BY id",
    "SELECT count(*) FROM {t} VERSION AS OF 1",
    "SELECT sum(id), count(*) FROM {t} VERSION AS OF 2",
    "SELECT id, _metadata.row_id FROM {t} WHERE id % 50 = 7 ORDER BY id",
    "SELECT count(DISTINCT _metadata.file_name), max(_metadata.row_commit_version) FROM {t}",
    "SELECT id FROM {t} WHERE dropped IS NULL AND id < 5 ORDER BY id",
    "SELECT id FROM {t} WHERE old_name LIKE 'name 1%' AND id < 30 ORDER BY id",
    "SELECT id FROM {t} ORDER BY x DESC, id LIMIT 7",
    "SELECT p FROM {t} WHERE id < 10 UNION SELECT p FROM {t} WHERE id > 1190 ORDER BY p",
    "SELECT count(*) FROM (SELECT DISTINCT p, pd FROM {t})",
    "SELECT id, CAST(ts AS STRING), CAST(x AS STRING), CAST(f AS STRING), CAST(ntz AS STRING) FROM {t} WHERE id < 80 ORDER BY id",
    "SELECT sum(price), sum(n), avg(price), max(old_name), min(d), max(ts), min(bin) FROM {t}",
    "SELECT id, lag(id) OVER (ORDER BY id) AS l, sum(n) OVER (ORDER BY id ROWS 2 PRECEDING) AS s FROM {t} WHERE id < 12 ORDER BY id",
    "SELECT id, round(price, 1), floor(x), ceil(f), abs(price - 50), pmod(id, 7) FROM {t} WHERE id BETWEEN 3 AND 6 ORDER BY id",
    "SELECT id FROM {t} WHERE ts > '2026-01-01 00:19:00' AND d = '2026-01-02' ORDER BY id",
    "SELECT id FROM {t} WHERE coalesce(pd, DATE'2026-01-05') = DATE'2026-01-05' AND id < 40 ORDER BY id",
    "SELECT id FROM {t} WHERE array_contains(arr, 17)",
    "SELECT id FROM {t} WHERE m['k'] = 17 OR st.a = 19 ORDER BY id",
    "SELECT DISTINCT x FROM {t} WHERE x <= 0 OR x > 1e10 ORDER BY x",
    "SELECT hour(ts), minute(ts), second(ts), dayofweek(d), weekofyear(d), quarter(d) FROM {t} WHERE id IN (1, 77) ORDER BY id",
    "SELECT ok, max(struct(n, id)) FROM {t} GROUP BY ok ORDER BY ok",
    "SELECT p, sort_array(collect_list(id)) AS ids FROM {t} WHERE id < 9 GROUP BY p ORDER BY p",
    "SELECT t.* FROM {t} t LEFT JOIN (SELECT 5 AS k) s ON t.id = s.k WHERE s.k IS NOT NULL",
    "SELECT count(*) FROM {t} WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.id = 3)",
    "SELECT CAST(price AS STRING), CAST(id AS DECIMAL(12,1)), CAST(d AS STRING), CAST(ok AS STRING), CAST(n AS DOUBLE) FROM {t} WHERE id < 4 ORDER BY id",
]


@pytest.mark.parametrize("query", QUERIES)
def test_spark_answers_the_same(spark, lakesmith, odd, conf, query):
    # Looking for 0.0 in a dictionary, Spark passes over -0.0.
    conf("spark.sql.parquet.filterPushdown", "x = 0" not in query)
    text = query.replace("{t}", odd)
    frame = spark.sql(text)
    names, kinds = frame.columns, [field.dataType for field in frame.schema.fields]
    theirs = [[shown(value, kind) for value, kind in zip(row, kinds)] for row in frame.collect()]
    lines = [json.loads(line, object_pairs_hook=list) for line in lakesmith.run("sql", text, "--json").splitlines()]
    ours = [[plain(value) for _, value in line] for line in lines]
    assert len(ours) == len(theirs)
    for mine, spark_row in zip(ours, theirs):
        assert near(mine, spark_row), (names, mine, spark_row)
    if lines:
        assert [name for name, _ in lines[0]] == names


WRONG = [
    ("SELECT n + 9223372036854775807 FROM {t}", "ARITHMETIC_OVERFLOW"),
    ("SELECT id / 0 FROM {t}", "DIVIDE_BY_ZERO"),
    ("SELECT CAST(old_name AS INT) FROM {t}", "CAST_INVALID_INPUT"),
    ("SELECT nmae FROM {t}", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("SELECT id FROM {t} GROUP BY p", "MISSING_AGGREGATION"),
    ("SELECT * FROM {t} VERSION AS OF 99", "DELTA_VERSION_NOT_FOUND"),
    ("SELECT * FROM {t} WHERE", "PARSE_SYNTAX_ERROR"),
]


@pytest.mark.parametrize("query, error_class", WRONG)
def test_wrong_queries_fail_as_spark_s_do(lakesmith, odd, query, error_class):
    with pytest.raises(Failed) as failed:
        lakesmith.sql(query.replace("{t}", odd))
    assert failed.value.error_class == error_class


def test_a_large_file_with_deleted_rows_is_read_in_parts(spark, new_table, lakesmith):
    table = new_table()
    table.sql("CREATE TABLE {t} (id BIGINT, s STRING) USING DELTA TBLPROPERTIES ('delta.enableDeletionVectors'='true')")
    rows = spark.range(0, 1_000_000, 1, 1).selectExpr("id", "md5(CAST(id AS STRING)) AS s")
    rows.write.format("delta").mode("append").option("parquet.block.size", 2 << 20).save(table.path)
    table.sql("DELETE FROM {t} WHERE id % 97 = 3 OR id BETWEEN 400000 AND 450000")
    assert len(lakesmith.files(table)) == 1 and lakesmith.files(table)[0]["deletionVector"]
    for query in [
        "SELECT count(s), sum(id), max(s) FROM {t}",
        "SELECT count(*), sum(id) FROM {t} WHERE s < '4'",
        "SELECT count(*), sum(id) FROM {t} WHERE id >= 399990 AND id < 500123",
        "SELECT count(*), sum(_metadata.row_index) FROM {t} WHERE _metadata.row_index = id",
    ]:
        theirs = [list(row) for row in table.sql(query)]
        ours = [list(row.values()) for row in lakesmith.sql(query.replace("{t}", table.name))]
        assert ours == theirs, query


def test_times_of_every_kind_and_century(new_table, lakesmith, conf):
    table = new_table()
    table.sql("CREATE TABLE {t} (id INT, t TIMESTAMP, d DATE) USING DELTA")
    for kind in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"):
        conf("spark.sql.parquet.outputTimestampType", kind)
        table.sql("INSERT INTO {t} VALUES (1, TIMESTAMP'0001-01-01 00:00:00', DATE'0001-01-01'), (2, TIMESTAMP'1899-12-31 23:59:59.123', DATE'1582-10-15'), "
                  "(3, TIMESTAMP'2026-06-30 12:00:00.123', DATE'2026-06-30'), (4, TIMESTAMP'9999-12-31 23:59:59.999', DATE'9999-12-31')")
    for condition in ("true", "t >= TIMESTAMP'2026-06-30 12:00:00.123'", "t < TIMESTAMP'1900-01-01 00:00:00'", "d = DATE'9999-12-31'"):
        query = f"SELECT id, CAST(t AS STRING) AS t, CAST(d AS STRING) AS d FROM {{t}} WHERE {condition} ORDER BY id, t"
        ours = [tuple(row.values()) for row in lakesmith.sql(query.replace("{t}", table.name))]
        assert ours == [tuple(row) for row in table.sql(query)], condition
