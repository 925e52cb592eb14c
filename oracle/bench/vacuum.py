"""VACUUM of one generated table whose files were compacted into one long ago, each time on a fresh copy.

By listing the folder, and by the log alone (LITE). And of a table in a bucket, among very many objects.
"""

import json
import os
import pathlib
import shutil
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq

import events
import manyobjects
import measure

FILES, OBJECTS = 10_000, 100_000
LONG_AGO = int(time.time() - 60 * 86_400)


class Vacuum:
    peers = ("lakesmith", "deltalake", "spark")
    unit = "files"
    name, lite = "vacuum", False

    def __init__(self, options):
        files = options.files or FILES
        self.table, self.data = os.path.join(options.data, f"compacted-{files}"), options.data
        self.units = measure.made_once(self.table, lambda path: make(path, files))["files"]
        self.title = f"{self.name}: {self.units:,} files to delete, one to keep"

    def once(self, peer):
        """Measures one run, and checks that all went but the file in use."""
        copy = measure.fresh_copy(self.table, self.data)
        measured, _ = measure.timed(self.command(peer, copy))
        left = [entry for entry in os.listdir(copy) if entry.endswith(".parquet")]
        shutil.rmtree(copy)
        if left != [file_name(0)]:
            raise SystemExit(f"{peer} left {len(left)} files: {sorted(left)[:3]}")
        return measured

    def command(self, peer, table):
        if peer == "lakesmith":
            return [os.environ["LAKESMITH_BIN"], "vacuum", table, *(["--lite"] if self.lite else []), "--json"]
        return measure.contestant(peer, "vacuum", table, *(["lite"] if self.lite else []))


class VacuumLite(Vacuum):
    name, lite = "vacuum-lite", True


class VacuumBucket:
    """On a fresh server each time: a dry run, then a real one, and both again with a tenth of the objects.

    What memory grows by from a tenth to all shows whether it grows with their number.
    """

    peers = ("lakesmith",)
    unit = "objects"
    name, folders = "vacuum-s3", 100

    def __init__(self, options):
        self.units, self.data = options.files or OBJECTS, options.data
        self.title = f"{self.name}: {self.units:,} objects to delete in a bucket, in {self.folders or 'no'} folders"

    def once(self, _):
        (dry_tenth, tenth), (dry, real) = self.runs(self.units // 10), self.runs(self.units)
        return {**real, "dry run s": dry["seconds"], "dry run requests": dry["requests"], "dry run bytes": dry["peak"],
                "tenth s": tenth["seconds"], "tenth bytes": tenth["peak"], "tenth dry bytes": dry_tenth["peak"]}

    def runs(self, objects):
        with tempfile.TemporaryDirectory(prefix="s3-", dir=self.data) as work:
            with manyobjects.services.seaweed(pathlib.Path(work)) as ports:
                os.environ["LAKESMITH_TEST_S3"] = manyobjects.services.endpoint_of(ports)
                lake = manyobjects.bucket.Bucket()
                os.environ.update(lake.variables)
                manyobjects.make(lake, ports, "t", objects, self.folders, LONG_AGO, work)
                runs = [self.run(lake.url("t"), objects, *more) for more in (["--dry-run"], [])]
                left = [name for name in lake.names("t") if not name.startswith("_")]
                if left:
                    raise SystemExit(f"the vacuum left {len(left)} objects: {left[:3]}")
                return runs

    def run(self, table, objects, *more):
        measured, last = measure.timed([os.environ["LAKESMITH_BIN"], "vacuum", table, "--quiet", "--json", *more])
        report = json.loads(last)
        if len(report["files"]) != objects:
            raise SystemExit(f"{len(report['files'])} of {objects} objects were found")
        return {**measured, "requests": report["requests"]}


class VacuumFlatBucket(VacuumBucket):
    name, folders = "vacuum-s3-flat", 0


def make(root, files):
    """Writes the table at `root` and says what there is to delete."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(f"{root}/_delta_log")
    rows = pa.table({"id": pa.array([1], pa.int64())})
    pq.write_table(rows, f"{root}/{file_name(0)}")
    size = os.path.getsize(f"{root}/{file_name(0)}")
    old = [file_name(number) for number in range(1, files + 1)]
    for each in old:
        shutil.copyfile(f"{root}/{file_name(0)}", f"{root}/{each}")
        os.utime(f"{root}/{each}", (LONG_AGO, LONG_AGO))
    add = {"partitionValues": {}, "size": size, "modificationTime": LONG_AGO * 1000, "stats": json.dumps({"numRecords": 1})}
    remove = {"deletionTimestamp": LONG_AGO * 1000, "dataChange": False, "size": size}
    compacted = [{"add": {"path": file_name(0), **add, "dataChange": False}}, *({"remove": {"path": each, **remove}} for each in old)]
    appended = [{"add": {"path": each, **add, "dataChange": True}} for each in old]
    for version, actions in enumerate([events.creation(rows.schema, []), appended, compacted]):
        os.utime(events.commit(root, version, actions), (LONG_AGO + version, LONG_AGO + version))
    return {"files": files}


def file_name(number):
    return f"part-{number:05d}.parquet"
