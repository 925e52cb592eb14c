"""Every golden table, on a copy: compacted, purged, and still the same to every reader."""

import json
import os
from pathlib import Path

import pytest

from conftest import FIXTURES
from judgement import deltalake_reads, duckdb_reads, physical_rows, same_rows, settled
from lakesmith_binary import Failed

REFUSED = {"unknown_reader_feature": "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
           "unknown_writer_feature": "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"}
# Spark's OPTIMIZE clusters these; ours compacts them and leaves clustering to the table's owner.
CLUSTERED = {"liquid_before", "liquid_after"}
NAMES = sorted(name for name in os.listdir(FIXTURES) if os.path.isdir(os.path.join(FIXTURES, name)))


def expected(name):
    return json.loads(Path(FIXTURES, f"{name}.expected.json").read_text(encoding="utf-8"))


def rows_in(table):
    """What deltalake reads, or None if it does not support the table."""
    try:
        return deltalake_reads(table)
    except Exception:  # every refusal of a foreign library means the same here
        return None


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_rows_survive(golden, lakesmith, name):
    table = golden(name)
    twin, rows, tracked = table.twin(), expected(name)["rows"], name == "row_tracking"
    foreign = rows_in(table)
    report = same_rows(table, lambda: lakesmith.optimize(table, "--verify"), tracked)
    settled(table, lambda: lakesmith.optimize(table))
    if name not in CLUSTERED:
        theirs = twin.sql("OPTIMIZE {t}")[0].metrics
        ours = report["metrics"]
        assert (ours["numFilesRemoved"], ours["numFilesAdded"]) == (theirs.numFilesRemoved, theirs.numFilesAdded)
        assert report["committed"] == (theirs.numFilesRemoved > 0)
    same_rows(table, lambda: lakesmith.purge(table, "--verify"), tracked)
    settled(table, lambda: lakesmith.purge(table))
    files = lakesmith.files(table)
    assert not any(file["deletionVector"] for file in files)
    assert physical_rows(table, lakesmith) == duckdb_reads(table, lakesmith) == rows == table.frame().count()
    # A reader that understood the table before must understand what we made of it.
    assert foreign is None or (foreign, rows_in(table)) == (rows, rows)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_unknown_feature_is_refused_and_named(golden, lakesmith, name):
    table = golden(name)
    before = sorted(str(path) for path in Path(table.path).rglob("*"))
    for verb in (["optimize", table], ["reorg", table, "--purge"]):
        with pytest.raises(Failed) as failed:
            lakesmith.json(*verb)
        assert failed.value.code == 5 and failed.value.error_class == REFUSED[name]
        assert "fancyFutureThing" in json.dumps(failed.value.error)
    assert sorted(str(path) for path in Path(table.path).rglob("*")) == before


@pytest.mark.parametrize("name", ["plain_24_appends", "dv_file", "colmap_name", "partitioned_special", "row_tracking"])
def test_description_agrees(golden, lakesmith, name):
    table = golden(name)
    ours, theirs = lakesmith.detail(table), table.detail()
    for field in ("id", "numFiles", "sizeInBytes", "partitionColumns", "properties", "minReaderVersion", "minWriterVersion", "tableFeatures"):
        assert ours[field] == theirs[field], field
    ours, theirs = lakesmith.history(table), table.sql("DESCRIBE HISTORY {t}")
    assert [row["version"] for row in ours] == [row.version for row in theirs]
    for mine, spark_row in zip(ours, theirs):
        assert mine["operationParameters"] == spark_row.operationParameters
        assert mine["operationMetrics"] == spark_row.operationMetrics


def test_old_versions_stay_readable(golden, lakesmith):
    table = golden("dv_file")
    last = table.version()
    before = {version: table.fingerprint(version)[:2] for version in range(1, last + 1)}
    lakesmith.optimize(table)
    lakesmith.purge(table)
    assert {version: table.fingerprint(version)[:2] for version in range(1, last + 1)} == before


def test_a_deletion_vector_leaves_with_its_file(golden, lakesmith):
    """The removal names the file with its vector, or the file stays live beside its copy for readers of the log."""
    table = golden("dv_file")
    live = {(file["path"], file["deletionVector"]) for file in lakesmith.files(table)}
    lakesmith.purge(table)
    removed = [body for kind, body in table.commit() if kind == "remove"]
    assert removed and all((body["path"], unique_id(body.get("deletionVector"))) in live for body in removed)


def unique_id(vector):
    if vector is None:
        return None
    offset = vector.get("offset")
    return vector["storageType"] + vector["pathOrInlineDv"] + ("" if offset is None else f"@{offset}")
