"""Shared fixtures: one Spark session, the lakesmith binary, copies of the golden tables."""

import os
import shutil

import pytest

pytest.register_assert_rewrite("judgement")

import spark_session  # noqa: E402
from bucket import Bucket  # noqa: E402
from lakesmith_binary import Lakesmith  # noqa: E402
from table import Table  # noqa: E402

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "delta")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    session = spark_session.start(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lakesmith():
    return Lakesmith()


@pytest.fixture
def bucket(monkeypatch):
    """The test bucket; programs that this test starts find its server."""
    bucket = Bucket()
    for key, value in bucket.variables.items():
        monkeypatch.setenv(key, value)
    return bucket


@pytest.fixture
def conf(spark):
    """Sets Spark settings for one test: conf(key, value)."""
    before = {}

    def put(key, value):
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, str(value))

    yield put
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.fixture
def new_table(spark, tmp_path):
    """new_table(name): a handle on a table that does not exist yet."""
    return lambda name="t": Table(spark, str(tmp_path / name))


@pytest.fixture
def golden(spark, tmp_path):
    """golden(name): a writable copy of a golden table, with what git does not keep."""

    def copy(name):
        path = str(tmp_path / name)
        shutil.copytree(os.path.join(FIXTURES, name), path)
        if name == "orphans":
            os.makedirs(os.path.join(path, "emptydir"), exist_ok=True)
            for folder, _, files in os.walk(path):
                for file in files:
                    if "-old" in file:
                        os.utime(os.path.join(folder, file), (1700000000, 1700000000))
        return Table(spark, path)

    return copy
