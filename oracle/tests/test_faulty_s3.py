"""Maintenance of a table behind an S3 endpoint that throttles, loses answers, cuts bodies and is slow."""

import json
import os
import subprocess
import uuid

import pytest

from faulty_s3 import Faults, proxy
from judgement import deltalake_reads
from lakesmith_binary import Lakesmith

KEYS = {"AWS_ACCESS_KEY_ID": "lakeadmin", "AWS_SECRET_ACCESS_KEY": "lakesecret1", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
APPENDS = 30
ROWS = 200


@pytest.fixture
def bucket_table():
    """url, rows: a table of many small files on the real endpoint, written by deltalake."""
    import pyarrow as arrow
    from deltalake import write_deltalake

    url, options = f"s3://lake/{uuid.uuid4()}", {**KEYS, "AWS_ENDPOINT_URL": os.environ["LAKESMITH_TEST_S3"]}
    for number in range(APPENDS):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        rows = arrow.table({"id": ids, "text": [f"row {each}" for each in ids], "day": [f"day {number % 3}"] * ROWS})
        write_deltalake(url, rows, mode="append", partition_by=["day"], storage_options=options)
    return url, APPENDS * ROWS


def through(endpoint, *args):
    binary = Lakesmith()
    env = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": endpoint}
    done = subprocess.run(binary.command(*args, "--json"), env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(url):
    return deltalake_reads(url, **KEYS, AWS_ENDPOINT_URL=os.environ["LAKESMITH_TEST_S3"])


@pytest.mark.full
def test_the_reported_requests_are_those_that_the_server_saw(bucket_table):
    url, rows = bucket_table
    calm = Faults()
    with proxy(os.environ["LAKESMITH_TEST_S3"], calm) as endpoint:
        report = through(endpoint, "optimize", url)
    assert report["committed"] and rows_of(url) == rows
    assert report["requests"] == sum(calm.requests.values()), calm.requests


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shares", [{"throttled": 0.2}, {"lost_answers": 0.5}, {"cut_bodies": 0.2}, {"throttled": 0.1, "lost_answers": 0.15, "cut_bodies": 0.1}],
                         ids=["throttled", "lost answers", "cut bodies", "all"])
def test_rows_survive_a_bad_network_and_the_next_run_converges(bucket_table, shares, seed):
    url, rows = bucket_table
    faults = Faults(seed, **shares)
    with proxy(os.environ["LAKESMITH_TEST_S3"], faults) as endpoint:
        report = through(endpoint, "optimize", url, "--verify")
        again = through(endpoint, "optimize", url)
    assert report["committed"] and report["metrics"]["numFilesRemoved"] == APPENDS
    assert not again["committed"]
    assert rows_of(url) == rows
    assert sum(faults.faults.values()) > 0
    live = through(os.environ["LAKESMITH_TEST_S3"], "files", url)
    assert len(live) == 3


@pytest.mark.full
def test_a_slow_storage_is_read_with_several_requests_at_once(bucket_table):
    url, rows = bucket_table
    slow = Faults(latency_s=0.1)
    with proxy(os.environ["LAKESMITH_TEST_S3"], slow) as endpoint:
        report = through(endpoint, "optimize", url, "--threads", "1")
    assert report["committed"] and rows_of(url) == rows
    assert 1 < slow.most_in_flight <= 32
