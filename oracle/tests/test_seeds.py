"""Two tables that many tutorials make, with the figures that they print; then Spark works on."""

import os

import pytest

from judgement import compacted, deltalake_reads, duckdb_reads, like_spark, settled
from table import Table


def events(spark, start, end):
    return spark.range(start, end).selectExpr(
        "id AS event_id",
        "CAST(hash(id) % 1000 AS INT) AS customer_id",
        "date_add(DATE'2026-09-01', CAST(id % 30 AS INT)) AS event_date",
        "round(rand(7) * 100, 2) AS amount",
    )


@pytest.fixture(scope="module")
def seed(spark, tmp_path_factory):
    table = Table(spark, str(tmp_path_factory.mktemp("seed") / "events"))
    for batch in range(20):
        table.append(events(spark, batch * 5000, (batch + 1) * 5000), files=2)
    return table


@pytest.fixture
def appended(seed, tmp_path):
    """20 appends of 2 files, 100,000 rows."""
    return seed.copy(tmp_path / "events")


def test_forty_files_become_six(appended, lakesmith, conf):
    twin = appended.twin()
    conf("spark.databricks.delta.optimize.maxFileSize", 256 * 1024)
    compacted(appended, lakesmith, "--target-size", "256KiB", removed=40, added=6)
    metrics = like_spark(appended, twin, "OPTIMIZE {t}")
    assert (metrics.numFilesRemoved, metrics.numFilesAdded) == (40, 6)
    assert deltalake_reads(appended) == duckdb_reads(appended, lakesmith) == 100_000


def test_spark_works_on_with_our_result(appended, lakesmith, conf, spark):
    appended.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.checkpointInterval'='3')")
    compacted(appended, lakesmith, "--target-size", "256KiB", removed=40, added=6)
    appended.sql("UPDATE {t} SET amount = -1 WHERE event_id % 1000 = 7")
    appended.sql("DELETE FROM {t} WHERE event_id % 1000 = 8")
    changes = spark.range(99_900, 100_100).selectExpr("id AS event_id", "-2.0D AS amount")
    changes.createOrReplaceTempView("changes")
    appended.sql(
        "MERGE INTO {t} t USING changes s ON t.event_id = s.event_id WHEN MATCHED THEN UPDATE SET amount = s.amount "
        "WHEN NOT MATCHED THEN INSERT (event_id, amount) VALUES (s.event_id, s.amount)"
    )
    counts = [appended.frame().where(f"amount = {value}").count() for value in (-1, -2)]
    assert (appended.frame().count(), counts) == (100_000, [100, 200])
    # Our turn again, on vectors that Spark put on our files; then Spark's on what we wrote last.
    before = appended.fingerprint()
    lakesmith.purge(appended, "--target-size", "256KiB", "--verify")
    assert appended.fingerprint() == before
    settled(appended, lambda: lakesmith.purge(appended, "--target-size", "256KiB"))
    conf("spark.databricks.delta.optimize.maxFileSize", 1 << 30)
    appended.sql("OPTIMIZE {t}")
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    appended.sql("VACUUM {t} RETAIN 0 HOURS")
    assert appended.fingerprint() == before
    appended.forget_before_checkpoint()
    assert appended.fingerprint() == before


def test_ninety_six_files_become_eight(spark, new_table, lakesmith):
    table = new_table("hourly")
    orders = spark.range(0, 2_000_000, 1, 4).selectExpr(
        "id AS order_id", "id % 50000 AS customer_id", "CAST((id % 9000) / 100 AS DECIMAL(10,2)) AS amount"
    )
    for hour in range(24):
        orders.where(f"order_id % 24 = {hour}").write.format("delta").mode("append").save(table.path)
    compacted(table, lakesmith, "--target-size", "2MiB", removed=96, added=8)
    row = table.sql("SELECT count(*) AS n, sum(amount) AS s FROM {t}")[0]
    assert (row.n, str(row.s)) == (2_000_000, "89920000.00")
    assert deltalake_reads(table) == 2_000_000


def test_sql_gives_the_row_that_spark_gives(appended, lakesmith, conf):
    twin = appended.twin()
    conf("spark.databricks.delta.optimize.maxFileSize", 256 * 1024)
    setting = "SET spark.databricks.delta.optimize.maxFileSize = 262144;"
    ours = lakesmith.sql(f"{setting} OPTIMIZE {appended.name}")[-1]
    theirs = twin.sql("OPTIMIZE {t}")[0]
    assert list(ours)[:2] == ["path", "metrics"] and ours["path"] == f"file:{appended.path}"
    assert list(ours["metrics"]) == theirs.metrics.__fields__
    assert (ours["metrics"]["numFilesRemoved"], ours["metrics"]["numFilesAdded"]) == (40, 6)
    assert ours["metrics"]["totalConsideredFiles"] == theirs.metrics.totalConsideredFiles
    assert ours["metrics"]["numTableColumns"] == theirs.metrics.numTableColumns


def test_detail_and_history_have_sparks_columns(appended, lakesmith):
    compacted(appended, lakesmith, "--target-size", "256KiB")
    ours, theirs = lakesmith.detail(appended), appended.detail()
    assert list(ours)[: len(theirs.__fields__)] == theirs.__fields__
    for name in ("format", "id", "partitionColumns", "numFiles", "sizeInBytes", "properties", "minReaderVersion",
                 "minWriterVersion", "tableFeatures", "clusteringColumns"):
        assert ours[name] == theirs[name], name
    assert ours["location"].rstrip("/") == theirs.location.rstrip("/")
    ours, theirs = lakesmith.history(appended), appended.sql("DESCRIBE HISTORY {t}")
    assert list(ours[0]) == theirs[0].__fields__ and len(ours) == len(theirs)
    for mine, spark_row in zip(ours, theirs):
        for name in ("version", "operation", "operationParameters", "operationMetrics", "readVersion", "isolationLevel",
                     "isBlindAppend", "engineInfo"):
            assert mine[name] == spark_row[name], (spark_row.version, name)


def test_a_dry_run_changes_nothing(appended, lakesmith):
    version, before = appended.version(), everything(appended.path)
    report = lakesmith.optimize(appended, "--target-size", "256KiB", "--dry-run")
    assert not report["committed"] and len(report["planned"]) == 6
    assert sum(len(group["inputs"]) for group in report["planned"]) == 40
    assert appended.version() == version and everything(appended.path) == before


def everything(path):
    return sorted(os.path.join(folder, file) for folder, _, files in os.walk(path) for file in files)
