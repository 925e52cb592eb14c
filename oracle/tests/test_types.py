"""Values at their limits, in every encoding that Spark writes."""

import datetime

import pytest

from judgement import compacted
from test_features import create, insert, judged


def test_every_simple_type(new_table, lakesmith):
    columns = "id BIGINT, t TINYINT, s SMALLINT, i INT, f FLOAT, d DOUBLE, b BOOLEAN, x BINARY, v STRING, dt DATE"
    table = create(new_table(), columns)
    expressions = [
        "id", "CAST(id % 256 - 128 AS TINYINT)", "CAST(id * 131 % 65536 - 32768 AS SMALLINT)", "CASE WHEN id % 3 > 0 THEN CAST(hash(id) AS INT) END",
        "CASE id % 5 WHEN 0 THEN CAST('NaN' AS FLOAT) WHEN 1 THEN CAST('-Infinity' AS FLOAT) WHEN 2 THEN CAST('-0.0' AS FLOAT) WHEN 3 THEN CAST(id AS FLOAT) END",
        "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN double('Infinity') WHEN 2 THEN double('-0.0') WHEN 3 THEN id / 3 END",
        "id % 2 = 0", "CASE WHEN id % 4 > 0 THEN unhex(hex(id)) ELSE X'' END", "CASE WHEN id % 6 > 0 THEN repeat(char(97 + id % 26), CAST(id % 50 AS INT)) END",
        "date_add(DATE'1970-01-01', CAST(id * 37 - 9000 AS INT))",
    ]
    insert(table, expressions)
    judged(table, lakesmith, removed=4)


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_timestamps_over_ten_thousand_years(new_table, lakesmith, conf, kind):
    conf("spark.sql.parquet.outputTimestampType", kind)
    table = create(new_table(), "id BIGINT, t TIMESTAMP, n TIMESTAMP_NTZ")
    moments = ["0001-01-01 00:00:00", "1582-10-04 23:59:59.999999", "1582-10-15 00:00:00", "1899-12-31 23:59:59.1", "1970-01-01 00:00:00",
               "1969-12-31 23:59:59.999999", "2026-06-30 12:00:00.123456", "2262-04-12 00:00:00", "9999-12-31 23:59:59.999999"]
    listed = ", ".join(f"'{moment}'" for moment in moments)
    value = f"element_at(array({listed}), CAST(id % {len(moments)} + 1 AS INT))"
    insert(table, ["id", f"CAST({value} AS TIMESTAMP)", f"CAST({value} AS TIMESTAMP_NTZ)"], rows=90)
    judged(table, lakesmith, removed=4)
    first = table.frame().selectExpr("CAST(min(t) AS STRING) AS low", "CAST(max(t) AS STRING) AS high").first()
    assert first.low == "0001-01-01 00:00:00" and first.high.startswith("9999-12-31 23:59:59.999")


def test_decimals_of_every_width(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, " + ", ".join(f"d{p} DECIMAL({p},{s})" for p, s in ((9, 2), (10, 5), (18, 18), (19, 0), (38, 10), (38, 38))).replace("d38 DECIMAL(38,38)", "e38 DECIMAL(38,38)"))
    insert(table, ["id", "CAST((id - 250) * 1.01 AS DECIMAL(9,2))", "CAST(id / 7 AS DECIMAL(10,5))", "CAST(-0.999999999999999999 AS DECIMAL(18,18))",
                   "CASE WHEN id % 2 = 0 THEN CAST(9999999999999999999 AS DECIMAL(19,0)) END", "CAST(-9999999999999999999999999999.0123456789 AS DECIMAL(38,10))",
                   "CAST(0.00000000000000000000000000000000000001 AS DECIMAL(38,38))"])
    judged(table, lakesmith, removed=4)


def test_nested_types(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, a ARRAY<INT>, m MAP<STRING, STRUCT<x: INT, y: ARRAY<STRING>>>, s STRUCT<p: STRUCT<q: BIGINT, r: STRING>, u: ARRAY<STRUCT<v: INT>>>")
    insert(table, [
        "id", "CASE id % 4 WHEN 0 THEN array() WHEN 1 THEN array(1, null, CAST(id AS INT)) WHEN 2 THEN array(null) END",
        "CASE id % 4 WHEN 0 THEN map() WHEN 1 THEN map('k', null) WHEN 2 THEN map('a', named_struct('x', CAST(id AS INT), 'y', array('z', null)), 'b', named_struct('x', null, 'y', null)) END",
        "CASE id % 3 WHEN 0 THEN named_struct('p', null, 'u', array(null, named_struct('v', 1))) WHEN 1 THEN named_struct('p', named_struct('q', id, 'r', null), 'u', null) END",
    ])
    judged(table, lakesmith, removed=4)


def test_legacy_lists(new_table, lakesmith, conf):
    conf("spark.sql.parquet.writeLegacyFormat", "true")
    table = create(new_table(), "id BIGINT, a ARRAY<INT>, n ARRAY<ARRAY<STRING>>, m MAP<INT, ARRAY<INT>>, d DECIMAL(7,2)")
    values = ["id", "array(1, CAST(id AS INT))", "array(array('a'), array(), null)", "map(1, array(2, 3))", "CAST(1.5 AS DECIMAL(7,2))"]
    insert(table, values, appends=2)
    conf("spark.sql.parquet.writeLegacyFormat", "false")
    insert(table, values, appends=2)
    judged(table, lakesmith, removed=4)


def test_variants(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, v VARIANT")
    values = ["id", "CASE id % 5 WHEN 0 THEN parse_json('{\"a\": [1, 2.5, null, true], \"b\": \"ü\"}') WHEN 1 THEN parse_json('null') WHEN 2 THEN parse_json(CAST(id AS STRING)) WHEN 3 THEN parse_json('[]') END"]
    insert(table, values)
    judged(table, lakesmith, removed=4)


def test_long_strings_and_their_statistics(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, a STRING, u STRING, e STRING, n STRING")
    insert(table, ["id", "repeat('x', CAST(id % 3 * 40 + 31 AS INT))", "concat(repeat('\\uD83D\\uDE00', 33), 'b')", "'a\"\\\\\\n\\t'", "CAST(null AS STRING)"], rows=60)
    judged(table, lakesmith, removed=4)


@pytest.mark.full
def test_a_file_of_many_row_groups(new_table, lakesmith, conf):
    table = create(new_table(), "id BIGINT, v STRING")
    conf("spark.hadoop.parquet.block.size", 1 << 16)
    insert(table, ["id", "sha2(CAST(id AS STRING), 256)"], appends=3, rows=60_000)
    compacted(table, lakesmith, "--memory", "64MiB", "--threads", "1", removed=3, added=1)


def test_dates_before_the_calendar_reform(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, d DATE")
    dates = [datetime.date(1, 1, 1), datetime.date(1582, 10, 4), datetime.date(1582, 10, 15), datetime.date(9999, 12, 31), None]
    for k in range(3):
        rows = [(k * 10 + n, date) for n, date in enumerate(dates)]
        table.append(table.spark.createDataFrame(rows, "id BIGINT, d DATE"))
    judged(table, lakesmith, removed=3)
