"""The judge itself: the fingerprint must see what compaction could get wrong."""

import pytest

CHANGES = {
    "a null becomes a value": "named_struct('a', 1, 'b', double('-0.0'), 's', named_struct('x', 0), 'm', map('k', 1), 't', TIMESTAMP'2026-01-01 00:00:00.000001')",
    "a null moves": "named_struct('a', CAST(null AS INT), 'b', double('-0.0'), 's', named_struct('x', 0), 'm', map('k', 1), 't', CAST(null AS TIMESTAMP))",
    "minus zero": "named_struct('a', CAST(null AS INT), 'b', double('0.0'), 's', named_struct('x', CAST(null AS INT)), 'm', map('k', 1), 't', TIMESTAMP'2026-01-01 00:00:00.000001')",
    "a struct of nulls becomes null": "named_struct('a', CAST(null AS INT), 'b', double('-0.0'), 's', CAST(null AS STRUCT<x: INT>), 'm', map('k', 1), 't', TIMESTAMP'2026-01-01 00:00:00.000001')",
    "a microsecond": "named_struct('a', CAST(null AS INT), 'b', double('-0.0'), 's', named_struct('x', CAST(null AS INT)), 'm', map('k', 1), 't', TIMESTAMP'2026-01-01 00:00:00.000002')",
    "a value in a map": "named_struct('a', CAST(null AS INT), 'b', double('-0.0'), 's', named_struct('x', CAST(null AS INT)), 'm', map('k', 2), 't', TIMESTAMP'2026-01-01 00:00:00.000001')",
}
ROW = "named_struct('a', CAST(null AS INT), 'b', double('-0.0'), 's', named_struct('x', CAST(null AS INT)), 'm', map('k', 1), 't', TIMESTAMP'2026-01-01 00:00:00.000001')"


def written(new_table, spark, name, *rows):
    table = new_table(name)
    for row in rows:
        table.append(spark.sql(f"SELECT r.* FROM (SELECT {row} AS r)").coalesce(1))
    return table.fingerprint()[:2]


@pytest.fixture
def original(new_table, spark):
    return written(new_table, spark, "original", ROW)


@pytest.mark.full
@pytest.mark.parametrize("change", CHANGES)
def test_sees(original, new_table, spark, change):
    assert written(new_table, spark, "changed", CHANGES[change]) != original


def test_sees_a_doubled_row_but_no_order(new_table, spark):
    other = CHANGES["a microsecond"]
    assert written(new_table, spark, "a", ROW, other) == written(new_table, spark, "b", other, ROW)
    assert written(new_table, spark, "c", ROW, other) != written(new_table, spark, "d", ROW, ROW, other)
