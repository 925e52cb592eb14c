"""Rows that enter and leave one generated table: all of its rows written anew, and one customer's rows deleted.

Spark and Lakesmith delete with deletion vectors; deltalake writes the files again, and DuckDB, which has no table, only writes
Parquet files.
"""

import json
import os
import shutil
import subprocess


import measure
from compaction import Compaction

CUSTOMER = 777


class Insert(Compaction):
    peers = ("lakesmith", "duckdb", "deltalake", "spark")
    work = "insert"

    def once(self, peer):
        """Measures one run, and checks that every row is there."""
        made = os.path.join(self.data, "made")
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(os.path.dirname(made), exist_ok=True)
        if peer == "lakesmith":
            command = [os.environ["LAKESMITH_BIN"], "sql", f"CREATE TABLE delta.`{made}` AS SELECT * FROM delta.`{self.table}`"]
        else:
            command = measure.contestant(peer, "insert", self.table, made)
        measured, _ = measure.timed(command)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(made) for name in names if name.endswith(".parquet")]
        import pyarrow.parquet as pq

        rows, size = sum(pq.read_metadata(path).num_rows for path in files), sum(map(os.path.getsize, files))
        shutil.rmtree(made)
        if rows != self.units:
            raise SystemExit(f"{peer} wrote {rows} rows")
        return {**measured, "files": len(files), "bytes": size}


class Delete(Compaction):
    peers = ("lakesmith", "deltalake", "spark")
    work = "delete"

    def once(self, peer):
        """Measures one run on a fresh copy that takes deletion vectors, and checks which rows are left."""
        copy = measure.fresh_copy(self.table, self.data)
        if peer != "deltalake":
            setting = f"ALTER TABLE delta.`{copy}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)"
            subprocess.run([os.environ["LAKESMITH_BIN"], "sql", setting], check=True, capture_output=True)
        condition = f"customer_id = {CUSTOMER}"
        if peer == "lakesmith":
            command = [os.environ["LAKESMITH_BIN"], "sql", f"DELETE FROM delta.`{copy}` WHERE {condition}"]
        else:
            command = measure.contestant(peer, "delete", copy, condition)
        measured, _ = measure.timed(command)
        left = subprocess.run(
            [os.environ["LAKESMITH_BIN"], "sql", "--json", f"SELECT count(*) AS n, count_if({condition}) AS gone FROM delta.`{copy}`"],
            check=True, capture_output=True, text=True,
        )
        left = json.loads(left.stdout)
        files = [name for name in os.listdir(copy) if name.endswith((".parquet", ".bin"))]
        shutil.rmtree(copy)
        if left["gone"] or not 0 < self.units - left["n"] < self.units:
            raise SystemExit(f"{peer} left {left}")
        return {**measured, "files": len(files), "bytes": 0}


