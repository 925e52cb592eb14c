"""Spark and we write to one table in turn, at random; both read what the statements say, to the last row.

`LAKESMITH_TEST_TURNS` sets how many statements a table gets, `LAKESMITH_TEST_SEED` which; a failure names its seed and the
shortest sequence that still fails.
"""

import itertools
import os
import random
import time

import pytest

from answers import our_rows, sorted_rows, spark_rows
from turns import BASE, Author, Model, by_version, draw, in_versions, model_rows, written

ALL = bool(os.environ.get("LAKESMITH_TEST_ALL"))
TURNS = int(os.environ.get("LAKESMITH_TEST_TURNS") or (300 if ALL else 20))
SEED = int(os.environ.get("LAKESMITH_TEST_SEED") or 1)
EVERY = 5
SHRINKING_SECONDS = 300

VECTORS = {"delta.enableDeletionVectors": "true"}
RULES = {"g": "BIGINT GENERATED ALWAYS AS (id * 2)", "c": "STRING DEFAULT 'none'"}
# Layout, properties, further columns.
TABLES = {
    "plain": ("", {}, {}),
    "partitioned": ("PARTITIONED BY (p, day)", {}, {}),
    "vectors": ("", VECTORS, {}),
    "mapped_by_name": ("PARTITIONED BY (p)", {**VECTORS, "delta.columnMapping.mode": "name"}, {}),
    "mapped_by_id": ("", {"delta.columnMapping.mode": "id"}, {}),
    "tracked": ("", {**VECTORS, "delta.enableRowTracking": "true"}, {}),
    "clustered": ("CLUSTER BY (k)", {}, {}),
    "change_feed": ("", {**VECTORS, "delta.enableChangeDataFeed": "true"}, {}),
    "rules": ("", {"delta.feature.allowColumnDefaults": "supported"}, RULES),
    "own_clock": ("PARTITIONED BY (day)", {"delta.enableInCommitTimestamps": "true"}, {}),
    "sidecars": ("PARTITIONED BY (p)", {**VECTORS, "delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"}, {}),
    "widened": ("", {**VECTORS, "delta.enableTypeWidening": "true"}, {}),
}
CORE = ("partitioned", "tracked", "rules")


class Played:
    """One table, its model and what was run on it."""

    def __init__(self, table, name, lakesmith):
        layout, properties, further = TABLES[name]
        self.table, self.name, self.lakesmith, self.log, self.ids = table, name, lakesmith, [], {}
        columns = {**BASE, **further}
        pairs = {"delta.checkpointInterval": "7", **properties}
        table.sql(f"CREATE TABLE {{t}} ({', '.join(f'{n} {kind}' for n, kind in columns.items())}) USING delta {layout} "
                  f"TBLPROPERTIES ({', '.join(repr(key) + ' = ' + repr(value) for key, value in pairs.items())})")
        if further:
            table.sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (k IS NULL OR k >= 0)")
        partition = layout[len("PARTITIONED BY (") : -1].split(", ") if layout.startswith("PARTITIONED") else []
        generated = {"g": " GENERATED ALWAYS AS (id * 2)", "c": " DEFAULT 'none'"} if further else {}
        self.model = Model({n: kind.split()[0] for n, kind in columns.items()}, "p" in partition, generated)
        self.author = Author(self.model, partition == ["p", "day"], name == "clustered", name == "widened")
        self.model.keep(table.version())

    def play(self, turn):
        writer = turn[0]
        statement = written(self.author, turn)
        setting = f"SET {statement.before[0]} = {statement.before[1]}; " if statement.before else ""
        self.log.append(f"{writer}: {setting}{statement.text}")
        if statement.text == "CHECKPOINT":
            self.table.checkpoint() if writer == "spark" else self.lakesmith.json("checkpoint", self.table)
        elif writer == "spark":
            conf = self.table.spark.conf
            if statement.before:
                conf.set(*statement.before)
            try:
                self.table.sql(statement.text)
            finally:
                if statement.before:
                    conf.unset(statement.before[0])
        else:
            check = "SET spark.databricks.delta.retentionDurationCheck.enabled = false; "
            self.lakesmith.run("sql", check + setting + statement.text.replace("{t}", self.table.name))
        for change in [statement.act] if statement.act else []:
            change()
        self.model.run(*statement.model)
        self.model.keep(self.table.version())

    def judge(self):
        theirs, schema = spark_rows(self.table)
        assert schema.names == list(self.model.columns)
        expected = model_rows(self.model.rows(), schema)
        same(theirs, expected, "Spark reads other rows than there should be")
        same(our_rows(self.table, self.lakesmith, schema), expected, "we read other rows than there should be")
        if self.name == "tracked":
            self.judge_ids()

    def judge_ids(self):
        """An id stands for one row, and for the same one for ever."""
        found = self.table.sql("SELECT _metadata.row_id, id FROM {t}")
        ids = {row.row_id: row.id for row in found}
        assert len(ids) == len(found), "two rows have one row id"
        assert all(self.ids.get(row, number) == number for row, number in ids.items()), "a row id has moved to another row"
        self.ids.update(ids)

    def judge_versions(self):
        """Every version that is kept."""
        kept = self.model.versions
        lines = self.lakesmith.run("sql", in_versions(self.table, {v: list(columns) for v, (columns, _) in kept.items()}), "--json").splitlines()
        ours = by_version(lines)
        for version, (_, rows) in kept.items():
            theirs, schema = spark_rows(self.table, version)
            expected = model_rows(rows, schema)
            same(theirs, expected, f"version {version}: Spark reads other rows than there should be")
            same(sorted_rows(ours.get(version, []), schema), expected, f"version {version}: we read other rows than there should be")
        assert self.table.agrees_with_checksum()


def same(found, expected, what):
    if found != expected:
        gone, new = list(set(expected) - set(found))[:3], list(set(found) - set(expected))[:3]
        raise AssertionError(f"{what}: {len(found)} instead of {len(expected)}; missing {gone}, not expected {new}")


def fails(play, turns):
    """The error of the sequence with its log, or None."""
    played = play()
    try:
        for turn in turns:
            played.play(turn)
            played.judge()
    except Exception as error:  # any failure is what we look for
        return error, played.log
    return None


def shrunk(play, turns):
    """A short sequence that still fails, with its error; None if it does not fail when judged after every statement."""
    worst, until, size = fails(play, turns), time.monotonic() + SHRINKING_SECONDS, max(1, len(turns) // 2)
    while worst and size and time.monotonic() < until:
        at = 0
        while at < len(turns) and time.monotonic() < until:
            fewer = turns[:at] + turns[at + size :]
            again = fails(play, fewer)
            if again and type(again[0]) is type(worst[0]):
                turns, worst = fewer[: len(again[1])], again
            else:
                at += size
        size //= 2
    return worst


@pytest.mark.parametrize("name", [name if name in CORE else pytest.param(name, marks=pytest.mark.full) for name in TABLES])
def test_writers_take_turns(new_table, lakesmith, conf, name):
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    numbers = itertools.count()

    def play():
        return Played(new_table(f"{name}{next(numbers)}"), name, lakesmith)

    seed = f"{name} {SEED}"
    turns, played = draw(random.Random(seed), TURNS), play()
    try:
        for number, turn in enumerate(turns, start=1):
            played.play(turn)
            if number % EVERY == 0:
                played.judge()
        played.judge()
        played.judge_versions()
    except Exception as error:  # told with the shortest sequence that does it
        failed = turns[: len(played.log)]
        short, log = shrunk(play, failed) or (error, played.log)
        listed = "\n".join(log)
        raise AssertionError(f"seed {seed!r}, {len(failed)} statements: {error}\nshortest sequence that fails:\n{listed}\n{short}") from error
