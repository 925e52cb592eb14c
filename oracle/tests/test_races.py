"""Two optimisers at once on one table in a bucket: each file is replaced once, no row changes, no orphan stays."""

import collections
import json
import random
import subprocess
import time
from urllib.parse import unquote

import pytest

from judgement import deltalake_rows
from table import Table

ROUNDS = 30
# Small enough that each partition is several groups.
TARGET = ("--target-size", "48KiB")


@pytest.fixture(scope="module")
def template(spark, tmp_path_factory):
    """Two partitions of small files, some with vectors."""
    table = Table(spark, str(tmp_path_factory.mktemp("race") / "t"))
    table.sql("CREATE TABLE {t} (id BIGINT, p INT, v STRING) USING delta PARTITIONED BY (p) "
              "TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.checkpointInterval'='7')")
    for k in range(3):
        table.append(spark.range(k * 800, (k + 1) * 800).selectExpr("id", "CAST(id % 2 AS INT) AS p", "sha2(CAST(id AS STRING), 256) AS v"), files=3)
    table.sql("DELETE FROM {t} WHERE id % 13 = 5")
    return table


def race(lakesmith, url, delay, first, second):
    """Starts one run and the other `delay` seconds later; gives their reports. Both must end well."""
    runs = []
    for wait, options in ((0, first), (delay, second)):
        time.sleep(wait)
        runs.append(subprocess.Popen(lakesmith.command("optimize", url, *options, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    reports = []
    for run in runs:
        output, errors = run.communicate(timeout=300)
        assert run.returncode == 0, errors
        reports.append(json.loads(output))
    return reports


class Race:
    """A fresh copy of a table in the bucket, to be judged after two have worked on it."""

    def __init__(self, bucket, template):
        self.bucket, self.base = bucket, template.version()
        self.prefix = bucket.upload(template.path)
        self.url = bucket.url(self.prefix)
        self.before = self.data_files()

    def data_files(self):
        return {name for name in self.bucket.names(self.prefix) if name.endswith(".parquet") and not name.startswith("_delta_log/")}

    def commits(self):
        """Actions of each commit since the base, in order."""
        names = sorted(name for name in self.bucket.names(self.prefix) if name.startswith("_delta_log/0") and name.endswith(".json"))
        new = [name for name in names if int(name[11:31]) > self.base]
        assert [int(name[11:31]) for name in new] == list(range(self.base + 1, self.base + 1 + len(new)))
        lines = [self.bucket.read(self.prefix, name).decode().splitlines() for name in new]
        return [[next(iter(json.loads(line).items())) for line in each] for each in lines]

    def judge(self, rows, reports):
        """What holds after any race. Gives the number of commits."""
        commits = self.commits()
        bodies = [each for actions in commits for each in actions]
        replaced = collections.Counter(body["path"] for kind, body in bodies if kind == "remove")
        assert max(replaced.values()) == 1, replaced
        assert len(commits) == sum(report["metrics"]["numBatches"] for report in reports if report["committed"])
        assert deltalake_rows(self.url, **self.bucket.variables).equals(rows)
        # Whoever lost has taken away what it wrote.
        assert self.data_files() == self.before | {unquote(body["path"]) for kind, body in bodies if kind == "add"}
        return len(commits)


@pytest.mark.full
def test_one_of_two_wins_and_the_other_leaves_nothing_behind(template, bucket, lakesmith, tmp_path):
    chance, rows, met = random.Random(11), deltalake_rows(template), 0
    for _ in range(ROUNDS):
        table = Race(bucket, template)
        reports = race(lakesmith, table.url, chance.choice([0, chance.uniform(0, 0.4), chance.uniform(0, 1.5)]), TARGET, TARGET)
        assert table.judge(rows, reports) == 1 and sum(report["committed"] for report in reports) == 1
        winner, loser = sorted(reports, key=lambda report: not report["committed"])
        assert winner["groups_dropped"] == 0 and loser["groups_done"] == 0
        met += loser["groups_dropped"] > 0
        assert not lakesmith.optimize(table.url, *TARGET)["committed"]
    assert met > 0, "the two never met"
    bucket.download(table.prefix, tmp_path / "back")
    # Spark judges the last one, for it starts slowly.
    assert Table(template.spark, str(tmp_path / "back")).fingerprint() == template.fingerprint()


@pytest.mark.full
def test_two_that_commit_in_steps_share_the_work(template, bucket, lakesmith):
    chance, rows, shared = random.Random(12), deltalake_rows(template), 0
    steps = (*TARGET, "--commit-every", "1KiB")
    for _ in range(ROUNDS // 3):
        table = Race(bucket, template)
        reports = race(lakesmith, table.url, chance.uniform(0, 1), steps, steps)
        assert table.judge(rows, reports) > 1
        shared += all(report["committed"] for report in reports)
        # Their bins may have been cut differently: what is left over is the next run's.
        lakesmith.optimize(table.url, *TARGET)
        assert not lakesmith.optimize(table.url, *TARGET)["committed"]
        assert deltalake_rows(table.url, **bucket.variables).equals(rows)
    assert shared > 0, "one did everything each time"


@pytest.mark.full
def test_two_on_different_partitions_both_commit(template, bucket, lakesmith):
    chance, rows, rebased = random.Random(13), deltalake_rows(template), 0
    for _ in range(ROUNDS // 3):
        table = Race(bucket, template)
        reports = race(lakesmith, table.url, chance.uniform(0, 0.3), (*TARGET, "--where", "p = 0"), (*TARGET, "--where", "p = 1"))
        assert table.judge(rows, reports) == 2 and all(report["committed"] and report["groups_dropped"] == 0 for report in reports)
        rebased += any(report["version_after"] > report["version_before"] + 1 for report in reports)
        assert not lakesmith.optimize(table.url, *TARGET)["committed"]
    assert rebased > 0, "the two never met"
