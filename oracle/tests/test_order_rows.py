"""Odd rows in an order: Spark finds the same rows, files that follow each other, and true statistics."""

import pytest

from judgement import same_rows, settled
from table import Table
from test_features import create, insert, properties

PREFIX = "what a hundred characters have in common " * 3
COLUMNS = {
    "id": ("BIGINT", "id"),
    "n": ("INT", "CASE WHEN id % 3 > 0 THEN CAST(hash(id) AS INT) END"),
    "tiny": ("TINYINT", "CAST(hash(id) % 128 AS TINYINT)"),
    "same": ("INT", "7"),
    "nothing": ("INT", "CAST(null AS INT)"),
    "flag": ("BOOLEAN", "CASE WHEN id % 7 > 0 THEN hash(id) % 2 = 0 END"),
    "d": ("DOUBLE", "CASE hash(id) % 9 WHEN 0 THEN double('NaN') WHEN 1 THEN double('Infinity') WHEN 2 THEN double('-Infinity') "
                    "WHEN 3 THEN double('-0.0') WHEN 4 THEN 0D WHEN 5 THEN null ELSE hash(id) / 7 END"),
    "f": ("FLOAT", "CASE hash(id) % 9 WHEN 0 THEN float('NaN') WHEN 1 THEN float('Infinity') WHEN 2 THEN float('-Infinity') "
                   "WHEN 3 THEN float('-0.0') WHEN 4 THEN float(0) WHEN 5 THEN null ELSE CAST(hash(id) / 7 AS FLOAT) END"),
    "p": ("STRING", f"concat('{PREFIX}', hash(id) % 400)"),
    "s": ("STRING", "CASE hash(id) % 9 WHEN 0 THEN '' WHEN 1 THEN null WHEN 2 THEN repeat('\\uD83D\\uDE00', 40) WHEN 3 THEN concat('\\uFFFD', id) "
                    "WHEN 4 THEN concat('a', char(0), id) ELSE sha2(CAST(id AS STRING), 256) END"),
    "x": ("BINARY", "CASE hash(id) % 5 WHEN 0 THEN X'' WHEN 1 THEN null WHEN 2 THEN X'FF00' ELSE unhex(sha2(CAST(id AS STRING), 256)) END"),
    "dec": ("DECIMAL(9,2)", "CASE WHEN id % 10 > 0 THEN CAST(hash(id) % 999999999 / 100 AS DECIMAL(9,2)) END"),
    "big": ("DECIMAL(38,10)", "CASE WHEN id % 10 > 0 THEN CAST(hash(id) AS DECIMAL(38,10)) * 99999999999999999 + 0.0123456789BD END"),
    "dt": ("DATE", "CASE WHEN id % 11 > 0 THEN CASE WHEN id % 97 = 0 THEN DATE'9999-12-31' ELSE date_add(DATE'1890-01-01', CAST(hash(id) % 90000 AS INT)) END END"),
    "ts": ("TIMESTAMP", "CASE WHEN id % 11 > 0 THEN CASE WHEN id % 97 = 0 THEN TIMESTAMP'9999-12-31 23:59:59.999999' "
                        "ELSE timestamp_micros(hash(id) * 3000000L + id) END END"),
    "ntz": ("TIMESTAMP_NTZ", "CASE WHEN id % 97 = 0 THEN TIMESTAMP_NTZ'0001-01-01 00:00:00' ELSE CAST(timestamp_micros(hash(id) * 5000000L) AS TIMESTAMP_NTZ) END"),
    "st": ("STRUCT<k: INT, `q.r`: STRING, in: STRUCT<z: DOUBLE>>",
           "CASE hash(id) % 4 WHEN 0 THEN null WHEN 1 THEN named_struct('k', null, 'q.r', null, 'in', null) "
           "ELSE named_struct('k', CAST(hash(id) % 500 AS INT), 'q.r', CAST(hash(id) AS STRING), 'in', named_struct('z', hash(id) / 3)) END"),
    "a.b": ("INT", "CAST(hash(id) AS INT)"),
    "other": ("STRING", "CASE WHEN id % 2 = 0 THEN CAST(id AS STRING) END"),
}
KEYS = [name for name in COLUMNS if name not in ("st", "a.b", "other")] + ["st.k", "st.`q.r`", "st.in.z", "`a.b`"]
CURVES = {"sort": "--sort-by", "zorder": "--zorder-by", "hilbert": "--hilbert-by"}
TYPICAL = [("d", "sort"), ("p", "zorder"), ("big", "hilbert"), ("ts", "sort"), ("st.`q.r`", "sort"), ("`a.b`", "zorder")]
SEVERAL = [("d,p", "zorder"), ("dec,ts,s", "hilbert"), ("flag,f,dt", "sort")]
MORE = [("n,d,s,big", "zorder"), ("x,ntz,st.in.z,`a.b`", "hilbert"), ("same,nothing,p", "hilbert"), ("s,d", "sort"), ("nothing,same", "zorder"),
        ("id,n,tiny,same,nothing,flag,d,f,p,s,x,dec,big,dt,ts,ntz", "zorder")]


def rest(cases, chosen):
    return [pytest.param(*case, marks=pytest.mark.full) for case in cases if case not in chosen]


@pytest.fixture(scope="module")
def seed(spark, tmp_path_factory):
    table = Table(spark, str(tmp_path_factory.mktemp("rows") / "odd"))
    create(table, ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS.items()), properties(dataSkippingNumIndexedCols="40", enableDeletionVectors="true"))
    insert(table, [expression for _, expression in COLUMNS.values()], appends=4, rows=600)
    return table


def ordered(table, lakesmith, keys, curve, files, *args):
    """Orders a table into about so many files and judges what came out."""
    total = sum(file["size"] for file in lakesmith.files(table))
    flags = (CURVES[curve], keys, "--target-size", max(total // files, 1), *args)
    report = same_rows(table, lambda: lakesmith.optimize(table, "--verify", *flags))
    assert report["committed"]
    names = keys.split(",")
    if curve == "sort" or len(names) == 1:
        in_order(table, names)
    true_statistics(table, lakesmith, names)
    settled(table, lambda: lakesmith.optimize(table, *flags))
    return report


def in_order(table, names):
    """Within a file each row is at or above the one before; from file to file, too, but for equal keys."""
    rows = table.frame().selectExpr("_metadata.file_path AS file", "_metadata.row_index AS at", f"struct({', '.join(f'{name} AS k{i}' for i, name in enumerate(names))}) AS k")
    inside = rows.selectExpr("k < lag(k) OVER (PARTITION BY file ORDER BY at) AS wrong").where("wrong")
    assert inside.count() == 0
    files = rows.groupBy("file").agg({"k": "min", "*": "count"}).withColumnRenamed("min(k)", "low")
    files = files.join(rows.groupBy("file").agg({"k": "max"}).withColumnRenamed("max(k)", "high"), "file")
    between = files.selectExpr("low < lag(high) OVER (ORDER BY low, high) AS wrong").where("wrong")
    assert between.count() == 0


def true_statistics(table, lakesmith, names):
    """By every row; and Spark, which leaves files out by them, finds the rows that it finds without."""
    assert lakesmith.json("fsck", table, "--stats=data")["findings"] == []
    spark, setting = table.spark, "spark.databricks.delta.stats.skipping"
    name = names[0]
    values = [row.v for row in table.frame().selectExpr(f"{name} AS v").orderBy("v").where("v IS NOT NULL").limit(2000).collect()]
    if not values:
        return
    table.frame().selectExpr(f"{name} AS v").distinct().createOrReplaceTempView("probes")
    filters = [f"{name} <=> (SELECT {which}(v) FROM probes)" for which in ("min", "max")] + [f"{name} IS NULL"]

    def found():
        return [table.frame().where(each).count() for each in filters]

    try:
        spark.conf.set(setting, "false")
        expected = found()
    finally:
        spark.conf.unset(setting)
    assert found() == expected and sum(expected) > 0


@pytest.mark.parametrize(("keys", "curve"), TYPICAL + rest([(key, curve) for key in KEYS for curve in CURVES], TYPICAL))
def test_one_key(seed, tmp_path, lakesmith, keys, curve):
    report = ordered(seed.copy(tmp_path / "t"), lakesmith, keys, curve, 6)
    assert report["metrics"]["numFilesAdded"] >= 5


@pytest.mark.parametrize(("keys", "curve"), SEVERAL + rest(MORE, ()))
def test_several_keys(seed, tmp_path, lakesmith, keys, curve):
    report = ordered(seed.copy(tmp_path / "t"), lakesmith, keys, curve, 6)
    assert report["metrics"]["numFilesAdded"] >= 5


def test_equal_keys_and_the_least_memory(seed, tmp_path, lakesmith):
    table = seed.copy(tmp_path / "t")
    ordered(table, lakesmith, "same,other", "sort", 9, "--memory", "12MiB", "--threads", "3")
