"""Benchmarks of several programs doing the same work, in turn, each in a process of its own; medians in one table.

bench.py NAME… runs the named ones (see BENCHMARKS). Each result is printed and written as JSON beside the data. Figures are
those of the whole process, but for Spark: its wall time leaves the start of the JVM out, its CPU time has it in, and both CPU
time and memory are those of the JVM and its children.
"""

import argparse
import json
import os
import platform
import statistics
import sys

import changes
import compaction
import daily_loads
import loading
import ordering
import skipping
import tpch
import vacuum

MIB = 1 << 20
BENCHMARKS = {
    "compact": compaction.Compaction,
    "daily-loads": daily_loads.DailyLoads,
    "delete": changes.Delete,
    "health": loading.Health,
    "insert": changes.Insert,
    "load": loading.Loading,
    "order": ordering.Ordering,
    "skipping": skipping.Skipping,
    "tpch": tpch.Tpch,
    "vacuum": vacuum.Vacuum,
    "vacuum-lite": vacuum.VacuumLite,
    "vacuum-s3": vacuum.VacuumBucket,
    "vacuum-s3-flat": vacuum.VacuumFlatBucket,
}
PEERS = ["lakesmith", "duckdb", "deltalake", "spark"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=sorted(BENCHMARKS), metavar="NAME", help=", ".join(sorted(BENCHMARKS)))
    parser.add_argument("--scale", type=float, help="compact, delete, insert, order, skipping: 1 is 10 million rows in 2,000 files, by default 0.1; tpch: the scale factor, by default 1")
    parser.add_argument("--files", type=int, help=f"daily-loads: loads; else files in the table; load, health: {loading.FILES}; vacuum, vacuum-lite: {vacuum.FILES}; vacuum-s3, vacuum-s3-flat: {vacuum.OBJECTS}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=PEERS)
    parser.add_argument("--data", default=os.path.join(os.environ["LAKESMITH_ORACLE_HOME"], "bench"))
    options = parser.parse_args()
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        parser.error(f"unknown contestants: {', '.join(sorted(unknown))}")
    os.makedirs(options.data, exist_ok=True)
    for name in options.names:
        benchmark = BENCHMARKS[name](options)
        result = compared(benchmark, options)
        show(name, result, options)
        if hasattr(benchmark, "report"):
            benchmark.report(result["medians"])


def compared(benchmark, options):
    """Every run of every contestant, in turn, so that a slow minute of the machine hits them all."""
    print(benchmark.title, flush=True)
    peers = [peer for peer in options.peers if peer in benchmark.peers]
    runs = {peer: [] for peer in peers}
    for repeat in range(options.repeats):
        for peer in peers:
            run = benchmark.once(peer)
            runs[peer].append(run)
            print(f"  run {repeat + 1}: {peer}: {run['seconds']:.2f} s, {run['cpu']:.2f} CPU s", file=sys.stderr, flush=True)
    medians = {peer: summary(runs[peer], benchmark) for peer in peers}
    return {"title": benchmark.title, "unit": benchmark.unit, "units": benchmark.units, "machine": machine(), "medians": medians, "runs": runs}


def summary(runs, benchmark):
    of = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return {**of, "per_second": benchmark.units / of["seconds"], "per_cpu_second": benchmark.units / of["cpu"]}


def machine():
    return {"cpus": os.cpu_count(), "platform": platform.platform(), "load": os.getloadavg()[0]}


def show(name, result, options):
    """Prints the medians, and how many times as much others need as we do; writes the JSON."""
    unit, medians = result["unit"], result["medians"]
    # What a benchmark reports by itself has a name of several words.
    more = [key for key in next(iter(medians.values())) if " " not in key and key not in ("seconds", "cpu", "peak", "per_second", "per_cpu_second")]
    heads = [f"{unit}/s", f"{unit}/CPU s", "wall s", "CPU s", "peak MiB", *(key.replace("bytes", "MiB") for key in more)]
    widths = [max(14, len(head) + 2) for head in heads]
    print(f"{'':12}" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths)))
    for peer, of in medians.items():
        cells = [f"{of['per_second']:,.0f}", f"{of['per_cpu_second']:,.0f}", f"{of['seconds']:.2f}", f"{of['cpu']:.2f}", f"{of['peak'] / MIB:,.0f}"]
        cells += [f"{of[key] / MIB if key.endswith('bytes') else of[key]:,.0f}" for key in more]
        print(f"{peer:12}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)))
    ours = medians.get("lakesmith")
    for peer, of in medians.items():
        if ours and peer != "lakesmith":
            result.setdefault("ratios", {})[peer] = ratio = {key: of[key] / ours[key] for key in ("seconds", "cpu", "peak")}
            print(f"{peer} needs {ratio['seconds']:.1f} times the time, {ratio['cpu']:.1f} times the CPU, {ratio['peak']:.1f} times the memory")
    path = os.path.join(options.data, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print(f"written: {path}\n", flush=True)


if __name__ == "__main__":
    main()
