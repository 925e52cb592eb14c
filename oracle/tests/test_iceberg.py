"""Iceberg tables that Spark wrote: the same rows for us and for Spark, at every snapshot, and the same metadata tables."""

import json

import pytest

from answers import near, shown
from lakesmith_binary import Failed

DAYS = "date_add(DATE'2026-01-01', CAST(id % 40 AS INT))"
STAMP = "timestamp_micros(1767225600000000 + id * 3600000011)"

TABLES = {
    # name: (properties, partitioning)
    "copied_v1": ("'format-version'='1'", "PARTITIONED BY (k)"),
    "marked_v2": ("'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'",
                  "PARTITIONED BY (months(d), bucket(4, id))"),
    "scoped_v2": ("'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='file'",
                  "PARTITIONED BY (truncate(3, v), hours(ts))"),
    "vectors_v3": ("'format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'", "PARTITIONED BY (days(ts))"),
    "plain_v3": ("'format-version'='3', 'write.delete.mode'='merge-on-read'", ""),
}

# What Iceberg's own readers skip by bounds hides NaN from `x > 60` and -0.0 from `x = 0`: Spark's answer depends on how rows lie in files.
FILTERS = [
    "id = 137", "id IN (3, 77, 401)", "id > 380", "id < 0 OR k = 2", "k IS NULL", "k = 3 AND d >= DATE'2026-01-20'", "v = 'name 7'",
    "v LIKE 'name 1%'", "v IS NULL", "v >= 'name 3' AND v < 'name 5'", "d = DATE'2026-01-17'", "d < DATE'2026-01-03'", "d IS NULL",
    "ts >= TIMESTAMP'2026-01-10 00:00:00' AND ts < TIMESTAMP'2026-01-11 12:00:00'", "ts IS NULL", "x > 60 AND x < 1e9", "x = 30.0", "x = double('NaN')",
    "x < -1", "price = 13.70", "price > 400", "price IS NULL", "bin = X'33'", "ok", "NOT ok AND k < 3", "st.a = 11", "st.b.c IS NULL", "st IS NULL",
    "year(ts) = 2026 AND id % 17 = 3", "id BETWEEN 100 AND 120 AND v <> 'name 1'", "later IS NULL", "later = 7", "k2 = 4",
]


def rows_of(frame):
    return [[shown(value, field.dataType) for value, field in zip(row, frame.schema.fields)] for row in frame.collect()]


def ordered(value):
    """Entries of maps in the order of their keys: writers put them in any."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(item) for item in value] if isinstance(value, list) else value


class Both:
    """One table for both."""

    def __init__(self, spark, lakesmith, name):
        self.spark, self.lakesmith, self.name = spark, lakesmith, f"ice.db.{name}"
        self.path = spark.conf.get("spark.sql.catalog.ice.warehouse") + f"/db/{name}"

    def sql(self, text):
        return self.spark.sql(text.replace("{t}", self.name))

    def ours(self, text):
        lines = self.lakesmith.run("sql", text.replace("{t}", f"iceberg.`{self.path}`"), "--json").splitlines()
        return [list(json.loads(line).values()) for line in lines]

    def same(self, text):
        ours, theirs = self.ours(text), rows_of(self.sql(text))
        assert len(ours) == len(theirs), text
        for our, their in zip(ours, theirs):
            assert near(ordered(our), ordered(their)), (text, our, their)
        return ours


def add(table, start, columns="id, k, v, d, ts, x, price, bin, ok, st"):
    values = {
        "id": "id", "k": "CASE WHEN id % 9 > 0 THEN CAST(id % 5 AS INT) END", "v": "CASE WHEN id % 8 > 0 THEN concat('name ', id % 37) END",
        "d": f"CASE WHEN id % 10 > 0 THEN {DAYS} END", "ts": f"CASE WHEN id % 12 > 0 THEN {STAMP} END",
        "x": "CASE id % 7 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-0.0') WHEN 2 THEN double('-Infinity') WHEN 3 THEN 0.0D ELSE id / 3 END",
        "price": "CASE WHEN id % 6 > 0 THEN CAST(id * 1.37 AS DECIMAL(10,2)) END", "bin": "unhex(hex(id))", "ok": "id % 2 = 0",
        "st": "CASE WHEN id % 11 > 0 THEN named_struct('a', CAST(id AS INT), 'b', named_struct('c', CASE WHEN id % 3 > 0 THEN 'c' END)) END",
        "k2": "CAST(id % 6 AS BIGINT)", "later": "CAST(id % 9 AS INT)", "name": "concat('name ', id % 37)",
    }
    table.spark.range(start, start + 100, 1, 2).selectExpr(*[f"{values[c.strip()]} AS `{c.strip()}`" for c in columns.split(",")]) \
        .createOrReplaceTempView("added")
    table.sql(f"INSERT INTO {{t}} ({columns}) SELECT {columns} FROM added")


# All of them take minutes.
IN_CI = ("vectors_v3",)


@pytest.fixture(scope="module", params=[name if name in IN_CI else pytest.param(name, marks=pytest.mark.full) for name in TABLES])
def table(request, spark, lakesmith):
    """Appends, deletes and updates, with the schema and the partitioning changed in between."""
    properties, partitioning = TABLES[request.param]
    table = Both(spark, lakesmith, request.param)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    table.sql(f"""CREATE TABLE {{t}} (id BIGINT, k INT, v STRING, d DATE, ts TIMESTAMP, x DOUBLE, price DECIMAL(10,2), bin BINARY, ok BOOLEAN,
        st STRUCT<a: INT, b: STRUCT<c: STRING>>) USING iceberg {partitioning} TBLPROPERTIES ({properties}, 'commit.manifest.min-count-to-merge'='3')""")
    add(table, 0)
    add(table, 100)
    table.sql("DELETE FROM {t} WHERE id % 13 = 5")
    table.sql("UPDATE {t} SET price = price + 1, v = 'changed' WHERE id % 29 = 7")
    table.sql("ALTER TABLE {t} ADD COLUMN later INT")
    table.sql("ALTER TABLE {t} ALTER COLUMN price TYPE DECIMAL(12,2)")
    table.sql("ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT")
    if partitioning != "PARTITIONED BY (k)":
        table.sql("ALTER TABLE {t} RENAME COLUMN k TO k2")
        table.sql("ALTER TABLE {t} ADD COLUMN k STRING")
    else:
        table.sql("ALTER TABLE {t} ADD COLUMN k2 BIGINT")
    add(table, 200, "id, k2, v, d, ts, x, price, bin, ok, st, later")
    table.sql("DELETE FROM {t} WHERE k2 = 3 AND id % 2 = 0")
    table.sql("DELETE FROM {t} WHERE later = 4")
    add(table, 300, "id, k2, v, d, ts, x, price, bin, ok, st, later")
    return table


def test_rows_are_those_that_spark_reads(table):
    assert table.same("SELECT * FROM {t} ORDER BY id, v") != []
    table.same("SELECT count(*), count(DISTINCT id), sum(id), min(d), max(ts), sum(price), min(x), max(x) FROM {t}")


def test_every_snapshot_has_the_rows_that_spark_reads(table):
    snapshots = [row[0] for row in table.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at").collect()]
    assert len(snapshots) >= 7
    for snapshot in snapshots:
        table.same(f"SELECT * FROM {{t}} VERSION AS OF {snapshot} ORDER BY id, v")


def test_filters_find_the_rows_that_spark_finds(table):
    for condition in FILTERS:
        table.same(f"SELECT id, v FROM {{t}} WHERE {condition} ORDER BY id, v")


def test_hidden_columns_are_spark_s(table):
    table.same("SELECT id, _file, _pos, _spec_id, _partition FROM {t} ORDER BY id, _file, _pos")


def test_row_ids_are_spark_s(table):
    if not table.name.endswith("_v3"):
        with pytest.raises(Failed):
            table.ours("SELECT _row_id FROM {t}")
        return
    table.same("SELECT id, _row_id, _last_updated_sequence_number FROM {t} ORDER BY id, v")


KINDS = {
    # name: order
    "snapshots": "snapshot_id", "history": "made_current_at, snapshot_id", "refs": "name", "metadata_log_entries": "file",
    "files": "file_path, referenced_data_file", "data_files": "file_path", "delete_files": "file_path, referenced_data_file",
    "all_data_files": "file_path", "all_delete_files": "file_path, referenced_data_file", "all_files": "file_path, referenced_data_file",
    "entries": "data_file.file_path, data_file.referenced_data_file, status, snapshot_id", "manifests": "path",
    "all_entries": "data_file.file_path, data_file.referenced_data_file, status, snapshot_id, sequence_number",
    "all_manifests": "path, reference_snapshot_id", "partitions": "record_count, last_updated_at, total_data_file_size_in_bytes",
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_metadata_tables_are_spark_s(table, kind):
    theirs = table.sql(f"SELECT * FROM {{t}}.{kind}").schema
    columns = [json.loads(line) for line in table.lakesmith.run("sql", f"SELECT * FROM iceberg.`{table.path}`.{kind} LIMIT 1", "--json").splitlines()]
    assert [list(row) for row in columns] in ([], [[field.name for field in theirs.fields]])
    table.same(f"SELECT * FROM {{t}}.{kind} ORDER BY {KINDS[kind]}")


def test_a_catalog_s_names_are_spark_s(table, lakesmith):
    warehouse = table.spark.conf.get("spark.sql.catalog.ice.warehouse")
    sets = f"SET spark.sql.catalog.ice=org.apache.iceberg.spark.SparkCatalog; SET spark.sql.catalog.ice.type=hadoop; SET spark.sql.catalog.ice.warehouse={warehouse};"
    count = lakesmith.sql(f"{sets} SELECT count(*) AS n FROM {table.name}")[-1]["n"]
    assert count == table.sql("SELECT count(*) FROM {t}").collect()[0][0]
    shown = {row["tableName"] for row in lakesmith.sql(f"{sets} SHOW TABLES IN ice.db") if "tableName" in row}
    assert table.name.split(".")[-1] in shown
