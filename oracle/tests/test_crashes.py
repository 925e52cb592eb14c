"""Killed at any moment, the tool leaves a table with the same rows, and running again finishes the work."""

import collections
import json
import os
import random
import re
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

DAY = 86_400
LONG_AGO = 60 * DAY
ORPHANS = 300

VERBS = {
    "optimize": ("--target-size", "96KiB", "--commit-every", "128KiB"),
    "reorg": ("--purge", "--commit-every", "128KiB"),
    "checkpoint": (),
}
# What deletes, on tables with something to delete.
DELETING = {
    "vacuum": ("vacuum",),
    "vacuum --lite": ("vacuum", "--lite"),
    "vacuum --condemn": ("vacuum", "--condemn", "0"),
    "checkpoint --clean-log": ("checkpoint", "--clean-log"),
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


@pytest.fixture(scope="module")
def worn(tables, lakesmith, tmp_path_factory):
    """The same tables after work of two months ago and of today, with files of writes that failed."""
    return {name: Worn(original, lakesmith, tmp_path_factory.mktemp("worn") / "table") for name, original in tables.items()}


class Worn:
    """A table from which files went long ago and today, and what of it must stay readable."""

    def __init__(self, original, lakesmith, path):
        self.table = table = original.table.copy(path)
        # A checkpoint of a commit would clean up the log, and a vacuum by the log alone needs all of it.
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval'='1000')")
        lakesmith.optimize(table, "--target-size", "96KiB")
        self.first_kept = table.version()
        self.shift_times()
        lakesmith.run("checkpoint", table)
        self.age_files()
        table.sql("DELETE FROM {t} WHERE id % 13 = 5")
        lakesmith.purge(table)
        for number in range(ORPHANS):
            self.orphan(f"orphan-{number}.parquet", LONG_AGO)
        lakesmith.json("vacuum", table, "--condemn", "0")
        for number in range(ORPHANS, 2 * ORPHANS):
            self.orphan(f"orphan-{number}.parquet", LONG_AGO)
        self.orphan("young.parquet", 0)
        self.version = table.version()
        self.rows = {version: deltalake_rows(table, version) for version in range(self.first_kept, self.version + 1)}
        self.fingerprint = table.fingerprint()

    def orphan(self, name, age):
        shutil.copyfile(next(self.data_files()), f"{self.table}/{name}")
        then = time.time() - age
        os.utime(f"{self.table}/{name}", (then, then))

    def data_files(self):
        return (os.path.join(folder, name) for folder, _, names in os.walk(self.table.path) if "_delta_log" not in folder for name in names if name.endswith(".parquet"))

    def shift_times(self):
        """What the log says of times becomes two months older."""
        log = f"{self.table}/_delta_log"
        for name in os.listdir(log):
            if name.endswith(".crc"):
                os.remove(f"{log}/{name}")
            elif name.endswith(".json"):
                with open(f"{log}/{name}", encoding="utf-8") as file:
                    text = file.read()
                older = re.sub(r'"(deletionTimestamp|inCommitTimestamp)":(\d+)', lambda found: f'"{found[1]}":{int(found[2]) - LONG_AGO * 1000}', text)
                with open(f"{log}/{name}", "w", encoding="utf-8") as file:
                    file.write(older)

    def age_files(self):
        for folder, _, names in os.walk(self.table.path):
            for name in names:
                # Later versions are newer by a second.
                then = time.time() - LONG_AGO + int((re.match(r"\d{20}", name) or ["0"])[0])
                os.utime(os.path.join(folder, name), (then, then))

    def judge(self, copy, by_spark):
        for version, rows in self.rows.items():
            assert deltalake_rows(copy, version).equals(rows), version
        assert deltalake_rows(copy).equals(self.rows[self.version])
        assert os.path.exists(f"{copy}/young.parquet")
        if by_spark:
            assert copy.fingerprint() == self.fingerprint


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


def test_killed_at_any_moment(tables, worn, lakesmith, tmp_path):
    cases = {(name, verb): (original, (verb, *options)) for name, original in tables.items() for verb, options in VERBS.items()}
    cases |= {(name, verb): (original, command) for name, original in worn.items() for verb, command in DELETING.items()}
    chance, duration, outcomes = random.Random(SEED), {}, collections.Counter()
    for case, (original, (verb, *options)) in cases.items():
        rehearsal = original.table.copy(tmp_path / "rehearsal")
        started = time.monotonic()
        lakesmith.run(verb, rehearsal, *options)
        duration[case] = time.monotonic() - started
        shutil.rmtree(rehearsal.path)
    for number in range(KILLS):
        case = chance.choice(sorted(duration))
        original, (verb, *options) = cases[case]
        moment = chance.uniform(0, 1) * duration[case]
        copy = original.table.copy(tmp_path / f"kill-{number}")
        files = len(everything(copy))
        process = subprocess.Popen(lakesmith.command(verb, copy, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment)
        process.kill()
        killed, advanced = process.wait() != 0, copy.version() > original.version
        kind = "deleting" if len(everything(copy)) < files else "between commits" if advanced else ""
        outcomes["killed" if killed else "ended before", kind if killed else ""] += 1
        outcomes[(case[1],)] += 1
        by_spark = number % SPARK_EVERY == SPARK_EVERY - 1
        try:
            original.judge(copy, by_spark)
            every_live_file_is_there(copy, lakesmith)
            finishes(copy, lakesmith, case[1])
            original.judge(copy, by_spark)
        except BaseException as error:
            error.add_note(f"kill {number}: {case[1]} of the table '{case[0]}' after {moment:.3f} s; seed {SEED}; left in {copy}")
            raise
        shutil.rmtree(copy.path)
    print(dict(outcomes))
    assert sum(count for (end, *_), count in outcomes.items() if end == "killed") > KILLS / 2, outcomes
    # A sample of a dozen may miss a phase that takes a moment; the whole loop must hit both.
    if KILLS >= 100:
        assert outcomes["killed", "between commits"] > 0 and outcomes["killed", "deleting"] > 0, outcomes


def everything(table):
    return [os.path.join(folder, name) for folder, _, names in os.walk(table.path) for name in names]


def finishes(copy, lakesmith, verb):
    """What was left behind does not stop the next run, which completes the work."""
    if verb in DELETING:
        finishes_deleting(copy, lakesmith, *DELETING[verb])
        return
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


def finishes_deleting(copy, lakesmith, verb, *options):
    # What is condemned goes with the next run, what that one condemns with the one after it.
    for _ in range(3 if "--condemn" in options else 1):
        report = lakesmith.json(verb, copy, *options)
    log = report["log"] if verb == "checkpoint" else report
    assert not log["failed"]
    plan = lakesmith.json(verb, copy, *options, "--dry-run")
    left = (plan["log"] if verb == "checkpoint" else plan)["files"]
    # Folders that became empty go with the next run.
    assert not [file for file in left if file.get("reason") != "empty_folder"]
    if verb == "vacuum" and "--lite" not in options:
        assert not [path for path in everything(copy) if "orphan-" in path]
