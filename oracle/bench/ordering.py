"""Ordering of one generated table by two keys, each time on a fresh copy: Z-order by those who have it, and DuckDB's sort.

Spark's figure has what its rows cost to be ordered, but not sorted inside the files; DuckDB sorts all rows by the first key and
then the second, and only writes Parquet files.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import events
import measure

KEYS = "customer_id,event_ts"
TARGET = 256 << 20
MIB = 1 << 20


class Ordering:
    peers = ("lakesmith", "duckdb", "deltalake", "spark")
    unit = "rows"

    def __init__(self, options):
        self.table, self.data = os.path.join(options.data, f"events-{options.scale:g}"), options.data
        facts = measure.made_once(self.table, lambda path: events.make(path, options.scale))
        self.units = facts["rows"]
        self.title = f"order: {facts['rows']:,} rows, {facts['files']:,} files, {facts['bytes'] / MIB:,.0f} MiB by {KEYS}; target {TARGET // MIB} MiB"

    def once(self, peer):
        """Measures one run, and checks that it lost no row."""
        copy = measure.fresh_copy(self.table, self.data)
        if peer == "duckdb":
            return self.duckdb(copy)
        command = measure.contestant(peer, "zorder", copy, KEYS, TARGET)
        if peer == "lakesmith":
            command = [os.environ["LAKESMITH_BIN"], "optimize", copy, "--zorder-by", KEYS, "--target-size", str(TARGET), "--json"]
        measured, _ = measure.timed(command)
        shape = subprocess.run([sys.executable, os.path.join(measure.HERE, "shape.py"), self.table, copy], capture_output=True, check=True, text=True)
        shutil.rmtree(copy)
        shape = json.loads(shape.stdout)
        return self.checked(peer, measured, shape["rows"], shape["files"], shape["bytes"])

    def duckdb(self, copy):
        import pyarrow.parquet as pq

        folder = tempfile.mkdtemp(prefix="ordered-", dir=self.data)
        measured, _ = measure.timed(measure.contestant("duckdb", "sort", copy, KEYS, TARGET, folder))
        written = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".parquet")]
        rows, size = sum(pq.read_metadata(path).num_rows for path in written), sum(map(os.path.getsize, written))
        shutil.rmtree(folder)
        shutil.rmtree(copy)
        return self.checked("duckdb", measured, rows, len(written), size)

    def checked(self, peer, measured, rows, files, size):
        if rows != self.units:
            raise SystemExit(f"{peer} changed the number of rows to {rows}")
        return {**measured, "files": files, "bytes": size}
