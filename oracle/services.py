"""Runs a command while an S3 server (SeaweedFS) and an Azure one (Azurite) are up: services.py COMMAND…

The command finds them by LAKESMITH_TEST_S3 and LAKESMITH_TEST_ABFSS (endpoints). Each has a bucket or container `lake`.
Servers listen on this machine only, keep their data in a temporary folder, and end with the command.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from email.utils import formatdate

HOME = pathlib.Path(os.environ.get("LAKESMITH_ORACLE_HOME", os.path.expanduser("~/.cache/lakesmith")))
S3_KEYS = ("lakeadmin", "lakesecret1")
# Azurite's one account and key, the same for everybody.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START_SECONDS = 60


def main():
    with tempfile.TemporaryDirectory(prefix="lakesmith-services-") as work, contextlib.ExitStack() as stack:
        folder = pathlib.Path(work)
        found = {"LAKESMITH_TEST_S3": stack.enter_context(s3(folder)), "LAKESMITH_TEST_ABFSS": stack.enter_context(azure(folder))}
        done = subprocess.run(sys.argv[1:], env={**os.environ, **found})
    sys.exit(done.returncode)


@contextlib.contextmanager
def s3(work):
    with seaweed(work) as ports:
        yield endpoint_of(ports)


@contextlib.contextmanager
def seaweed(work):
    """SeaweedFS, with keys: without any it refuses the signed uploads of the usual clients. Gives its ports by their names."""
    data = work / "s3"
    data.mkdir()
    access, secret = S3_KEYS
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "admin", "credentials": [{"accessKey": access, "secretKey": secret}], "actions": actions}
    (work / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    names = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc", "s3.port.iceberg"]
    ports = dict(zip(names, free_ports(len(names))))
    options = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-volume.max=100", "-master.volumeSizeLimitMB=64", "-master.telemetry=false",
               "-master.electionTimeout=1s", "-volume.preStopSeconds=0", "-filer", "-s3", "-s3.port.lance=0", f"-s3.config={work / 's3.json'}"]
    options += [f"-{name}={port}" for name, port in ports.items()]
    with server([HOME / "venv/bin/weed", "-logtostderr=true", "server", *options], work / "s3.log") as process:
        until(process, work / "s3.log", lambda: make_bucket(endpoint_of(ports)))
        yield ports


def endpoint_of(ports):
    return f"http://127.0.0.1:{ports['s3.port']}"


def make_bucket(endpoint):
    import boto3

    access, secret = S3_KEYS
    client = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=access, aws_secret_access_key=secret, region_name="us-east-1")
    client.create_bucket(Bucket="lake")


def load_entries(ports, file):
    """Makes the files and folders that a dump of the server's own describes, many times as fast as uploads would."""
    host = "127.0.0.1:"
    addresses = [f"-{name}={host}{ports[name + '.port']}.{ports[name + '.port.grpc']}" for name in ("master", "filer")]
    command = [str(HOME / "venv/bin/weed"), "shell", *addresses]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as shell:
        shell.stdin.write(f"fs.meta.load -v=false -concurrency=8 {file}\n")
        shell.stdin.flush()
        if not any(" is loaded" in line for line in shell.stdout):
            raise SystemExit(f"the S3 server did not load {file}")
        # It says so while the last ones are under way, and would not wait for them.
        time.sleep(2)


@contextlib.contextmanager
def azure(work):
    port = free_ports(1)[0]
    endpoint = f"http://127.0.0.1:{port}"
    command = [HOME / "azurite/node_modules/.bin/azurite-blob", "--silent", "--skipApiVersionCheck", "--blobHost", "127.0.0.1",
               "--blobPort", str(port), "--location", work / "azure"]
    with server(command, work / "azure.log") as process:
        until(process, work / "azure.log", lambda: make_container(endpoint))
        yield endpoint


def make_container(endpoint):
    path = f"/{AZURE_ACCOUNT}/lake"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    signed = "PUT" + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in headers.items()) + f"/{AZURE_ACCOUNT}{path}\nrestype:container"
    digest = hmac.new(base64.b64decode(AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    request = urllib.request.Request(f"{endpoint}{path}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=5).close()


@contextlib.contextmanager
def server(command, log):
    with open(log, "wb") as file:
        process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(process, log, ready):
    """Tries `ready` until it works; the first thing that works is what the tests need."""
    import botocore.exceptions

    last = None
    for _ in range(START_SECONDS * 5):
        if process.poll() is not None:
            break
        try:
            return ready()
        except (OSError, urllib.error.URLError, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            last = error
            time.sleep(0.2)
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise SystemExit(f"{log.stem} did not start: {last}\n{tail}")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


if __name__ == "__main__":
    main()
