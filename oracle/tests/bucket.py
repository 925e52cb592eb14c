"""A bucket on the S3 server of the tests, as its own client sees it."""

import os
import uuid

KEYS = {"AWS_ACCESS_KEY_ID": "lakeadmin", "AWS_SECRET_ACCESS_KEY": "lakesecret1", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
NAME = "lake"


class Bucket:
    def __init__(self):
        import boto3

        endpoint = os.environ["LAKESMITH_TEST_S3"]
        self.variables = {**KEYS, "AWS_ENDPOINT_URL": endpoint}
        self.client = boto3.client(
            "s3", endpoint_url=endpoint, region_name=KEYS["AWS_REGION"],
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"], aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        )

    def upload(self, folder, name="t"):
        """A fresh copy of a local table; gives its prefix."""
        prefix = f"{uuid.uuid4()}/{name}"
        for path, _, files in os.walk(folder):
            for file in files:
                key = f"{prefix}/{os.path.relpath(os.path.join(path, file), folder)}"
                self.client.upload_file(os.path.join(path, file), NAME, key)
        return prefix

    def url(self, prefix):
        return f"s3://{NAME}/{prefix}"

    def names(self, prefix):
        """Names below a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=NAME, Prefix=f"{prefix}/")
        return [entry["Key"][len(prefix) + 1:] for page in pages for entry in page.get("Contents", [])]

    def read(self, prefix, name):
        return self.client.get_object(Bucket=NAME, Key=f"{prefix}/{name}")["Body"].read()

    def download(self, prefix, folder):
        for name in self.names(prefix):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.client.download_file(NAME, f"{prefix}/{name}", path)
