"""ALTER TABLE … SET TBLPROPERTIES of what needs more than a feature: Spark sees the change and works on."""

import json
import time
import uuid

import pytest

from judgement import compacted, same_rows


def altered(table, lakesmith, key, value):
    return lakesmith.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('{key}' = '{value}')")


def metadata(table):
    return next(body for kind, body in reversed(table.commit()) if kind == "metaData")


COLUMNS = "id BIGINT, s STRUCT<a: INT, b: ARRAY<STRUCT<x: STRING>>>, m MAP<STRING, STRUCT<y: DOUBLE>>, p STRING"
STRUCT = "named_struct('a', cast(id AS INT), 'b', array(named_struct('x', 'v'))) AS s"
ROW = [STRUCT, "map('k', named_struct('y', 1.5D)) AS m"]


@pytest.fixture
def fresh_table(new_table):
    """A handle on a table under a path that no other test has: Spark remembers what it has seen under a path."""
    return lambda: new_table(f"t{uuid.uuid4().hex}")


def nested(spark, table):
    table.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p)")
    for k in range(3):
        table.append(spark.range(k * 10, k * 10 + 10).selectExpr("id", *ROW, "concat('p=', id % 2) AS p"))
    return table


def test_column_mapping_by_name_is_what_spark_makes_of_it(spark, fresh_table, lakesmith):
    table = nested(spark, fresh_table())
    twin = table.twin()
    same_rows(table, lambda: altered(table, lakesmith, "delta.columnMapping.mode", "name"))
    twin.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    ours, theirs = metadata(table), metadata(twin)
    assert ours["configuration"] == theirs["configuration"]
    assert json.loads(ours["schemaString"]) == json.loads(theirs["schemaString"])
    protocols = [next(body for kind, body in each.commit() if kind == "protocol") for each in (table, twin)]
    for each in protocols:
        each["writerFeatures"].sort()
    assert protocols[0] == protocols[1]
    table.sql("ALTER TABLE {t} RENAME COLUMN id TO key")
    table.sql("ALTER TABLE {t} DROP COLUMN m")
    table.append(spark.range(30, 40).selectExpr("id AS key", STRUCT, "'p=0' AS p"))
    compacted(table, lakesmith)
    table.sql("UPDATE {t} SET key = key + 100 WHERE key < 5")
    assert table.frame().where("key >= 100").count() == 5 and table.frame().count() == 40


def test_in_commit_timestamps_begin_with_our_commit(spark, fresh_table, lakesmith):
    table = nested(spark, fresh_table())
    before = table.version()
    same_rows(table, lambda: altered(table, lakesmith, "delta.enableInCommitTimestamps", "true"))
    enabled = metadata(table)["configuration"]
    info = table.commit_info()
    assert enabled["delta.inCommitTimestampEnablementVersion"] == str(before + 1)
    assert enabled["delta.inCommitTimestampEnablementTimestamp"] == str(info["inCommitTimestamp"])
    middle = info["inCommitTimestamp"]
    time.sleep(0.05)
    table.append(spark.range(30, 40).selectExpr("id", *ROW, "'p=0' AS p"))
    assert table.commit_info()["inCommitTimestamp"] > middle
    compacted(table, lakesmith)
    at = spark.read.format("delta").option("timestampAsOf", iso(middle)).load(table.path)
    assert at.count() == 30
    assert lakesmith.detail(table)["version"] == table.version()
    history = table.sql("DESCRIBE HISTORY {t}")
    assert [row.version for row in history] == list(range(table.version(), -1, -1))


def iso(ms):
    from datetime import datetime, timezone

    # Up to the next millisecond, as Spark compares with microseconds.
    return datetime.fromtimestamp((ms + 1) / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.mark.parametrize(
    "key, value",
    [
        ("delta.enableDeletionVectors", "true"),
        ("delta.enableChangeDataFeed", "true"),
        ("delta.checkpointPolicy", "v2"),
    ],
)
def test_features_that_a_property_enables(spark, fresh_table, lakesmith, key, value):
    table = nested(spark, fresh_table())
    same_rows(table, lambda: altered(table, lakesmith, key, value))
    table.sql("DELETE FROM {t} WHERE id = 3")
    table.append(spark.range(30, 40).selectExpr("id", *ROW, "'p=0' AS p"))
    lakesmith.run("checkpoint", table)
    compacted(table, lakesmith)
    table.sql("UPDATE {t} SET id = id + 100 WHERE id < 5")
    assert table.frame().count() == 39
    if "ChangeData" in key:
        changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 4).load(table.path)
        assert changes.where("_change_type = 'delete'").count() == 1
