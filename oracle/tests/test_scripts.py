"""Spark gives for the engine's scripts what they say."""

import datetime
import glob
import os
import re
import shutil

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPTS = sorted(glob.glob(os.path.join(ROOT, "crates", "lakesmith-engine", "tests", "slt", "*.slt")))


def records(path):
    """(line, head, statement, rows) of every record that Spark is to run."""
    with open(path) as file:
        lines = [(at, line.rstrip("\n")) for at, line in enumerate(file, 1)]
    lines = [(at, line) for at, line in lines if not line.startswith("# ") or " | " in line]
    blocks, block = [], []
    for at, line in [*lines, (0, "")]:
        if line:
            block.append((at, line))
        elif block:
            blocks.append(block)
            block = []
    for block in blocks:
        if block[0][1] == "skipif spark":
            continue
        (at, head), body = block[0], [line for _, line in block[1:]]
        rows = body[body.index("----") + 1 :] if "----" in body else None
        yield at, head.split(), "\n".join(body[: body.index("----")] if rows is not None else body), rows


def cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value) or "(empty)"


def class_of(error):
    """That of the error, or what made its task fail."""
    classes = re.findall(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]", str(error))
    return next((name for name in classes if name != "TASK_WRITE_FAILED"), type(error).__name__)


def complaint(spark, head, statement, rows):
    """What Spark says otherwise, if anything."""
    try:
        got = [" | ".join(map(cell, row)) for row in spark.sql(statement).collect()]
    except Exception as error:  # noqa: BLE001
        if head[:2] != ["statement", "error"] or class_of(error) != head[2]:
            return f"failed: {str(error)[:300]}"
        return None
    if head[:2] == ["statement", "error"]:
        return f"was not refused: {got[:3]}"
    if rows is not None and (sorted(got) if "rowsort" in head else got) != rows:
        return f"gives {got}"
    return None


@pytest.fixture
def clean(spark):
    """A session without tables and settings of its own, before and after."""

    def sweep():
        for name in [row[0] for row in spark.sql("SHOW DATABASES").collect()]:
            for table in spark.sql(f"SHOW TABLES IN {name}").collect():
                kind = "VIEW" if table.isTemporary else f"TABLE {name}."
                spark.sql(f"DROP {kind}{' ' if table.isTemporary else ''}{table.tableName}")
            if name != "default":
                spark.sql(f"DROP DATABASE {name} CASCADE")
        spark.sql("USE default")
        shutil.rmtree(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"), ignore_errors=True)

    before = {row.key: row.value for row in spark.sql("SET").collect()}
    sweep()
    yield spark
    sweep()
    for row in spark.sql("SET").collect():
        if before.get(row.key) != row.value:
            spark.conf.unset(row.key)
    for key, value in before.items():
        if spark.conf.get(key, None) != value and spark.conf.isModifiable(key):
            spark.conf.set(key, value)


@pytest.mark.full
@pytest.mark.parametrize("path", SCRIPTS, ids=os.path.basename)
def test_spark_agrees(clean, tmp_path, path):
    assert SCRIPTS
    wrong = []
    for line, head, statement, rows in records(path):
        statement = statement.replace("{dir}", str(tmp_path)).replace("{golden}", os.path.join(ROOT, "fixtures", "delta"))
        said = complaint(clean, head, statement, rows)
        if said:
            wrong.append(f"{line}: {statement}\n  {said}")
    assert not wrong, "\n".join(wrong)
