"""One compaction by one contestant, in a process of its own: contestant.py PEER TABLE TARGET_BYTES."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))


def deltalake(table, target):
    from deltalake import DeltaTable, WriterProperties

    # Its default codec is another one than the table's; the same codec makes the same work.
    DeltaTable(table).optimize.compact(target_size=target, writer_properties=WriterProperties(compression="SNAPPY"))


def spark(table, target):
    import tempfile

    import spark_session

    session = spark_session.start(tempfile.mkdtemp(prefix="lakesmith-bench-"), memory="3g")
    session.conf.set("spark.databricks.delta.optimize.maxFileSize", target)
    started = time.monotonic()
    session.sql(f"OPTIMIZE delta.`{table}`").collect()
    print(json.dumps({"seconds": time.monotonic() - started, "peak": _peak(session), "cpu": _cpu(session)}))
    session.stop()


def _proc(session):
    return f"/proc/{session.sparkContext._gateway.proc.pid}"


def _peak(session):
    with open(f"{_proc(session)}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def _cpu(session):
    with open(f"{_proc(session)}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    {"deltalake": deltalake, "spark": spark}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
