"""Logs that we clean up: Spark reads every version that must stay, travels in time and goes on working."""

import os
import re
import time

import pytest

from lakesmith_binary import Failed

DAY = 86400


def aged(table, days):
    """Makes each commit, and what was written with it, as many days old."""
    log = table.path + "/_delta_log"
    for folder, _, names in os.walk(log):
        for name in names:
            found = re.match(r"\.?(\d{20})\.", name)
            if found and int(found[1]) < len(days):
                when = time.time() - days[int(found[1])] * DAY
                os.utime(os.path.join(folder, name), (when, when))


def commits(table):
    names = os.listdir(table.path + "/_delta_log")
    return sorted(int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name))


def made(table, spark, properties=""):
    """Versions 0 to 12, a checkpoint at 10; version n has n * 10 rows."""
    table.sql(f"CREATE TABLE {{t}} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableExpiredLogCleanup'='true'{properties})")
    for k in range(12):
        table.append(spark.range(k * 10, k * 10 + 10))
    return table


def travelled(table, versions):
    return {version: table.frame(version).count() for version in versions}


def test_kept_versions_are_read_by_spark(spark, conf, new_table, lakesmith):
    """Spark's own checkpoint is kept with its commit; nothing within the retention is lost."""
    # Else Spark would not travel back beyond what a VACUUM may have removed.
    conf("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false")
    table = made(new_table(), spark, ", 'delta.checkpointInterval'='5'")
    aged(table, [60 - 3 * version for version in range(13)])
    dry = lakesmith.json("checkpoint", table, "--clean-log", "--dry-run")
    assert dry["log"]["keep_from"] == 5 and commits(table) == list(range(13)) and not dry["written"]
    report = lakesmith.json("checkpoint", table, "--clean-log")
    # Version 9 was current 30 days ago.
    assert commits(table) == list(range(5, 13)) and report["log"]["keep_from"] == 5 and not report["log"]["failed"]
    assert {file["path"] for file in dry["log"]["files"]} == {file["path"] for file in report["log"]["files"]}
    assert not [name for name in os.listdir(table.path + "/_delta_log") if int(re.sub(r"\D", "", name)[:20] or 99) < 5]
    spark.catalog.clearCache()
    assert travelled(table, range(5, 13)) == {version: version * 10 for version in range(5, 13)}
    assert table.sql("SELECT count(*) AS n FROM {t}")[0].n == 120
    table.sql("DELETE FROM {t} WHERE id < 5")
    assert lakesmith.optimize(table)["committed"]
    assert table.frame().count() == 115
    assert not lakesmith.json("checkpoint", table, "--clean-log")["log"]["files"]


def test_our_commits_keep_sparks_checksums_going(spark, new_table, lakesmith):
    """Spark checks our version checksums strictly, and derives its own from them."""
    table = new_table()
    table.sql("CREATE TABLE {t} (id BIGINT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors'='true',"
              " 'delta.enableRowTracking'='true', 'delta.enableInCommitTimestamps'='true')")
    for k in range(3):
        table.append(spark.range(k * 100, k * 100 + 100).selectExpr("id", "CAST(id % 2 AS INT) AS p"))
    table.sql("DELETE FROM {t} WHERE id IN (3, 4, 150)")
    assert lakesmith.optimize(table, "--where", "p = 0")["committed"]
    assert lakesmith.purge(table)["committed"]
    lakesmith.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('a' = 'b')")
    log = table.path + "/_delta_log"
    assert all(os.path.exists(f"{log}/{version:020d}.crc") for version in commits(table))
    spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert table.frame().count() == 297
    assert table.agrees_with_checksum()
    table.sql("UPDATE {t} SET id = id + 1000 WHERE id < 10")
    assert os.path.exists(f"{log}/{table.version():020d}.crc") and table.frame().count() == 297


@pytest.mark.full
def test_sidecars_of_old_checkpoints_go(spark, new_table, lakesmith):
    """What old V2 checkpoints alone refer to goes with them."""
    table = made(new_table(), spark, ", 'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='4', 'delta.logRetentionDuration'='interval 0 days',"
                 " 'delta.deletedFileRetentionDuration'='interval 0 days'")
    log = table.path + "/_delta_log"
    aged(table, [40] * 13)
    for name in os.listdir(log + "/_sidecars"):
        os.utime(f"{log}/_sidecars/{name}", (time.time() - 40 * DAY,) * 2)
    before = len([name for name in os.listdir(log + "/_sidecars") if not name.startswith(".")])
    lakesmith.json("checkpoint", table, "--clean-log")
    after = len([name for name in os.listdir(log + "/_sidecars") if not name.startswith(".")])
    assert after < before and commits(table)[0] == 12
    assert table.frame().count() == 120
    assert travelled(table, [12]) == {12: 120}


def test_a_table_that_keeps_its_log_is_left_alone(spark, new_table, lakesmith):
    table = made(new_table(), spark)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableExpiredLogCleanup'='false')")
    aged(table, [90] * 14)
    with pytest.raises(Failed) as refused:
        lakesmith.json("checkpoint", table, "--clean-log")
    assert refused.value.code == 3 and "enableExpiredLogCleanup" in refused.value.error["message"]
    assert commits(table) == list(range(14))
