"""Killed at any moment, the tool leaves a table with the same rows, and running again finishes the work."""

import collections
import json
import os
import random
import shutil
import subprocess
import time

import pytest

from judgement import deltalake_rows
from table import Table

KILLS = 200 if os.environ.get("LAKESMITH_TEST_ALL") else 16
# deltalake judges every kill; Spark, which needs seconds for what that does in a blink, every so many.
SPARK_EVERY = 20
SEED = 2024

VERBS = {
    "optimize": ("--target-size", "96KiB", "--commit-every", "128KiB"),
    "reorg": ("--purge", "--commit-every", "128KiB"),
    "checkpoint": (),
}
TABLES = {
    "partitioned, with vectors": "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.checkpointInterval'='7')",
    "row ids and times in the commits": "TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true', 'delta.enableInCommitTimestamps'='true')",
    "mapped columns, v2 checkpoints": "PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true', "
                                      "'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='9')",
}


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """Small files, some with deleted rows, so that every kind of step occurs."""
    made = {}
    for number, (name, properties) in enumerate(TABLES.items()):
        table = Table(spark, str(tmp_path_factory.mktemp("crash") / f"table-{number}"))
        table.sql(f"CREATE TABLE {{t}} (id BIGINT, p INT, v STRING) USING delta {properties}")
        for k in range(3):
            rows = spark.range(k * 4_000, (k + 1) * 4_000).selectExpr("id", "CAST(id % 2 AS INT) AS p", "sha2(CAST(id AS STRING), 256) AS v")
            table.append(rows, files=3)
        if "mapped" in name:
            table.sql("ALTER TABLE {t} RENAME COLUMN v TO w")
        table.sql("DELETE FROM {t} WHERE id % 11 = 3")
        made[name] = Original(table, "row ids" in name)
    return made


class Original:
    """A table, and what every killed copy of it is compared with."""

    def __init__(self, table, tracked):
        self.table, self.tracked = table, tracked
        self.version, self.rows, self.fingerprint = table.version(), deltalake_rows(table), table.fingerprint(row_ids=tracked)

    def judge(self, copy, by_spark):
        assert deltalake_rows(copy).equals(self.rows)
        if by_spark:
            assert copy.fingerprint(row_ids=self.tracked) == self.fingerprint


def every_live_file_is_there(table, lakesmith):
    from urllib.parse import unquote

    assert all(os.path.exists(f"{table}/{unquote(file['path'])}") for file in lakesmith.files(table))


def newest_checkpoint(table):
    """The version that the log's pointer names; None without a pointer."""
    try:
        with open(f"{table}/_delta_log/_last_checkpoint", encoding="utf-8") as file:
            return json.load(file)["version"]
    except FileNotFoundError:
        return None


def test_killed_at_any_moment(tables, lakesmith, tmp_path):
    chance, duration, outcomes = random.Random(SEED), {}, collections.Counter()
    for name, original in tables.items():
        for verb, options in VERBS.items():
            rehearsal = original.table.copy(tmp_path / "rehearsal")
            started = time.monotonic()
            lakesmith.run(verb, rehearsal, *options)
            duration[name, verb] = time.monotonic() - started
            shutil.rmtree(rehearsal.path)
    for number in range(KILLS):
        name, verb = chance.choice(sorted(duration))
        moment, original = chance.uniform(0, 1) * duration[name, verb], tables[name]
        copy = original.table.copy(tmp_path / f"kill-{number}")
        process = subprocess.Popen(lakesmith.command(verb, copy, *VERBS[verb]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment)
        process.kill()
        killed, advanced = process.wait() != 0, copy.version() > original.version
        outcomes["killed" if killed else "ended before", "between commits" if advanced and killed else ""] += 1
        by_spark = number % SPARK_EVERY == SPARK_EVERY - 1
        try:
            original.judge(copy, by_spark)
            every_live_file_is_there(copy, lakesmith)
            finishes(copy, lakesmith, verb)
            original.judge(copy, by_spark)
        except BaseException as error:
            error.add_note(f"kill {number}: {verb} of the table '{name}' after {moment:.3f} s; seed {SEED}; left in {copy}")
            raise
        shutil.rmtree(copy.path)
    assert sum(count for (end, _), count in outcomes.items() if end == "killed") > KILLS / 2, outcomes
    assert outcomes["killed", "between commits"] > 0, outcomes


def finishes(copy, lakesmith, verb):
    """What was left behind does not stop the next run, which completes the work."""
    if verb == "checkpoint":
        lakesmith.run(verb, copy)
        assert newest_checkpoint(copy) == copy.version()
        # Readers must now be able to do without the log before it.
        copy.forget_before_checkpoint()
        return
    options = [option for option in VERBS[verb] if option not in ("--commit-every", "128KiB")]
    lakesmith.json(verb, copy, *options)
    again = lakesmith.json(verb, copy, *options)
    assert not again["committed"] and again["groups_dropped"] == 0
