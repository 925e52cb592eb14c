"""How many files a filter leaves to be read, after the same rows were laid out by one to four keys into as many files.

Files are counted by the smallest and largest values in the log, which is what every reader skips by. Three kinds of filters,
each with values of rows drawn at random: one value of one key, a range of one key that holds 5 % of the rows, and on all keys
at once ranges that each hold 20 %. What is reported is the mean over all drawn filters, and over the keys for the first two.
"""

import json
import os
import shutil
import tempfile

import numpy as np

import events
import measure

KEYS = ["customer_id", "event_ts", "session_id", "price"]
LAYOUTS = [(kind, count) for kind in ("zorder", "liquid", "hilbert") for count in (1, 2, 3, 4)]
FILES = 32
PROBES = 200
ONE_RANGE, EACH_RANGE = 0.05, 0.2
MIB = 1 << 20


class Skipping:
    peers = ("lakesmith", "spark")
    unit = "rows"

    def __init__(self, options):
        scale = events.SCALE if options.scale is None else options.scale
        self.table, self.data = os.path.join(options.data, f"events-{scale:g}"), options.data
        facts = measure.made_once(self.table, lambda path: events.make(path, scale))
        self.target = facts["bytes"] // FILES
        layouts = sum(kind != "hilbert" for kind, _ in LAYOUTS)
        self.units = facts["rows"] * layouts
        self.filters = Filters(rows(self.table))
        self.title = f"skipping: {facts['rows']:,} rows, {facts['bytes'] / MIB:,.0f} MiB, {facts['files']:,} files into {FILES}, laid out {layouts} times"

    def once(self, peer):
        """Lays copies out, and counts the files that filters leave of each. What it costs is without Hilbert's curve, which Spark has no statement for."""
        folder = tempfile.mkdtemp(prefix=f"skipping-{peer}-", dir=self.data)
        tables = {}
        for kind, count in LAYOUTS:
            if (peer, kind) != ("spark", "hilbert"):
                tables[kind, count] = measure.fresh_copy(self.table, os.path.join(folder, f"{kind}-{count}"))
        jobs = [(kind, ",".join(KEYS[:count]), table) for (kind, count), table in tables.items()]
        measured = self.spark(jobs) if peer == "spark" else self.lakesmith(jobs)
        result = {"files": 0}
        for (kind, count), table in tables.items():
            live = bounds(table)
            result["files"] += len(live)
            for name, left in self.filters.left(live, KEYS[:count]).items():
                result[f"{kind} {count} {name}"] = left
            result[f"{kind} {count} files"] = len(live)
        shutil.rmtree(folder)
        return {**measured, **result}

    def lakesmith(self, jobs):
        binary, all_runs = os.environ["LAKESMITH_BIN"], []
        for kind, keys, table in jobs:
            order = [f"--{kind}-by", keys] if kind != "liquid" else []
            if kind == "liquid":
                measure.timed([binary, "sql", f"ALTER TABLE delta.`{table}` CLUSTER BY ({keys})"])
            run, _ = measure.timed([binary, "optimize", table, "--target-size", str(self.target), *order, "--json"])
            all_runs += [run] if kind != "hilbert" else []
        return {"seconds": sum(run["seconds"] for run in all_runs), "cpu": sum(run["cpu"] for run in all_runs), "peak": max(run["peak"] for run in all_runs)}

    def spark(self, jobs):
        measured, _ = measure.timed(measure.contestant("spark", "lay_out", json.dumps(jobs), self.target))
        return measured

    def report(self, medians):
        """The figures as a table: mean number of files that are left, ours and theirs."""
        print("| layout | keys | filter | " + " | ".join(f"{peer}: files left" for peer in medians) + " |")
        print("|---|---|---|" + "---:|" * len(medians))
        for kind, count in LAYOUTS:
            for name in Filters.names(count):
                cells = [(of.get(f"{kind} {count} {name}"), of.get(f"{kind} {count} files")) for of in medians.values()]
                found = " | ".join("" if left is None else f"{left:.2f} of {files:.0f}" for left, files in cells)
                print(f"| {kind} | {count} | {name} | {found} |")


def rows(table):
    """The keys of all rows."""
    from deltalake import DeltaTable

    return DeltaTable(table).to_pyarrow_table(columns=KEYS)


class Filters:
    def __init__(self, table):
        random = np.random.Generator(np.random.PCG64(7))
        self.sorted = {key: table[key].combine_chunks().sort().to_pylist() for key in KEYS}
        count = table.num_rows
        self.rows = table.take(random.integers(0, count, PROBES)).to_pylist()
        self.starts = {(key, part): random.integers(0, int(count * (1 - part)), PROBES) for key in KEYS for part in (ONE_RANGE, EACH_RANGE)}
        self.count = count

    @staticmethod
    def names(keys):
        return ["one value of one key", "5 % of one key"] + (["20 % of each key"] if keys > 1 else [])

    def range(self, key, part, probe):
        start = int(self.starts[key, part][probe])
        return self.sorted[key][start], self.sorted[key][start + int(self.count * part)]

    def left(self, live, keys):
        """Mean number of files that are left, by kind of filter."""
        point, one, each = [], [], []
        for probe, row in enumerate(self.rows):
            point += [left(live, {key: (row[key], row[key])}) for key in keys]
            one += [left(live, {key: self.range(key, ONE_RANGE, probe)}) for key in keys]
            each.append(left(live, {key: self.range(key, EACH_RANGE, probe) for key in keys}))
        return dict(zip(self.names(len(keys)), map(float, map(np.mean, (point, one, each)))))


def left(live, ranges):
    """Files whose bounds meet all ranges."""
    return sum(all(low <= high_wanted and high >= low_wanted for (low_wanted, high_wanted), (low, high) in ((wanted, file[key]) for key, wanted in ranges.items())) for file in live)


def bounds(table):
    """Smallest and largest value of each key in each live file, by the log."""
    import pyarrow as pa
    from deltalake import DeltaTable

    adds = pa.table(DeltaTable(table).get_add_actions(flatten=True))
    of = {key: list(zip(adds[f"min.{key}"].to_pylist(), adds[f"max.{key}"].to_pylist())) for key in KEYS}
    return [{key: of[key][file] for key in KEYS} for file in range(adds.num_rows)]
