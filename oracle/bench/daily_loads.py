"""A hundred daily loads into a clustered table with an OPTIMIZE within one budget after each: what is written, how deep files lie.

Three tables: one key and two keys that have nothing to do with time, and two keys of which the first follows it. A load is four
unsorted files. "depth" is the number of files to open for a random row of the table when all of its keys are given; it is
measured after each day's run on the smallest and largest values in the log. At the end OPTIMIZE … FULL is measured, too, beside a
copy whose rows were clustered at once.
"""

import json
import os
import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import events
import measure

FILES_A_LOAD = 4
ROWS_A_FILE = 10_000
BUDGET_LOADS = 4
KEYS_BOUND = 1 << 40
PROBES = 2_000
TABLES = {"1 key": (1, False), "2 keys": (2, False), "2 keys, first follows time": (2, True)}


class DailyLoads:
    peers = ("lakesmith",)
    unit = "loads"

    def __init__(self, options):
        self.data, self.loads = options.data, options.files or 100
        self.units = self.loads * len(TABLES)
        self.title = f"daily-loads: {self.loads} loads of {FILES_A_LOAD} files of {ROWS_A_FILE:,} rows into each of {len(TABLES)} tables, budget {BUDGET_LOADS} loads"

    def once(self, _):
        result, runs = {}, []
        for name, (keys, follows) in TABLES.items():
            folder = tempfile.mkdtemp(prefix="daily-", dir=self.data)
            table = Table(folder, keys, follows)
            for day in range(self.loads):
                table.load(day)
                runs.append(table.optimize("--max-bytes", str(BUDGET_LOADS * table.load_bytes), "--target-size", str(table.load_bytes // 2)))
                table.measured()
            figures = {"written": table.written / table.loaded, "mean depth": float(np.mean(table.depths)), "depth at the end": table.depths[-1]}
            runs.append(table.optimize("--full", "--target-size", str(table.load_bytes // 2)))
            full = table.depth()
            at_once = Table(os.path.join(folder, "at-once"), keys, follows)
            for day in range(self.loads):
                at_once.load(day)
            runs.append(at_once.optimize("--target-size", str(table.load_bytes // 2)))
            figures |= {"depth after full": full, "depth at once": at_once.depth()}
            result |= {f"{name}: {key}": value for key, value in figures.items()}
            shutil.rmtree(folder)
        return {"seconds": sum(r["seconds"] for r in runs), "cpu": sum(r["cpu"] for r in runs), "peak": max(r["peak"] for r in runs), **result}

    def report(self, medians):
        of = medians["lakesmith"]
        heads = ("written", "mean depth", "depth at the end", "depth after full", "depth at once")
        print("| keys | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads))
        for name in TABLES:
            print(f"| {name} | " + " | ".join(f"{of[f'{name}: {head}']:.2f}" for head in heads) + " |")


class Table:
    """A clustered table whose log is written by hand, but for what is measured."""

    def __init__(self, path, keys, follows):
        self.path, self.keys, self.follows = path, [f"k{n}" for n in range(keys)], follows
        self.version, self.written, self.loaded, self.load_bytes, self.depths = 0, 0, 0, 0, []
        os.makedirs(f"{path}/_delta_log")
        schema = self.rows(0, 0).schema
        protocol, metadata = events.creation(schema, [])
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "clustering", "domainMetadata", "invariants"]}}
        keys = json.dumps({"clusteringColumns": [[key] for key in self.keys], "domainName": "delta.clustering"})
        domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": keys, "removed": False}}
        events.commit(path, 0, [protocol, metadata, domain])

    def rows(self, day, part):
        random = np.random.Generator(np.random.PCG64([7, day, part]))
        columns = {key: random.integers(0, KEYS_BOUND, ROWS_A_FILE) for key in self.keys}
        if self.follows:
            # The day's own range, and a tenth of a day into the next.
            columns["k0"] = (day * 1_000_000 + random.integers(0, 1_100_000, ROWS_A_FILE)).astype(np.int64)
        return pa.table({**columns, "payload": events.text(random, ROWS_A_FILE, 40, events.LETTERS)})

    def load(self, day):
        adds = []
        for part in range(FILES_A_LOAD):
            table, name = self.rows(day, part), f"load-{day:04d}-{part}.snappy.parquet"
            pq.write_table(table, f"{self.path}/{name}", compression="snappy")
            size = os.stat(f"{self.path}/{name}").st_size
            arrays = {key: table[key].to_numpy() for key in self.keys}
            stats = {"numRecords": ROWS_A_FILE, "minValues": {k: int(v.min()) for k, v in arrays.items()},
                     "maxValues": {k: int(v.max()) for k, v in arrays.items()}, "nullCount": dict.fromkeys(self.keys, 0)}
            adds.append({"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True, "stats": json.dumps(stats)}})
        self.version += 1
        events.commit(self.path, self.version, adds)
        loaded = sum(add["add"]["size"] for add in adds)
        self.load_bytes = self.load_bytes or loaded
        self.loaded += loaded
        self.written += loaded

    def optimize(self, *options):
        measured, last = measure.timed([os.environ["LAKESMITH_BIN"], "optimize", self.path, *options, "--json"])
        report = json.loads(last)
        self.version = report["version_after"] or self.version
        self.written += report["metrics"]["filesAdded"]["totalSize"]
        return measured

    def measured(self):
        self.depths.append(self.depth())

    def depth(self):
        """Files that a random row's keys lead to, by the log."""
        from deltalake import DeltaTable

        adds = pa.table(DeltaTable(self.path).get_add_actions(flatten=True))
        low = [adds[f"min.{key}"].to_numpy() for key in self.keys]
        high = [adds[f"max.{key}"].to_numpy() for key in self.keys]
        random = np.random.Generator(np.random.PCG64(11))
        days, found = max(1, round(self.loaded / self.load_bytes)), 0
        for _ in range(PROBES):
            values = [int(random.integers(0, KEYS_BOUND)) for _ in self.keys]
            if self.follows:
                values[0] = int(random.integers(0, days * 1_000_000))
            inside = np.ones(adds.num_rows, dtype=bool)
            for value, first, last in zip(values, low, high):
                inside &= (first <= value) & (value <= last)
            found += int(inside.sum())
        return found / PROBES
