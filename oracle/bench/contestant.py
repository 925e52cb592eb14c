"""One piece of work by one contestant, in a process of its own: contestant.py PEER WORK TABLE [DETAIL]."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))


def deltalake_compact(table, target):
    from deltalake import DeltaTable, WriterProperties

    # Its default codec is another one than the table's; the same codec makes the same work.
    DeltaTable(table).optimize.compact(target_size=int(target), writer_properties=WriterProperties(compression="SNAPPY"))


def deltalake_zorder(table, keys, target):
    from deltalake import DeltaTable, WriterProperties

    DeltaTable(table).optimize.z_order(keys.split(","), target_size=int(target), writer_properties=WriterProperties(compression="SNAPPY"))


def duckdb_sort(table, keys, target, folder):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET temp_directory='{folder}/spill'")
    files = f"read_parquet('{table}/*.parquet')"
    connection.execute(f"COPY (SELECT * FROM {files} ORDER BY {keys}) TO '{folder}/sorted' (FORMAT parquet, COMPRESSION snappy, FILE_SIZE_BYTES {target})")


def duckdb_tpch(parquet, name):
    import tpch_tables

    connection = tpch_tables.duckdb_over(parquet)
    started, used = time.monotonic(), time.process_time()
    for row in connection.execute(tpch_tables.query(name)).fetchall():
        print(row)
    print(json.dumps({"seconds": time.monotonic() - started, "cpu": time.process_time() - used}))


def deltalake_insert(table, made):
    from deltalake import DeltaTable, WriterProperties, write_deltalake

    dataset = DeltaTable(table).to_pyarrow_dataset()
    rows = dataset.scanner().to_reader()
    write_deltalake(made, rows, writer_properties=WriterProperties(compression="SNAPPY"))


def deltalake_delete(table, condition):
    from deltalake import DeltaTable, WriterProperties

    DeltaTable(table).delete(condition, writer_properties=WriterProperties(compression="SNAPPY"))


def duckdb_insert(table, made):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order=false")
    os.makedirs(made, exist_ok=True)
    connection.execute(f"COPY (SELECT * FROM read_parquet('{table}/*.parquet')) TO '{made}/rows' (FORMAT parquet, COMPRESSION snappy, PER_THREAD_OUTPUT)")


def deltalake_load(table):
    started = time.monotonic()
    from deltalake import DeltaTable

    found = len(DeltaTable(table).file_uris())
    print(json.dumps({"seconds": time.monotonic() - started, "found": found}))


def deltalake_vacuum(table, lite=None):
    from deltalake import DeltaTable

    DeltaTable(table).vacuum(dry_run=False, full=lite is None)


def spark_compact(table, target):
    spark_runs([f"OPTIMIZE delta.`{table}`"], {"spark.databricks.delta.optimize.maxFileSize": target})


def spark_zorder(table, keys, target):
    spark_runs([f"OPTIMIZE delta.`{table}` ZORDER BY ({keys})"], {"spark.databricks.delta.optimize.maxFileSize": target})


def spark_insert(table, made):
    spark_runs([f"CREATE TABLE delta.`{made}` USING delta AS SELECT * FROM delta.`{table}`"], {})


def spark_delete(table, condition):
    spark_runs([f"DELETE FROM delta.`{table}` WHERE {condition}"], {})


def spark_vacuum(table, lite=""):
    spark_runs([f"VACUUM delta.`{table}` {lite}"], {})


def spark_lay_out(jobs, target):
    """Orders tables, each [kind, keys, path], one after another."""
    statements = []
    for kind, keys, table in json.loads(jobs):
        if kind == "liquid":
            statements += [f"ALTER TABLE delta.`{table}` CLUSTER BY ({keys})", f"OPTIMIZE delta.`{table}`"]
        else:
            statements.append(f"OPTIMIZE delta.`{table}` ZORDER BY ({keys})")
    spark_runs(statements, {"spark.databricks.delta.optimize.maxFileSize": target})


def spark_runs(statements, settings):
    import tempfile

    import spark_session

    session = spark_session.start(tempfile.mkdtemp(prefix="lakesmith-bench-"), memory="3g")
    for key, value in settings.items():
        session.conf.set(key, value)
    started = time.monotonic()
    for statement in statements:
        session.sql(statement).collect()
    seconds, tree = time.monotonic() - started, family(session.sparkContext._gateway.proc.pid)
    print(json.dumps({"seconds": seconds, "peak": sum(map(peak, tree)), "cpu": sum(map(cpu, tree))}))
    session.stop()


def family(process):
    """A process and all that it started."""
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        children = file.read().split()
    return [process, *(each for child in children for each in family(child))]


def peak(process):
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def cpu(process):
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    # Its own time and that of children that have ended.
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    works = (
        deltalake_compact, deltalake_delete, deltalake_insert, deltalake_load, deltalake_vacuum, deltalake_zorder, duckdb_insert, duckdb_sort, duckdb_tpch,
        spark_compact, spark_delete, spark_insert, spark_lay_out, spark_vacuum, spark_zorder,
    )
    {each.__name__: each for each in works}[f"{sys.argv[1]}_{sys.argv[2]}"](*sys.argv[3:])
