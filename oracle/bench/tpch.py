"""The 22 queries of TPC-H, one after the other, each in a process of its own: on Delta tables that we made, and by DuckDB on the
Parquet files that these were made of.

Our figures are those of whole processes. DuckDB's times leave the start of Python and of DuckDB out. Rows are compared before
anything is measured.
"""

import json
import os
import subprocess
import sys

import measure

sys.path.insert(0, os.path.join(measure.HERE, "..", "tests"))

import tpch_tables  # noqa: E402

MIB = 1 << 20


class Tpch:
    peers = ("lakesmith", "duckdb")
    unit = "queries"
    units = len(tpch_tables.QUERIES)

    def __init__(self, options):
        scale = 1 if options.scale is None else options.scale
        self.parquet = os.path.join(options.data, f"tpch-{scale:g}-parquet")
        self.warehouse = os.path.join(options.data, f"tpch-{scale:g}")
        measure.made_once(self.parquet, lambda folder: tpch_tables.generate(folder, scale))
        made = measure.made_once(self.warehouse, lambda folder: self.create())
        print(f"CREATE TABLE … AS SELECT: {made['seconds']:.2f} s, {made['cpu']:.2f} CPU s, {made['peak'] / MIB:,.0f} MiB, {made['files']} files, {made['bytes'] / MIB:,.0f} MiB")
        connection = tpch_tables.duckdb_over(self.parquet)
        for name in tpch_tables.QUERIES:
            text = tpch_tables.query(name)
            done = subprocess.run(self.lakesmith(text), capture_output=True, text=True, check=True)
            ours = [list(json.loads(line).values()) for line in done.stdout.splitlines()]
            wrong = tpch_tables.differences(ours, connection.execute(text).fetchall())
            if wrong:
                raise SystemExit(f"{name}: {wrong[0]}")
        connection.close()
        self.title = f"tpch: scale {scale:g}"

    def lakesmith(self, text):
        return [os.environ["LAKESMITH_BIN"], "sql", text, "--warehouse", self.warehouse, "--json"]

    def create(self):
        """Makes the tables, one statement after the other, and says what that cost."""
        made = {"seconds": 0, "cpu": 0, "peak": 0}
        for table in tpch_tables.TABLES:
            run, _ = measure.timed(self.lakesmith(tpch_tables.create(table, self.parquet)))
            made = {"seconds": made["seconds"] + run["seconds"], "cpu": made["cpu"] + run["cpu"], "peak": max(made["peak"], run["peak"])}
        written = [os.path.join(place, name) for place, _, names in os.walk(self.warehouse) for name in names if name.endswith(".parquet")]
        return {**made, "files": len(written), "bytes": sum(map(os.path.getsize, written))}

    def once(self, peer):
        total = {"seconds": 0, "cpu": 0, "peak": 0}
        for name in tpch_tables.QUERIES:
            command = self.lakesmith(tpch_tables.query(name)) if peer == "lakesmith" else measure.contestant(peer, "tpch", self.parquet, name)
            run, _ = measure.timed(command)
            total["seconds"] += run["seconds"]
            total["cpu"] += run["cpu"]
            total["peak"] = max(total["peak"], run["peak"])
            total.update({f"{name} {key}": run[key] for key in ("seconds", "cpu", "peak")})
        return total

    def report(self, medians):
        """Seconds, CPU seconds and MiB of each query."""
        print("| query |" + "".join(f" {peer}: s | CPU s | peak MiB |" for peer in medians))
        print("|---|" + "---:|---:|---:|" * len(medians))
        for name in tpch_tables.QUERIES:
            cells = [f" {of[f'{name} seconds']:.2f} | {of[f'{name} cpu']:.2f} | {of[f'{name} peak'] / MIB:,.0f} |" for of in medians.values()]
            print(f"| {name} |" + "".join(cells))
