"""Spark deletes, updates and merges by vector while we hold finished files: our commit carries the deletes over."""

import os
import signal
import subprocess
import time

import pytest

from judgement import duckdb_reads, settled

STATEMENTS = {
    "delete": "DELETE FROM {t} WHERE id % 10 = 3",
    "update": "UPDATE {t} SET v = concat(v, '!') WHERE id % 7 = 1",
    "merge": "MERGE INTO {t} t USING (SELECT id * 5 AS id, 'merged' AS v FROM range(400)) s ON t.id = s.id "
    "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v",
}


def stopped_after_writing(lakesmith, table, *args):
    """A run that is stopped once it has written its first data file; it cannot have committed."""
    versions = table.version()
    before = data_files(table)
    process = subprocess.Popen(lakesmith.command("optimize", table, "--json", *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline and not data_files(table) - before:
        time.sleep(0.0005)
    process.send_signal(signal.SIGSTOP)
    return process, table.version() == versions


def data_files(table):
    return {name for name in os.listdir(str(table)) if name.endswith(".parquet")}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_deletes_by_vector_are_carried_over(spark, new_table, lakesmith, statement):
    for attempt in range(10):
        table = new_table(f"carry_{statement}_{attempt}")
        table.sql("CREATE TABLE {t} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true')")
        table.append(spark.range(0, 2_000).selectExpr("id", "CAST(id AS STRING) AS v"), files=8)
        table.sql("DELETE FROM {t} WHERE id % 10 = 4")
        process, in_time = stopped_after_writing(lakesmith, table)
        try:
            if in_time:
                table.sql(STATEMENTS[statement])
                expected = table.fingerprint(row_ids=True)
        finally:
            process.send_signal(signal.SIGCONT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        if in_time:
            break
    else:
        pytest.fail("no run could be stopped before its commit")
    assert '"groups_dropped":0' in out.replace(" ", "") and '"committed":true' in out.replace(" ", "")
    assert table.fingerprint(row_ids=True) == expected
    live = lakesmith.files(table)
    assert any(file["deletionVector"] for file in live)
    assert duckdb_reads(table, lakesmith) == sum(file["numRecords"] for file in live)
    lakesmith.purge(table)
    settled(table, lambda: lakesmith.purge(table))
    assert table.fingerprint(row_ids=True) == expected
