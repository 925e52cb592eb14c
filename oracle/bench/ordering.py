"""Ordering of one generated table by two keys, each time on a fresh copy: Z-order by those who have it, and DuckDB's sort.

Spark's figure has what its rows cost to be ordered, but not sorted inside the files; DuckDB sorts all rows by the first key and
then the second, and only writes Parquet files.
"""

import os
import shutil
import tempfile

import measure
from compaction import TARGET, Compaction

KEYS = "customer_id,event_ts"


class Ordering(Compaction):
    peers = ("lakesmith", "duckdb", "deltalake", "spark")
    work = "order"

    def once(self, peer):
        """Measures one run, and checks that it lost no row."""
        return self.duckdb(measure.fresh_copy(self.table, self.data)) if peer == "duckdb" else super().once(peer)

    def command(self, peer, table):
        if peer == "lakesmith":
            return [os.environ["LAKESMITH_BIN"], "optimize", table, "--zorder-by", KEYS, "--target-size", str(TARGET), "--json"]
        return measure.contestant(peer, "zorder", table, KEYS, TARGET)

    def duckdb(self, copy):
        import pyarrow.parquet as pq

        folder = tempfile.mkdtemp(prefix="ordered-", dir=self.data)
        measured, _ = measure.timed(measure.contestant("duckdb", "sort", copy, KEYS, TARGET, folder))
        written = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".parquet")]
        rows, size = sum(pq.read_metadata(path).num_rows for path in written), sum(map(os.path.getsize, written))
        shutil.rmtree(folder)
        shutil.rmtree(copy)
        if rows != self.units:
            raise SystemExit(f"duckdb changed the number of rows to {rows}")
        return {**measured, "files": len(written), "bytes": size}
