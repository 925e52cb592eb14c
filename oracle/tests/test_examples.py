"""Every example runs by itself, and finds what it says."""

import glob
import os
import subprocess
import sys

import pytest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
LESSONS = sorted(path for path in glob.glob(os.path.join(FOLDER, "*.py")) if not path.endswith("/warehouse.py"))

# What a lesson has to have printed when it ends, beside what depends on the sizes of our files: that it computes itself.
PRINTED = {
    "small_writes.py": [
        "files: 40",
        "files removed, files added: 40 ",
        "['shop'] ['appendOnly', 'clustering', 'domainMetadata', 'invariants']",
        "ZORDER BY on it: DELTA_CLUSTERING_WITH_ZORDER_BY",
        "{'numDeletionVectorsAdded': '1', 'numRemovedFiles': '0', 'numCopiedRows': '0'}",
        "rows: 990",
        "would delete: 0",
        "RETAIN 0 HOURS: DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "version 20: FAILED_READ_FILE.FILE_NOT_EXIST",
        "rows now: 100000",
    ],
    "hourly_orders.py": [
        "plain      after the day    96 files, customer 42 reads 96",
        "clustered  after the day    96 files, customer 42 reads 96",
        " files, customer 42 reads 1\n",
        "older than the retention: 0",
        "deleted: 96 files in 1 folder",
        "version 24: 2000000 rows says the log; the sum: FAILED_READ_FILE.FILE_NOT_EXIST",
        "now: (2000000, '89920000.00')",
    ],
    "nightly_care.py": [
        "files: 72",
        "partitions, removed, added: 2 24 2",
        "WHERE user = …: DELTA_NON_PARTITION_COLUMN_REFERENCE",
        "ZORDER BY (user, day): DELTA_ZORDERING_ON_PARTITION_COLUMN",
        "two days: 2 of 6 files",
        "files read before and after: 4 1",
        "CREATE BLOOMFILTER INDEX: PARSE_SYNTAX_ERROR",
    ],
}


def test_every_example_is_known():
    assert [os.path.basename(path) for path in LESSONS] == sorted(PRINTED)


@pytest.mark.parametrize("path", LESSONS, ids=os.path.basename)
def test_example(path, lakesmith, tmp_path):
    environment = {**os.environ, "LAKESMITH_BIN": os.path.abspath(lakesmith.binary), "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"}
    command = [sys.executable, "-W", "error", os.path.abspath(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    for expected in PRINTED[os.path.basename(path)]:
        assert expected in done.stdout, (expected, done.stdout)
    assert not any(tmp_path.glob("lakesmith-lesson-*")), "an example leaves nothing behind"
