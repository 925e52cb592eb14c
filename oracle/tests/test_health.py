"""The health check counts what Spark counts."""

import os

import pytest

from conftest import FIXTURES

NAMES = sorted(name for name in os.listdir(FIXTURES) if os.path.isdir(os.path.join(FIXTURES, name)))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "unknown_reader_feature"])
def test_files_bytes_and_partitions(golden, lakesmith, name):
    table = golden(name)
    health = lakesmith.json("health", table)
    if name == "unknown_writer_feature":
        detail = {"numFiles": health["files"], "sizeInBytes": health["bytes"]}
    else:
        detail = table.sql("DESCRIBE DETAIL {t}")[0].asDict()
    assert (health["files"], health["bytes"]) == (detail["numFiles"], detail["sizeInBytes"])
    columns = health["partition_columns"]
    distinct = table.frame().select(*[f"`{c}`" for c in columns]).distinct().count() if columns else 0
    # A partition whose rows are all deleted by vectors still has files.
    assert health["partitions"] >= distinct and (health["deletes"]["files"] > 0 or health["partitions"] == distinct)
    if health["rows"] is not None:
        assert health["rows"] == table.frame().count()
    assert health["source"] == "checkpoint"


def test_health_after_each_step_of_sparks(new_table, spark, lakesmith):
    """Appends, deletes by vector, OPTIMIZE and VACUUM by Spark are seen for what they are."""
    table = new_table()
    spark.sql(f"CREATE TABLE {table.name} (id BIGINT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    for _ in range(12):
        table.append(spark.range(1000).selectExpr("id", "cast(id % 2 AS INT) AS p"), files=8)
    ill = lakesmith.json("health", table)
    small = next(f for f in ill["findings"] if f["id"] == "small-files")
    assert small["severity"] == "warning" and small["evidence"]["files_after_optimize"] == 2
    table.sql("DELETE FROM {t} WHERE id % 10 = 0")
    marked = lakesmith.json("health", table)
    assert marked["deletes"]["rows"] == 1200 and marked["rows"] == table.frame().count()
    assert any(f["id"] == "deleted-rows-stored" and f["severity"] == "warning" for f in marked["findings"])
    table.sql("OPTIMIZE {t}")
    well = lakesmith.json("health", table)
    assert well["files"] == 2 and well["maintenance"]["last_optimize"]["version"] == table.version()
    assert not any(f["severity"] != "info" for f in well["findings"])
    assert well["tombstones"]["all"]["files"] == ill["files"]
    deep = lakesmith.json("health", table, "--deep")
    assert deep["storage"]["missing_files"] == 0 and deep["statistics"]["complete"]
