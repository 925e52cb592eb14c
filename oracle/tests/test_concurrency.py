"""Spark writes while we compact: no row is lost, doubled or brought back."""

import threading

from judgement import settled

ROUNDS = 4


def test_spark_appends_and_deletes_meanwhile(spark, new_table, lakesmith):
    table = new_table("busy")
    table.sql("CREATE TABLE {t} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true')")
    rows = lambda start, end: spark.range(start, end).selectExpr("id", "CAST(id AS STRING) AS v")
    table.append(rows(0, 10_000), files=20)
    failures, deleted = [], []

    def write():
        for k in range(ROUNDS):
            table.append(rows(10_000 + k * 100, 10_100 + k * 100), files=2)
            # A DELETE that meets our commit is refused by Spark itself, which keeps its rows: then it counts as not done.
            try:
                table.sql(f"DELETE FROM {{t}} WHERE id % 97 = {k}")
                deleted.append(k)
            except Exception as error:
                if "ConcurrentDelete" not in str(error) and "DELTA_CONCURRENT" not in str(error):
                    failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    reports = []
    while writer.is_alive():
        reports.append(lakesmith.optimize(table, "--target-size", "16KiB", "--force"))
    writer.join()
    assert failures == [] and any(report["committed"] for report in reports)
    # Round k deletes what was there then: the rows of later rounds stay.
    expected = set(range(10_000))
    for k in range(ROUNDS):
        expected |= set(range(10_000 + k * 100, 10_100 + k * 100))
        if k in deleted:
            expected -= {i for i in expected if i % 97 == k}
    found = [row.id for row in table.sql("SELECT id FROM {t}")]
    assert len(found) == len(expected) and set(found) == expected
    lakesmith.purge(table)
    settled(table, lambda: lakesmith.purge(table))
    assert sorted(row.id for row in table.sql("SELECT id FROM {t}")) == sorted(expected)


def test_two_of_us_at_once(spark, new_table, lakesmith):
    table = new_table("twice")
    for k in range(8):
        table.append(spark.range(k * 1000, (k + 1) * 1000).selectExpr("id", "CAST(id AS STRING) AS v"), files=4)
    before = table.fingerprint()
    errors = []

    def compact():
        try:
            lakesmith.optimize(table, "--target-size", "64KiB")
        except Exception as error:
            errors.append(error)

    runs = [threading.Thread(target=compact) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert errors == []
    assert table.fingerprint() == before
