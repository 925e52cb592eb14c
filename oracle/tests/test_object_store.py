"""A table in an S3 bucket: the same work, judged by deltalake there and by Spark on a copy brought back."""

import pytest

from judgement import deltalake_reads
from table import Table


@pytest.mark.full
@pytest.mark.parametrize("name", ["dv_file", "v2_checkpoint_parquet", "colmap_name", "plain_24_appends"])
def test_rows_survive_in_a_bucket(spark, golden, bucket, lakesmith, tmp_path, name):
    local = golden(name)
    before, prefix = local.fingerprint(), bucket.upload(local.path, name)
    url = bucket.url(prefix)
    assert lakesmith.optimize(url, "--verify")["committed"]
    lakesmith.purge(url, "--verify")
    for again in (lakesmith.optimize, lakesmith.purge):
        assert not again(url)["committed"]
    assert deltalake_reads(url, **bucket.variables) == before[0]
    bucket.download(prefix, tmp_path / "back")
    assert Table(spark, str(tmp_path / "back")).fingerprint() == before
