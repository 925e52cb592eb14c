"""INSERT beside Spark's own: values of partitions, folders and statistics are the same to the letter."""

import json
import os
import uuid
from urllib.parse import unquote

import pytest


@pytest.fixture
def pair(new_table, lakesmith):
    """pair(columns, tail, *statements): two tables alike, one for us and one for Spark, made by Spark."""

    def make(columns, tail="", *statements):
        table = new_table(f"t{uuid.uuid4().hex}")
        for text in (f"CREATE TABLE {{t}} ({columns}) USING delta {tail}", *statements):
            table.sql(text)
        return table, table.copy(f"{table.path}-spark")

    return make


ODD_TEXTS = ["'a/b'", "'100%'", "'x y'", "'co:lon'", "'ü☃'", "'k=v'", "''", "NULL", "'a\"q'", "'#?&+'", "'[x]{y}'", "'__HIVE_DEFAULT_PARTITION__x'"]


def test_partition_values_are_written_alike(pair, lakesmith):
    mine, theirs = pair("id INT, p STRING", "PARTITIONED BY (p)")
    values = ", ".join(f"({number}, {value})" for number, value in enumerate(ODD_TEXTS))
    text = f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}"
    theirs.sql(text)
    lakesmith.run("sql", text.replace("{t}", mine.name))
    found = [sorted((json.loads(body["stats"])["minValues"]["id"], body["partitionValues"], os.path.dirname(body["path"])) for kind, body in table.commit() if kind == "add")
             for table in (mine, theirs)]
    assert found[0] == found[1]
    for table in (mine, theirs):
        assert all(os.path.exists(f"{table}/{unquote(body['path'])}") for action, body in table.commit() if action == "add")
    assert mine.fingerprint() == theirs.fingerprint()
    for text in (f"DELETE FROM {{t}} WHERE p <=> {ODD_TEXTS[0]}", f"INSERT INTO {{t}} REPLACE WHERE p = {ODD_TEXTS[1]} SELECT 7, {ODD_TEXTS[1]}"):
        theirs.sql(text)
        lakesmith.run("sql", text.replace("{t}", mine.name))
        assert mine.fingerprint() == theirs.fingerprint(), text


STATISTICS = {
    "DOUBLE": ["0.1D", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "-0.0D", "1e300D", "1e-7D", "100D", "12345678.9D"],
    "FLOAT": ["CAST(0.1 AS FLOAT)", "CAST(3.4e38 AS FLOAT)", "CAST(1 AS FLOAT)"],
    "STRING": ["'short'", "repeat('x', 40)", "repeat('ü', 33)", "concat(repeat('a', 31), '😀😀')", "''", "NULL", "'a\"b\\\\c'", "'tab\\t'"],
    "TIMESTAMP": ["TIMESTAMP '2026-02-28 01:02:03.123456'", "TIMESTAMP '1969-12-31 23:59:59.9999'", "TIMESTAMP '0001-01-01 00:00:00'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ '2026-02-28 01:02:03.123456'", "TIMESTAMP_NTZ '1900-01-01 00:00:00'"],
    "DATE": ["DATE '2026-02-28'", "DATE '0001-01-01'"],
    "DECIMAL(10,2)": ["CAST(1.5 AS DECIMAL(10,2))", "CAST(-3 AS DECIMAL(10,2))"],
    "DECIMAL(38,18)": ["CAST(0.000000000000000001 AS DECIMAL(38,18))", "CAST(12345678901234567890 AS DECIMAL(38,18))"],
    "BINARY": ["X'00FF'"],
    "BOOLEAN": ["true", "NULL"],
    "STRUCT<a: INT, b: STRUCT<c: STRING>>": ["named_struct('a', 1, 'b', named_struct('c', 'x'))", "named_struct('a', NULL, 'b', NULL)", "NULL"],
    "ARRAY<INT>": ["array(1, NULL)", "NULL"],
    "MAP<STRING, INT>": ["map('a', 1)"],
}


def test_statistics_are_those_of_spark(pair, lakesmith):
    mine, theirs = pair(", ".join(f"c{number} {kind}" for number, kind in enumerate(STATISTICS)))
    for number in range(8):
        row = ", ".join(values[number % len(values)] for values in STATISTICS.values())
        text = f"INSERT INTO {{t}} VALUES ({row})"
        theirs.sql(text)
        lakesmith.run("sql", text.replace("{t}", mine.name))
        found = [next(json.loads(body["stats"]) for kind, body in table.commit() if kind == "add") for table in (mine, theirs)]
        assert found[0] == found[1], text
    assert mine.fingerprint() == theirs.fingerprint()
