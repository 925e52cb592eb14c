"""Our RESTORE beside Spark's own on a twin: the same rows, metadata and numbers, and Spark goes on working on the result."""

import datetime
import json
import os

import pytest

from lakesmith_binary import Failed

# Name -> (properties and layout, statements of the versions after the creation, the version to return to).
TABLES = {
    "vectors": (
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true')",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(100)", "DELETE FROM {t} WHERE id < 10", "DELETE FROM {t} WHERE id < 20", "OPTIMIZE {t}"],
        2,
    ),
    "partitions and row ids": (
        "PARTITIONED BY (v) TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true')",
        ["INSERT INTO {t} SELECT id, CAST(id % 3 AS STRING) FROM range(100)", "UPDATE {t} SET id = id + 1000 WHERE id < 5", "DELETE FROM {t} WHERE v = '1'"],
        2,
    ),
    "mapped columns": (
        "TBLPROPERTIES ('delta.columnMapping.mode'='name')",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(10)", "ALTER TABLE {t} RENAME COLUMN v TO w", "ALTER TABLE {t} ADD COLUMN x INT",
         "INSERT INTO {t} SELECT id, 'b', 1 FROM range(10)", "ALTER TABLE {t} DROP COLUMN w"],
        1,
    ),
    "other keys": (
        "CLUSTER BY (id)",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(10)", "ALTER TABLE {t} CLUSTER BY (v)", "INSERT INTO {t} SELECT id, 'b' FROM range(10)"],
        1,
    ),
    "keys that were not there": (
        "",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(10)", "ALTER TABLE {t} CLUSTER BY (v)", "INSERT INTO {t} SELECT id, 'b' FROM range(10)"],
        1,
    ),
    "before the clock": (
        "",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(10)", "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps'='true')",
         "INSERT INTO {t} SELECT id, 'b' FROM range(10)"],
        1,
    ),
    "since the clock": (
        "",
        ["ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps'='true')", "INSERT INTO {t} SELECT id, 'a' FROM range(10)",
         "INSERT INTO {t} SELECT id, 'b' FROM range(10)"],
        2,
    ),
    "before row ids": (
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true')",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(10)", "DELETE FROM {t} WHERE id > 3",
         "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking'='true')", "INSERT INTO {t} SELECT id, 'b' FROM range(10)"],
        1,
    ),
    "changes": (
        "TBLPROPERTIES ('delta.enableChangeDataFeed'='true', 'delta.enableDeletionVectors'='true')",
        ["INSERT INTO {t} SELECT id, 'a' FROM range(10)", "UPDATE {t} SET v = 'b' WHERE id = 3", "DELETE FROM {t} WHERE id = 4"],
        1,
    ),
}
CORE = ("vectors", "partitions and row ids", "other keys", "since the clock", "before row ids")


def made(table, name):
    layout, statements, version = TABLES[name]
    table.sql(f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta {layout}")
    for statement in statements:
        table.sql(statement)
    return version


def of_kind(actions, kind):
    return [body for found, body in actions if found == kind]


@pytest.mark.parametrize("name", [n if n in CORE else pytest.param(n, marks=pytest.mark.full) for n in TABLES])
def test_restore_is_sparks_own(spark, new_table, lakesmith, name):
    table = new_table()
    version = made(table, name)
    expected = table.fingerprint(version)
    twin = table.twin()
    theirs = twin.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")[0].asDict()
    ours = lakesmith.sql(f"RESTORE TABLE {table.name} TO VERSION AS OF {version}")
    assert ours == [theirs] and list(ours[0]) == list(theirs)
    assert table.fingerprint() == expected == twin.fingerprint()
    a, b = table.commit(), twin.commit()
    for kind in ("protocol", "domainMetadata", "metaData"):
        mine, spark_s = of_kind(a, kind), of_kind(b, kind)
        if kind == "protocol":
            mine, spark_s = ([{k: sorted(v) if isinstance(v, list) else v for k, v in p.items()} for p in side] for side in (mine, spark_s))
        if kind == "metaData":
            # Ids of columns are not given twice, and the log's clock is a matter of the log.
            mine, spark_s = ([{**m, "configuration": without_own(m["configuration"])} for m in side] for side in (mine, spark_s))
        if kind == "domainMetadata":
            # Where nothing changes there is nothing to write.
            spark_s = [d for d in spark_s if d["domain"] == "delta.clustering" and mine]
            mine = [d for d in mine if d["domain"] == "delta.clustering"]
        assert mine == spark_s, kind
    for kind in ("add", "remove"):
        # Rows that were never numbered get numbers of our own.
        number = (lambda f: None) if name == "before row ids" else (lambda f: f.get("baseRowId"))
        keys = lambda side: sorted((f["path"], str(f.get("deletionVector")), number(f), f["dataChange"]) for f in of_kind(side, kind))
        assert keys(a) == keys(b), kind
    mine, spark_s = table.commit_info(), twin.commit_info()
    for key in ("operation", "operationParameters", "operationMetrics", "isolationLevel", "isBlindAppend", "readVersion"):
        assert mine[key] == spark_s[key], key
    assert lakesmith.detail(table)["clusteringColumns"] == table.detail()["clusteringColumns"] == twin.detail()["clusteringColumns"]
    restored_at = table.version()
    # Spark goes on.
    table.sql("INSERT INTO {t} SELECT id + 5000 AS id, '2' AS v FROM range(7)")
    table.sql("UPDATE {t} SET id = id + 1 WHERE id = 5001")
    table.sql("DELETE FROM {t} WHERE id = 5003")
    table.sql("OPTIMIZE {t}")
    assert table.frame().count() == expected[0] + 6
    if name == "before row ids":
        added = lambda side: [(f["baseRowId"], json.loads(f["stats"])["numRecords"]) for f in of_kind(side, "add") if "baseRowId" in f]
        given = [end for v in range(restored_at) for end in (first + rows for first, rows in added(table.commit(v)))]
        assert len(added(a)) == len(of_kind(a, "add")) > 0 and all(first >= max(given) for first, _ in added(a))
        # What was numbered while nobody asked is shown once somebody does.
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking'='true')")
    if "row ids" in name:
        ids = [row[0] for row in table.frame().selectExpr("_metadata.row_id").collect()]
        assert len(ids) == table.frame().count() > 0
        assert None not in ids and len(set(ids)) == len(ids)


def without_own(configuration):
    own = ("delta.columnMapping.maxColumnId", "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")
    return {key: value for key, value in configuration.items() if key not in own}


def test_identity_values_are_not_given_twice(spark, new_table, lakesmith):
    table = new_table()
    from delta.tables import DeltaTable, IdentityGenerator

    columns = DeltaTable.create(spark).location(table.path).addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator())
    columns.addColumn("v", "STRING").execute()
    for k in range(3):
        table.sql(f"INSERT INTO {{t}} (v) SELECT CAST(id AS STRING) FROM range({k * 5}, {k * 5 + 5})")
    given = {row.id for row in table.frame().collect()}
    lakesmith.run("restore", table, "--version", 1)
    kept = {row.id for row in table.frame().collect()}
    assert len(kept) == 5
    table.sql("INSERT INTO {t} (v) VALUES ('new')")
    new = {row.id for row in table.frame().collect()} - kept
    assert len(new) == 1 and not new & given


def test_what_vacuum_took_does_not_come_back(spark, conf, new_table, lakesmith):
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table = new_table()
    made(table, "vectors")
    table.sql("VACUUM {t} RETAIN 0 HOURS")
    before = table.version()
    with pytest.raises(Failed) as refused:
        lakesmith.json("restore", table, "--version", 1)
    message = refused.value.error["message"]
    assert refused.value.code == 1 and "Not all files from version 1 are available" in message and ".parquet" in message
    assert table.version() == before
    readable = {entry["version"]: entry["readable"] for entry in lakesmith.json("history", table, "--readable")}
    assert not readable[1] and readable[before]


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"])
def test_times_mean_what_they_mean_to_spark(conf, new_table, lakesmith, form):
    # Else Spark would not travel back beyond what a VACUUM may have removed.
    conf("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false")
    table = new_table()
    made(table, "vectors")
    # Each commit a day after the one before; without in-commit timestamps the files' times are the commits'.
    start = datetime.datetime(2026, 3, 1, 12, 30, 15, 250_000, datetime.timezone.utc)
    days = [start + datetime.timedelta(days=version) for version in range(table.version() + 1)]
    for version, day in enumerate(days):
        os.utime(f"{table.path}/_delta_log/{version:020d}.json", (day.timestamp(), day.timestamp()))
    twin = table.twin()
    moment = (days[2] if form.endswith("f") else days[2] + datetime.timedelta(seconds=86_000)).strftime(form)
    twin.sql(f"RESTORE TABLE {{t}} TO TIMESTAMP AS OF '{moment}'")
    lakesmith.sql(f"RESTORE TABLE {table.name} TO TIMESTAMP AS OF '{moment}'")
    assert table.fingerprint() == twin.fingerprint() == table.fingerprint(2)
    assert table.commit_info()["operationParameters"] == twin.commit_info()["operationParameters"]
