"""Compaction of one generated table by several programs, each on a fresh copy, in turn; medians in one table.

Wall seconds, CPU seconds and peak memory are those of the whole process, but for Spark: its wall time leaves the start of
the JVM out, its CPU time has it in.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import events

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = 256 << 20
MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default="lakesmith,deltalake,spark")
    parser.add_argument("--data", default=os.path.join(os.environ["LAKESMITH_ORACLE_HOME"], "bench"))
    options = parser.parse_args()
    peers = options.peers.split(",")
    unknown = set(peers) - {"lakesmith", "deltalake", "spark"}
    if unknown:
        parser.error(f"unknown contestants: {', '.join(sorted(unknown))}")
    table, facts = prepared(options.data, options.scale)
    print(f"events: {facts['rows']:,} rows, {facts['files']:,} files, {facts['bytes'] / MIB:,.0f} MiB; target {TARGET // MIB} MiB", flush=True)
    runs = {peer: [] for peer in peers}
    for repeat in range(options.repeats):
        for peer in peers:
            runs[peer].append(once(peer, table, options.data))
            print(f"  run {repeat + 1}: {peer}: {runs[peer][-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
    print(f"{'':12}{'wall s':>9}{'CPU s':>9}{'peak MiB':>10}{'files':>7}{'MiB':>8}")
    for peer in peers:
        of = {key: statistics.median(run[key] for run in runs[peer]) for key in ("seconds", "cpu", "peak", "files", "bytes")}
        print(f"{peer:12}{of['seconds']:9.2f}{of['cpu']:9.2f}{of['peak'] / MIB:10.0f}{of['files']:7.0f}{of['bytes'] / MIB:8.0f}")


def prepared(data, scale):
    """The table for this scale, made once."""
    table = os.path.join(data, f"events-{scale:g}")
    facts = table + ".json"
    if not os.path.exists(facts):
        print(f"making {table}", file=sys.stderr, flush=True)
        os.makedirs(data, exist_ok=True)
        made = events.make(table, scale)
        with open(facts, "w", encoding="utf-8") as file:
            json.dump(made, file)
    with open(facts, encoding="utf-8") as file:
        return table, json.load(file)


def once(peer, table, data):
    """Measures one run on a fresh copy, and checks that it lost no row."""
    copy = os.path.join(data, "copy")
    shutil.rmtree(copy, ignore_errors=True)
    # Data files are never written to again, so links will do; the log is copied.
    shutil.copytree(table, copy, copy_function=lambda a, b: (shutil.copy2 if "_delta_log" in a else os.link)(a, b))
    measured = timed(command(peer, copy))
    shape = json.loads(subprocess.run([sys.executable, os.path.join(HERE, "shape.py"), table, copy], capture_output=True, check=True, text=True).stdout)
    shutil.rmtree(copy)
    if shape["rows"] != shape["rows_before"]:
        raise SystemExit(f"{peer} made {shape['rows']} rows of {shape['rows_before']}")
    return {**measured, **shape}


def command(peer, table):
    if peer == "lakesmith":
        return [os.environ["LAKESMITH_BIN"], "optimize", table, "--target-size", f"{TARGET // MIB}MiB", "--json"]
    return [sys.executable, os.path.join(HERE, "contestant.py"), peer, table, str(TARGET)]


def timed(arguments):
    started = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The pipes are small and so is what comes through them: one line on each, or an error.
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    if status != 0:
        raise SystemExit(f"{' '.join(arguments)} failed: {errors[-2000:]}")
    measured = {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}
    last = output.strip().rpartition("\n")[2]
    if last.startswith('{"seconds"'):
        measured.update(json.loads(last))
    return measured


if __name__ == "__main__":
    main()
