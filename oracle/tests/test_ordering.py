"""Rows in an order: ZORDER BY and its kin, and liquid clustering, on tables that Spark made and goes on with."""

import json

import pytest

from judgement import same_rows, settled
from test_clustering import full, refused_alike
from table import Table


def events(spark, start, end):
    return spark.range(start, end).selectExpr(
        "id AS event_id",
        "CAST(hash(id) % 1000 AS INT) AS customer_id",
        "date_add(DATE'2026-09-01', CAST(id % 30 AS INT)) AS event_date",
        "round(rand(7) * 100, 2) AS amount",
    )


def ranges(table, column="customer_id"):
    """(smallest, largest) of a column in each live file, from the statistics that Spark reads."""
    live = {}
    for version in range(table.version() + 1):
        for kind, body in table.commit(version):
            if kind == "add":
                live[body["path"]] = json.loads(body["stats"])
            elif kind == "remove":
                live.pop(body["path"], None)
    return sorted((stats["minValues"][column], stats["maxValues"][column]) for stats in live.values())


def narrow(found, share):
    """Asserts that the ranges follow each other, and that none is wider than its share of the whole."""
    whole = found[-1][1] - found[0][0]
    assert all(high - low <= whole * share for low, high in found), found
    assert all(after[0] >= before[1] - whole // 100 for before, after in zip(found, found[1:])), found


def tags(table):
    return [(body.get("tags") or {}, body.get("clusteringProvider")) for kind, body in table.commit() if kind == "add"]


@pytest.fixture(scope="module")
def seed(spark, tmp_path_factory):
    table = Table(spark, str(tmp_path_factory.mktemp("ordered") / "events"))
    for batch in range(20):
        table.append(events(spark, batch * 5000, (batch + 1) * 5000), files=2)
    return table


@pytest.fixture
def appended(seed, tmp_path):
    """20 appends of 2 files, 100,000 rows."""
    return seed.copy(tmp_path / "events")


@pytest.fixture
def cubes(conf):
    """Small cubes for Spark; gives the settings that make ours as small."""

    def set_sizes(threshold, target, file_size):
        prefix = "spark.databricks.delta.optimize."
        sizes = {
            f"{prefix}clustering.mergeStrategy.minCubeSize.threshold": threshold,
            f"{prefix}clustering.mergeStrategy.minCubeSize.targetCubeSize": target,
            f"{prefix}maxFileSize": file_size,
        }
        for key, value in sizes.items():
            conf(key, value)
        return [argument for key, value in sizes.items() for argument in ("--set", f"{key}={value}")]

    return set_sizes


def test_zorder_of_six_files_gives_fourteen_with_narrow_ranges(appended, lakesmith, conf):
    conf("spark.databricks.delta.optimize.maxFileSize", 256 << 10)
    appended.sql("OPTIMIZE {t}")
    assert len(ranges(appended)) == 6
    order = ("--zorder-by", "customer_id", "--target-size", "64KiB")
    report = same_rows(appended, lambda: lakesmith.optimize(appended, "--verify", *order))
    assert (report["metrics"]["numFilesRemoved"], report["metrics"]["numFilesAdded"]) == (6, 14)
    narrow(ranges(appended), 1 / 10)
    info = appended.commit_info()
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": '["customer_id"]', "clusterBy": "[]", "auto": False}
    assert report["metrics"]["zOrderStats"]["strategyName"] == "all"
    assert all("ZCUBE_ID" not in found and "lakesmith.layout" in found and provider is None for found, provider in tags(appended))
    settled(appended, lambda: lakesmith.optimize(appended, *order))
    # A filter on one customer touches few files.
    assert len(appended.frame().where("customer_id = 42").inputFiles()) <= 2


@pytest.mark.full
@pytest.mark.parametrize("flag", ["--zorder-by", "--hilbert-by", "--sort-by"])
def test_every_order_keeps_the_rows_and_settles(appended, lakesmith, flag):
    order = (flag, "customer_id,event_date", "--target-size", "64KiB")
    report = same_rows(appended, lambda: lakesmith.optimize(appended, "--verify", *order))
    assert report["metrics"]["numFilesRemoved"] == 40 and report["metrics"]["numFilesAdded"] > 10
    settled(appended, lambda: lakesmith.optimize(appended, *order))
    appended.sql("OPTIMIZE {t} ZORDER BY (customer_id)")
    appended.sql("DELETE FROM {t} WHERE customer_id = 7")


@pytest.mark.full
def test_zorder_of_one_partition(spark, new_table, lakesmith):
    table = new_table()
    for batch in range(3):
        frame = events(spark, batch * 3000, (batch + 1) * 3000).selectExpr("*", "event_id % 2 AS part")
        frame.write.format("delta").mode("append").partitionBy("part").save(table.path)
    report = same_rows(table, lambda: lakesmith.optimize(table, "--where", "part = 1", "--zorder-by", "customer_id"))
    assert report["metrics"]["partitionsOptimized"] == 1
    twin = table.twin()
    twin.sql("OPTIMIZE {t} WHERE part = 1 ZORDER BY (customer_id)")
    assert table.commit_info()["operationParameters"] == twin.commit_info()["operationParameters"]


@pytest.mark.parametrize("clauses", [
    "ZORDER BY (nope)", "FULL",
    *full("ZORDER BY (part)", "ZORDER BY (note)", "ZORDER BY (customer_id, part)", "ZORDER BY (s.nope)"),
])
def test_what_cannot_be_ordered(spark, new_table, lakesmith, clauses):
    table = new_table("ours")
    frame = events(spark, 0, 100).selectExpr("*", "event_id % 2 AS part", "'x' AS note", "named_struct('x', 1) AS s")
    frame.write.format("delta").partitionBy("part").save(table.path)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'customer_id, event_id')")
    refused_alike(table, table.twin(), lakesmith, f"OPTIMIZE {{t}} {clauses}")


@pytest.mark.full
def test_the_statistics_check_can_be_switched_off(appended, lakesmith):
    appended.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'event_id')")
    statement = f"OPTIMIZE {appended.name} ZORDER BY (customer_id)"
    setting = "SET spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled = false;"
    row = same_rows(appended, lambda: lakesmith.sql(f"{setting} {statement}")[-1])
    assert row["metrics"]["numFilesRemoved"] == 40


def test_liquid_clustering_of_eight_files_gives_seventeen(spark, new_table, lakesmith, cubes):
    table = new_table("liquid")
    lakesmith.sql(
        f"CREATE TABLE {table.name} (event_id BIGINT, customer_id INT, event_date DATE, amount DOUBLE) USING DELTA "
        "CLUSTER BY (customer_id)"
    )
    table.append(events(spark, 0, 100_000), files=8)
    bytes_before = table.detail().sizeInBytes
    report = same_rows(table, lambda: lakesmith.optimize(table, "--target-size", "64KiB", "--verify"))
    assert (report["metrics"]["numFilesRemoved"], report["metrics"]["numFilesAdded"]) == (8, bytes_before // 65_536)
    assert bytes_before // 65_536 == 17
    narrow(ranges(table), 1 / 10)
    cube = {(found["ZCUBE_ID"], found["ZCUBE_ZORDER_BY"], provider) for found, provider in tags(table)}
    assert len(cube) == 1 and next(iter(cube))[1:] == ('["customer_id"]', "liquid")
    parameters = {"predicate": "[]", "zOrderBy": "[]", "clusterBy": '["customer_id"]', "auto": False, "isFull": False}
    assert table.commit_info()["operationParameters"] == parameters
    settled(table, lambda: lakesmith.optimize(table, "--target-size", "64KiB"))
    # Spark takes our cube for its own.
    cubes(100 << 30, 150 << 30, 65_536)
    version = table.version()
    metrics = table.sql("OPTIMIZE {t}")[0].metrics
    assert metrics.numFilesRemoved == 0 and table.version() == version
    assert table.detail().tableFeatures == ["appendOnly", "clustering", "domainMetadata", "invariants"]


@pytest.mark.full
def test_ninety_six_files_become_seven_and_one_customer_is_in_one(spark, new_table, lakesmith):
    table = new_table("hourly_c")
    table.sql("CREATE TABLE {t} (order_id BIGINT, customer_id BIGINT, amount DECIMAL(10,2)) USING DELTA CLUSTER BY (customer_id)")
    orders = spark.range(0, 2_000_000, 1, 4).selectExpr(
        "id AS order_id", "id % 50000 AS customer_id", "CAST((id % 9000) / 100 AS DECIMAL(10,2)) AS amount"
    )
    for hour in range(24):
        orders.where(f"order_id % 24 = {hour}").write.format("delta").mode("append").save(table.path)
    report = same_rows(table, lambda: lakesmith.optimize(table, "--target-size", "2MiB"))
    assert (report["metrics"]["numFilesRemoved"], report["metrics"]["numFilesAdded"]) == (96, 7)
    assert len(table.frame().where("customer_id = 42").inputFiles()) == 1
    settled(table, lambda: lakesmith.optimize(table, "--target-size", "2MiB"))


@pytest.mark.full
def test_turns_on_one_clustered_table(spark, new_table, lakesmith, cubes):
    table = new_table("turns")
    ours = cubes(60_000, 120_000, 30_000)
    table.sql(
        "CREATE TABLE {t} (event_id BIGINT, customer_id INT, event_date DATE, amount DOUBLE) USING DELTA "
        "CLUSTER BY (customer_id, event_date) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    for turn in range(5):
        table.append(events(spark, turn * 3000, (turn + 1) * 3000), files=2)
        table.sql(f"DELETE FROM {{t}} WHERE event_id % 500 = {turn}")
        if turn % 2 == 0:
            same_rows(table, lambda: lakesmith.optimize(table, *ours))
            version = table.version()
            # Nothing of ours is left for Spark to do, and of its own nothing for us.
            assert table.sql("OPTIMIZE {t}")[0].metrics.numFilesRemoved == 0 and table.version() == version
        else:
            same_rows(table, lambda: table.sql("OPTIMIZE {t}"))
            settled(table, lambda: lakesmith.optimize(table, *ours))
    assert table.frame().count() == sum(1 for event in range(15_000) if event % 500 > event // 3000)
    assert all(provider == "liquid" for _, provider in tags(table))


def test_changed_keys_and_full(spark, new_table, lakesmith):
    table = new_table("keys")
    table.sql("CREATE TABLE {t} (event_id BIGINT, customer_id INT, event_date DATE, amount DOUBLE) USING DELTA CLUSTER BY (customer_id)")
    table.append(events(spark, 0, 20_000), files=4)
    size = ("--target-size", "64KiB")
    lakesmith.optimize(table, *size)
    lakesmith.sql(f"ALTER TABLE {table.name} CLUSTER BY (event_date, customer_id)")
    twin = table.twin()
    report = lakesmith.optimize(table, *size)
    theirs = twin.sql("OPTIMIZE {t}")[0].metrics
    # Files on other keys are left alone.
    assert not report["committed"] and theirs.numFilesRemoved == 0
    assert report["metrics"]["totalConsideredFiles"] == theirs.totalConsideredFiles
    assert report["metrics"]["clusteringStats"]["inputOtherFiles"]["numFiles"] == theirs.clusteringStats.inputOtherFiles.numFiles
    full = same_rows(table, lambda: lakesmith.optimize(table, "--full", *size))
    assert full["committed"] and table.commit_info()["operationParameters"]["isFull"] is True
    assert {found["ZCUBE_ZORDER_BY"] for found, _ in tags(table)} == {'["event_date","customer_id"]'}
    settled(table, lambda: lakesmith.optimize(table, "--full", *size))
    version = table.version()
    assert table.sql("OPTIMIZE {t} FULL")[0].metrics.numFilesRemoved == 0 and table.version() == version


@pytest.mark.full
def test_compaction_and_purge_leave_cubes_whole(spark, new_table, lakesmith, cubes):
    table = new_table("cubes")
    ours = cubes(1, 1 << 30, 30_000)
    table.sql(
        "CREATE TABLE {t} (event_id BIGINT, customer_id INT, event_date DATE, amount DOUBLE) USING DELTA "
        "CLUSTER BY (customer_id) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    table.append(events(spark, 0, 10_000), files=3)
    lakesmith.optimize(table, *ours)
    cube = tags(table)[0]
    table.sql("DELETE FROM {t} WHERE event_id % 100 = 7")
    same_rows(table, lambda: lakesmith.purge(table, "--target-size", "30000"))
    for found, provider in tags(table):
        assert (found["ZCUBE_ID"], found["ZCUBE_ZORDER_BY"], provider) == (cube[0]["ZCUBE_ID"], cube[0]["ZCUBE_ZORDER_BY"], cube[1])
    table.append(events(spark, 10_000, 12_000), files=2)
    lakesmith.sql(f"ALTER TABLE {table.name} CLUSTER BY NONE")
    same_rows(table, lambda: lakesmith.optimize(table, "--target-size", "1GiB"))


@pytest.mark.full
def test_a_plan_file_carries_the_order(appended, lakesmith, tmp_path):
    plan = str(tmp_path / "plan.jsonl")
    report = lakesmith.optimize(appended, "--zorder-by", "customer_id", "--target-size", "64KiB", "--plan-out", plan)
    assert not report["committed"] and report["planned"]
    applied = same_rows(appended, lambda: lakesmith.json("apply", plan))
    assert applied["report"]["metrics"]["numFilesRemoved"] == 40
    narrow(ranges(appended), 1 / 10)
