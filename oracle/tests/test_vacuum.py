"""VACUUM beside Spark's own: the same candidates, the same files left, the same history, and every row still there."""

import os
import shutil
import time

import pytest

from conftest import FIXTURES
from lakesmith_binary import Failed
from table import Table

DAY = 86_400
AT_ONCE = ["--retain", "0h", "--no-retention-check"]
ALONE = [*AT_ONCE, "--no-writers"]
REFUSED = {"unknown_reader_feature", "unknown_writer_feature"}
# Spark's own VACUUM can't do these.
OURS_ALONE = {"dv_inline"}
NAMES = sorted(
    name for name in os.listdir(FIXTURES)
    if os.path.isdir(os.path.join(FIXTURES, name)) and name not in REFUSED | OURS_ALONE
)
# One of each kind that a sweep can get wrong; the rest runs with the whole set.
CORE = {"orphans", "dv_random_prefix", "cdf", "partitioned_special"}


@pytest.fixture
def unchecked(conf):
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")


def age(table, days=60):
    """Makes every file but the log's look so old."""
    then = time.time() - days * DAY
    for folder, folders, files in os.walk(table.path):
        folders[:] = [name for name in folders if name != "_delta_log"]
        for name in files:
            os.utime(os.path.join(folder, name), (then, then))


def tree(table):
    """Files and folders, the log left out."""
    found = set()
    for folder, folders, files in os.walk(table.path):
        folders[:] = [name for name in folders if name != "_delta_log"]
        found |= {os.path.relpath(os.path.join(folder, name), table.path) for name in [*folders, *files]}
    return found


def spark_dry_run(table, clauses="RETAIN 0 HOURS"):
    paths = [row.path for row in table.sql(f"VACUUM {{t}} {clauses} DRY RUN")]
    prefix = f"file:{table.path}/"
    assert all(path.startswith(prefix) for path in paths), paths
    return sorted(path.removeprefix(prefix) for path in paths)


def paths(report):
    return sorted(file["path"] for file in report["files"])


@pytest.mark.parametrize(
    "name", [name if name in CORE else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
)
def test_the_same_files_go_as_with_spark(golden, lakesmith, unchecked, name):
    table = golden(name)
    age(table)
    twin, before = table.twin(), table.fingerprint()
    planned = lakesmith.json("vacuum", table, *ALONE, "--dry-run")
    assert paths(planned) == spark_dry_run(twin)
    done = lakesmith.json("vacuum", table, *ALONE)
    twin.sql("VACUUM {t} RETAIN 0 HOURS")
    assert paths(done) == paths(planned) and done["bytes"] == planned["bytes"]
    assert tree(table) == tree(twin)
    assert table.fingerprint() == before == twin.fingerprint()
    ours, theirs = table.sql("DESCRIBE HISTORY {t} LIMIT 2"), twin.sql("DESCRIBE HISTORY {t} LIMIT 2")
    assert [row.operation for row in ours] == ["VACUUM END", "VACUUM START"]
    for mine, spark_row in zip(ours, theirs):
        for field in ("version", "operation", "operationParameters", "operationMetrics", "readVersion",
                      "isolationLevel", "isBlindAppend", "userMetadata"):
            assert mine[field] == spark_row[field], field
        assert table.commit_info(mine.version).get("tags") == twin.commit_info(mine.version).get("tags")
    # What became empty goes with the next one, in both.
    assert paths(lakesmith.json("vacuum", table, *ALONE, "--dry-run")) == spark_dry_run(twin)


@pytest.mark.full
def test_inline_vectors_on_which_sparks_own_vacuum_fails(golden, lakesmith, unchecked):
    table = golden("dv_inline")
    before, in_use = table.fingerprint(), tree(table)
    for name in in_use:
        shutil.copyfile(os.path.join(table.path, name), os.path.join(table.path, f"orphan-{name}"))
    age(table)
    # An inline vector has no path, and Spark has a case for those alone that have one.
    with pytest.raises(Exception, match="MatchError"):
        table.twin().sql("VACUUM {t} RETAIN 0 HOURS")
    done = lakesmith.json("vacuum", table, *ALONE)
    assert paths(done) == sorted(f"orphan-{name}" for name in in_use)
    assert tree(table) == in_use
    assert table.fingerprint() == before


@pytest.fixture
def appended(spark, new_table):
    """20 appends of 2 files."""
    table = new_table("events")
    for batch in range(20):
        rows = spark.range(batch * 500, (batch + 1) * 500).selectExpr("id AS event_id", "CAST(hash(id) % 1000 AS INT) AS k")
        table.append(rows, files=2)
    return table


def judged(table, lakesmith, removed):
    """The lesson of many tutorials: nothing to delete yet, a guard, and then exactly what was removed."""
    before = table.fingerprint()
    assert lakesmith.json("vacuum", table, "--dry-run")["files"] == []
    with pytest.raises(Failed) as failed:
        lakesmith.json("vacuum", table, "--retain", "0h")
    assert (failed.value.code, failed.value.error_class) == (3, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT")
    assert "at least 168 hours" in failed.value.error["message"]
    name = table.name
    with pytest.raises(Failed) as failed:
        lakesmith.sql(f"VACUUM {name} RETAIN 0 HOURS")
    assert failed.value.error_class == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    off = "SET spark.databricks.delta.retentionDurationCheck.enabled = false"
    out = lakesmith.run("sql", f"{off}; VACUUM {name} RETAIN 0 HOURS")
    assert f"Deleted {removed} files and directories in a total of 1 directories." in out
    assert table.fingerprint() == before
    assert lakesmith.json("vacuum", table, *AT_ONCE, "--dry-run")["files"] == []


def test_forty_six_files_go_after_compaction_and_clustering(appended, lakesmith, conf):
    # Seven files a bin.
    size = 7 * max(file["size"] for file in lakesmith.files(appended)) + 1
    lakesmith.optimize(appended, "--target-size", size)
    assert len(lakesmith.files(appended)) == 6
    conf("spark.databricks.delta.optimize.maxFileSize", 1 << 30)
    appended.sql("OPTIMIZE {t} ZORDER BY (k)")
    judged(appended, lakesmith, 46)
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        appended.frame(version=1).selectExpr("sum(k)").collect()


@pytest.mark.full
def test_ninety_six_files_go_after_one_compaction(spark, new_table, lakesmith):
    table = new_table("hourly")
    for hour in range(24):
        table.append(spark.range(hour * 400, (hour + 1) * 400), files=4)
    lakesmith.optimize(table)
    judged(table, lakesmith, 96)


@pytest.mark.full
def test_forty_one_files_go_after_two_rewrites(appended, lakesmith):
    lakesmith.optimize(appended)
    appended.sql("OPTIMIZE {t} ZORDER BY (event_id)")
    judged(appended, lakesmith, 41)


def test_a_shallow_clone_keeps_what_it_shares(appended, new_table, lakesmith, unchecked):
    clone = new_table("clone")
    appended.sql(f"CREATE TABLE {clone.name} SHALLOW CLONE {{t}}")
    clone.sql("INSERT INTO {t} VALUES (-1, -1)")
    clone.sql("DELETE FROM {t} WHERE event_id = 7")
    age(appended)
    age(clone)
    before = clone.fingerprint()
    lakesmith.json("vacuum", clone, *ALONE)
    lakesmith.json("vacuum", appended, *ALONE)
    assert clone.fingerprint() == before
    clone.sql("OPTIMIZE {t}")
    lakesmith.json("vacuum", clone, *ALONE)
    assert clone.fingerprint() == before and len(lakesmith.files(appended)) == 40


def test_lite_takes_what_sparks_takes_and_they_take_turns(appended, lakesmith, unchecked):
    lakesmith.optimize(appended)
    twin, before = appended.twin(), appended.fingerprint()
    lite = [*AT_ONCE, "--lite"]
    assert paths(lakesmith.json("vacuum", appended, *lite, "--dry-run")) == spark_dry_run(twin, "LITE RETAIN 0 HOURS")
    lakesmith.json("vacuum", appended, *lite)
    twin.sql("VACUUM {t} LITE RETAIN 0 HOURS")
    assert tree(appended) == tree(twin)
    # Spark starts where we ended, and we where Spark did.
    for first, second in [(lakesmith_lite, spark_lite), (spark_lite, lakesmith_lite)]:
        appended.sql("DELETE FROM {t} WHERE event_id % 1000 = 3")
        appended.sql("OPTIMIZE {t}")
        appended.sql("INSERT INTO {t} VALUES (-2, -2)")
        first(appended, lakesmith)
        second(appended, lakesmith)
    assert appended.frame().count() == before[0] - 10 + 2


def lakesmith_lite(table, lakesmith):
    lakesmith.json("vacuum", table, *AT_ONCE, "--lite")


def spark_lite(table, _):
    table.sql("VACUUM {t} LITE RETAIN 0 HOURS")


def test_spark_works_on_after_a_vacuum(appended, lakesmith):
    appended.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.checkpointInterval'='2')")
    appended.sql("DELETE FROM {t} WHERE event_id % 100 = 1")
    appended.sql("UPDATE {t} SET k = 5000 WHERE event_id % 100 = 2")
    lakesmith.optimize(appended, "--target-size", "64KiB")
    before = appended.fingerprint()
    age(appended)
    lakesmith.json("vacuum", appended, *ALONE)
    assert appended.fingerprint() == before
    appended.sql("DELETE FROM {t} WHERE event_id % 100 = 3")
    appended.sql("OPTIMIZE {t}")
    appended.forget_before_checkpoint()
    assert appended.frame().count() == before[0] - 100
    assert Table(appended.spark, appended.path).frame().where("k = 5000").count() == 100
