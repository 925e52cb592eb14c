"""VACUUM of one generated table by several programs, each on a fresh copy, in turn; medians in one table.

Ten thousand files were compacted into one long ago. Wall and CPU seconds and peak memory are those of the whole process, but
for Spark: its wall time leaves the start of the JVM out.

    LAKESMITH_BIN=target/release/lakesmith python oracle/bench/vacuum.py --files 10000
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["lakesmith", "lakesmith-lite", "deltalake", "deltalake-lite", "spark"]
LONG_AGO = int(time.time() - 60 * 86_400)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--contestant", nargs=2, metavar=("PEER", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        return contestant(*options.contestant)
    with tempfile.TemporaryDirectory(prefix="lakesmith-vacuum-bench-") as work:
        table = os.path.join(work, "table")
        generate(table, options.files)
        runs = {peer: [] for peer in options.peers.split(",")}
        for _ in range(options.repeats):
            for peer, results in runs.items():
                results.append(measured(peer, table, os.path.join(work, "copy"), options.files))
    results = {peer: {key: statistics.median(run[key] for run in each) for key in each[0]} for peer, each in runs.items()}
    print(f"{'':16}{'seconds':>9}{'CPU s':>8}{'MiB':>7}")
    for peer, result in results.items():
        print(f"{peer:16}{result['seconds']:9.3f}{result['cpu']:8.2f}{result['peak'] / (1 << 20):7.0f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "vacuum", "files": options.files, "results": results}, file)


def generate(table, files):
    """The log by hand: no writer makes ten thousand files as fast."""
    import pyarrow
    from pyarrow import parquet

    os.makedirs(f"{table}/_delta_log")
    first = f"{table}/part-00000.parquet"
    parquet.write_table(pyarrow.table({"id": pyarrow.array([1], pyarrow.int64())}), first)
    size = os.path.getsize(first)
    names = [f"part-{number:05d}.parquet" for number in range(1, files + 1)]
    for name in names:
        shutil.copyfile(first, f"{table}/{name}")
        os.utime(f"{table}/{name}", (LONG_AGO, LONG_AGO))
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {"id": "bench", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
                "partitionColumns": [], "configuration": {}, "createdTime": LONG_AGO * 1000}
    stats = json.dumps({"numRecords": 1})
    add = {"partitionValues": {}, "size": size, "modificationTime": LONG_AGO * 1000, "dataChange": True, "stats": stats}
    remove = {"deletionTimestamp": LONG_AGO * 1000, "dataChange": False, "size": size}
    commits = [
        [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}],
        [{"add": {"path": name, **add}} for name in names],
        [{"add": {"path": "part-00000.parquet", **add, "dataChange": False}}]
        + [{"remove": {"path": name, **remove}} for name in names],
    ]
    for version, actions in enumerate(commits):
        path = f"{table}/_delta_log/{version:020d}.json"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(action) + "\n" for action in actions)
        os.utime(path, (LONG_AGO + version, LONG_AGO + version))


def measured(peer, table, copy, files):
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    if peer.startswith("lakesmith"):
        lite = ["--lite"] if peer.endswith("lite") else []
        command = [os.environ["LAKESMITH_BIN"], "vacuum", copy, *lite, "--quiet"]
    else:
        command = [sys.executable, os.path.abspath(__file__), "--contestant", peer, copy]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    left = sum(name.endswith(".parquet") for name in os.listdir(copy))
    if status != 0 or left != 1:
        raise SystemExit(f"{peer} ended with {status} and left {left} of {files + 1} files")
    result = {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}
    if peer == "spark":
        result |= json.loads(output.splitlines()[-1])
    return result


def contestant(peer, table):
    if peer == "spark":
        sys.path.insert(0, os.path.join(HERE, "..", "tests"))
        import contestant as usage
        import spark_session

        session = spark_session.start(tempfile.mkdtemp(prefix="lakesmith-bench-"), memory="3g")
        session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        started = time.monotonic()
        session.sql(f"VACUUM delta.`{table}`").collect()
        print(json.dumps({"seconds": time.monotonic() - started, "peak": usage._peak(session), "cpu": usage._cpu(session)}))
        session.stop()
        return
    from deltalake import DeltaTable

    DeltaTable(table).vacuum(dry_run=False, full=not peer.endswith("lite"))


if __name__ == "__main__":
    main()
