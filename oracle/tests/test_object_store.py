"""A table in an S3 bucket: the same work, judged by deltalake there and by Spark on a copy brought back."""

import os
import uuid

import pytest

from judgement import deltalake_reads
from lakesmith_binary import Lakesmith
from table import Table

KEYS = {"AWS_ACCESS_KEY_ID": "lakeadmin", "AWS_SECRET_ACCESS_KEY": "lakesecret1", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}


@pytest.mark.full
@pytest.mark.parametrize("name", ["dv_file", "v2_checkpoint_parquet", "colmap_name", "plain_24_appends"])
def test_rows_survive_in_a_bucket(spark, golden, tmp_path, monkeypatch, name):
    import boto3

    endpoint = os.environ["LAKESMITH_TEST_S3"]
    for key, value in {**KEYS, "AWS_ENDPOINT_URL": endpoint}.items():
        monkeypatch.setenv(key, value)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    local, prefix = golden(name), f"{uuid.uuid4()}/{name}"
    for folder, _, files in os.walk(local.path):
        for file in files:
            key = f"{prefix}/{os.path.relpath(os.path.join(folder, file), local.path)}"
            client.upload_file(os.path.join(folder, file), "lake", key)
    before, lakesmith, url = local.fingerprint(), Lakesmith(), f"s3://lake/{prefix}"
    assert lakesmith.optimize(url, "--verify")["committed"]
    lakesmith.purge(url, "--verify")
    for again in (lakesmith.optimize, lakesmith.purge):
        assert not again(url)["committed"]
    assert deltalake_reads(url, **KEYS, AWS_ENDPOINT_URL=endpoint) == before[0]
    back = tmp_path / "back"
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="lake", Prefix=f"{prefix}/"):
        for entry in page.get("Contents", []):
            path = back / os.path.relpath(entry["Key"], prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            client.download_file("lake", entry["Key"], str(path))
    assert Table(spark, str(back)).fingerprint() == before
