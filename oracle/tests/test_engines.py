"""Faults that show only when one engine writes, another compacts and a third reads."""

import os
import threading
import time
from urllib.parse import unquote

import pytest

from judgement import compacted, deltalake_reads, deltalake_rows, duckdb_reads, same_rows, settled
from test_features import create, insert, judged, properties


def found(table, condition):
    """Rows that a condition finds, in Spark and in deltalake, which must agree."""
    from deltalake import DeltaTable, QueryBuilder

    theirs = table.frame().where(condition).count()
    query = QueryBuilder().register("t", DeltaTable(table.path)).execute(f"SELECT * FROM t WHERE {condition}")
    assert sum(batch.num_rows for batch in query) == theirs, condition
    return theirs


@pytest.mark.parametrize("kind", ["STRING", "TIMESTAMP"])
def test_partition_values_with_a_space_and_a_colon_are_found_by_every_engine(new_table, lakesmith, kind):
    table = create(new_table("a table: with spaces"), f"id BIGINT, k {kind}", "PARTITIONED BY (k)")
    insert(table, ["id", f"CAST(concat('2024-10-09 1', CAST(id % 3 AS STRING), ':00:00') AS {kind})"])
    before = deltalake_rows(table)
    judged(table, lakesmith, removed=12, added=3)
    assert deltalake_rows(table).equals(before)
    assert duckdb_reads(table, lakesmith) == table.frame().count() == 2000
    assert found(table, "k = '2024-10-09 11:00:00'") == len([n for n in range(2000) if n % 3 == 1])
    # What is escaped in the folder's name is encoded once more in the log.
    paths = [file["path"] for file in lakesmith.files(table)]
    assert all("%3A" in unquote(path) and ":" not in path and " " not in path for path in paths)
    assert all(os.path.exists(f"{table}/{unquote(path)}") for path in paths)


def test_a_renamed_column_is_not_taken_for_the_one_whose_name_it_bears_in_the_files(new_table, lakesmith):
    """Column `b` was `a` once, so its name in the files is the logical name of the `a` that came later."""
    table = create(new_table(), "id BIGINT, a INT")
    insert(table, ["id", "1"], appends=2)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode'='name')")
    table.sql("ALTER TABLE {t} RENAME COLUMN a TO b")
    table.sql("ALTER TABLE {t} ADD COLUMNS (a INT)")
    insert(table, ["id", "2", "3"], appends=2)
    judged(table, lakesmith, removed=4)
    assert (found(table, "b = 1"), found(table, "b = 2"), found(table, "a = 3"), found(table, "a IS NULL")) == (1000, 1000, 1000, 1000)
    assert found(table, "a = 1") == found(table, "b = 3") == 0


def test_compaction_of_a_clustered_table_keeps_its_keys(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, k INT", "CLUSTER BY (k) " + properties(**{"columnMapping.mode": "name"}))
    table.sql("ALTER TABLE {t} RENAME COLUMN k TO key")
    insert(table, ["id", "CAST(hash(id) % 100 AS INT)"])
    domains = [body for version in range(table.version() + 1) for kind, body in table.commit(version) if kind == "domainMetadata"]
    compacted(table, lakesmith, removed=4, added=1)
    assert not [kind for kind, _ in table.commit() if kind == "domainMetadata"] and domains
    assert table.detail().clusteringColumns == lakesmith.detail(table)["clusteringColumns"] == ["key"]


def test_a_file_deleted_whole_or_replaced_leaves_with_its_vector(new_table, lakesmith):
    table = create(new_table(), "id BIGINT, v STRING", properties(enableDeletionVectors="true"))
    insert(table, ["id", "'old'"], appends=3)
    table.sql("DELETE FROM {t} WHERE id % 10 = 3")
    table.sql("DELETE FROM {t} WHERE id < 500")
    assert sum(file["numRecords"] - file["deletedRows"] for file in lakesmith.files(table)) == table.frame().count() == 900
    compacted(table, lakesmith, removed=2, added=1)
    assert deltalake_reads(table) == 900
    table.sql("DELETE FROM {t} WHERE id % 10 = 4")
    tail = properties(enableDeletionVectors="true")
    table.sql(f"CREATE OR REPLACE TABLE {{t}} USING delta {tail} AS SELECT /*+ REPARTITION(2) */ id, 'new' AS v FROM range(100)")
    assert any(kind == "remove" and body.get("deletionVector") for kind, body in table.commit())
    assert sum(file["numRecords"] for file in lakesmith.files(table)) == 100
    compacted(table, lakesmith, removed=2, added=1)
    lakesmith.run("checkpoint", table)
    table.forget_before_checkpoint()
    assert table.frame().where("v = 'new'").count() == deltalake_reads(table) == 100


def test_the_last_microseconds_of_a_file_are_found(new_table, lakesmith):
    """Statistics hold milliseconds only: a filter between the two must not skip the file."""
    table = create(new_table(), "id BIGINT, t TIMESTAMP, n TIMESTAMP_NTZ")
    insert(table, ["id", "TIMESTAMP'2026-01-01 00:00:00.123456'", "TIMESTAMP_NTZ'2026-01-01 00:00:00.123456'"], appends=2)
    judged(table, lakesmith, removed=2)
    for column in ("t", "n"):
        assert found(table, f"{column} >= TIMESTAMP'2026-01-01 00:00:00.1234'") == 1000
        assert found(table, f"{column} > TIMESTAMP'2026-01-01 00:00:00.123456'") == 0


def test_statistics_of_quoted_names_of_nulls_and_of_numbers_that_are_none(new_table, lakesmith):
    chosen = "`a.b`,s.`x.y`,s.z,none,d,f,`we``ird`"
    table = create(new_table(), "id BIGINT, `a.b` INT, s STRUCT<`x.y`: INT, z: STRING, w: INT>, x BINARY, none STRING, d DOUBLE, f FLOAT, `we``ird` INT, rest INT",
                   properties(dataSkippingStatsColumns=chosen))
    insert(table, ["id", "CAST(id AS INT)", "named_struct('x.y', CAST(id AS INT), 'z', CAST(id AS STRING), 'w', 1)", "CAST('bytes' AS BINARY)", "CAST(null AS STRING)",
                   "CASE id % 3 WHEN 0 THEN double('NaN') WHEN 1 THEN double('Infinity') ELSE id / 7 END",
                   "CASE id % 2 WHEN 0 THEN float('-Infinity') ELSE float(id) END", "CAST(id AS INT)", "1"])
    judged(table, lakesmith, removed=4)
    assert found(table, "`a.b` = 7") == 1 and found(table, "none IS NULL") == 2000
    assert table.frame().where("s.`x.y` = 7 AND `we``ird` = 7").count() == 1
    assert table.frame().where("isnan(d)").count() == len([n for n in range(2000) if n % 3 == 0])


def test_a_writers_own_metadata_is_found_behind_a_compaction(new_table, lakesmith, conf):
    table = create(new_table(), "id BIGINT")
    insert(table, ["id"], appends=3)
    conf("spark.databricks.delta.commitInfo.userMetadata", '{"batch": 7}')
    insert(table, ["id"], appends=1)
    lakesmith.json("optimize", table, "--set", "spark.databricks.delta.commitInfo.userMetadata=nightly")
    newest = table.sql("DESCRIBE HISTORY {t} LIMIT 1")[0]
    assert (newest.operation, newest.userMetadata) == ("OPTIMIZE", "nightly")
    assert lakesmith.history(table)[0]["userMetadata"] == "nightly"
    last_change = lakesmith.json("history", table, "--data-changes", "--limit", 1)
    assert [row["userMetadata"] for row in last_change] == ['{"batch": 7}']


def test_appends_ten_times_a_second_neither_starve_nor_lose_to_a_compaction_in_steps(spark, new_table, lakesmith):
    import pyarrow as pa
    from deltalake import write_deltalake

    table = new_table()

    def append(number):
        ids = pa.array(range(number * 100, number * 100 + 100))
        write_deltalake(table.path, pa.table({"id": ids, "v": ids.cast(pa.string())}), mode="append")

    for number in range(40):
        append(number)
    stop, written, failures = threading.Event(), [40], []

    def write():
        while not stop.is_set():
            started = time.monotonic()
            try:
                append(written[0])
                written[0] += 1
            except Exception as error:
                failures.append(error)
            stop.wait(max(0, 0.1 - (time.monotonic() - started)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reports = [lakesmith.optimize(table, "--target-size", "8KiB", "--commit-every", "8KiB") for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    assert failures == [] and written[0] > 40
    assert all(report["groups_dropped"] == 0 for report in reports) and reports[0]["metrics"]["numBatches"] > 3
    assert any(report["version_after"] > report["version_before"] + report["metrics"]["numBatches"] for report in reports if report["committed"])
    ids = [row.id for row in table.sql("SELECT id FROM {t}")]
    assert sorted(ids) == list(range(written[0] * 100)) and deltalake_reads(table) == len(ids)
    same_rows(table, lambda: lakesmith.optimize(table))
    settled(table, lambda: lakesmith.optimize(table))
