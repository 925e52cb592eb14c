"""VACUUM of one generated table whose files were compacted into one long ago, each time on a fresh copy.

By listing the folder, and by the log alone (LITE).
"""

import json
import os
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq

import events
import measure

FILES = 10_000
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
