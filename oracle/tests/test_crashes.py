"""Killed at any moment, the tool leaves a table with the same rows, and running again finishes the work."""

import os
import subprocess
import time

import pytest

from judgement import settled

KILLS = 60 if os.environ.get("LAKESMITH_TEST_ALL") else 6


@pytest.fixture
def table(spark, new_table):
    """Two partitions of small files, some with vectors, so that every kind of step occurs."""
    table = new_table("big")
    table.sql("CREATE TABLE {t} (id BIGINT, p INT, v STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES "
              "('delta.enableDeletionVectors'='true', 'delta.checkpointInterval'='9')")
    for k in range(4):
        rows = spark.range(k * 50_000, (k + 1) * 50_000).selectExpr("id", "CAST(id % 2 AS INT) AS p", "sha2(CAST(id AS STRING), 256) AS v")
        table.append(rows, files=4)
    table.sql("DELETE FROM {t} WHERE id % 11 = 3")
    return table


def test_killed_at_any_moment(table, lakesmith, tmp_path):
    command = ("optimize", table, "--target-size", "1MiB", "--commit-every", "2MiB", "--json")
    before = table.fingerprint()
    started = time.monotonic()
    rehearsal = table.copy(tmp_path / "rehearsal")
    lakesmith.run("optimize", rehearsal, *command[2:])
    seconds = time.monotonic() - started
    survived = 0
    for number in range(KILLS):
        copy = table.copy(tmp_path / f"kill-{number}")
        process = subprocess.Popen(lakesmith.command("optimize", copy, *command[2:]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds * (number + 0.5) / KILLS)
        process.kill()
        survived += process.wait() == 0
        assert copy.fingerprint() == before
        # What was left behind must neither be read nor stop the next run.
        lakesmith.optimize(copy, "--target-size", "1MiB")
        assert copy.fingerprint() == before
        settled(copy, lambda: lakesmith.optimize(copy, "--target-size", "1MiB"))
    assert survived < KILLS, "every run ended before it was killed"
