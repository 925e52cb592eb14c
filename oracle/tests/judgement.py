"""What every rewrite must prove, and how a commit compares with Spark's."""

import json

import pyarrow.parquet as parquet


def same_rows(table, change, row_ids=False):
    """Runs `change` and asserts that every row, value and type is still there. Gives what `change` gave."""
    before = table.fingerprint(row_ids=row_ids)
    result = change()
    assert table.fingerprint(row_ids=row_ids) == before
    return result


def compacted(table, lakesmith, *args, row_ids=False, removed=None, added=None):
    """Optimises, judges the result and asserts that a second run commits nothing. Gives the report."""
    version = table.version()
    report = same_rows(table, lambda: lakesmith.optimize(table, "--verify", *args), row_ids)
    assert report["committed"] and report["version_before"] == version and report["version_after"] == table.version()
    metrics = report["metrics"]
    if removed is not None:
        assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (removed, added)
    settled(table, lambda: lakesmith.optimize(table, *args))
    return report


def settled(table, again):
    """A run on a table that it has just treated commits nothing."""
    version = table.version()
    report = again()
    assert not report["committed"] and report["version_after"] is None and table.version() == version
    assert (report["metrics"]["numFilesAdded"], report["metrics"]["numFilesRemoved"]) == (0, 0)


def like_spark(ours, twin, spark_sql):
    """Runs Spark's statement on the twin and compares the two commits' shapes."""
    metrics = twin.sql(spark_sql)[0].metrics
    mine, theirs = ours.commit(), twin.commit()
    for kind in ("add", "remove"):
        assert _count(mine, kind) == _count(theirs, kind), kind
        assert _keys(mine, kind) >= _keys(theirs, kind), kind
    assert sorted({kind for kind, _ in mine}) == sorted({kind for kind, _ in theirs})
    mine, theirs = ours.commit_info(), twin.commit_info()
    for key in ("operation", "operationParameters", "isolationLevel", "isBlindAppend", "readVersion"):
        assert mine.get(key) == theirs.get(key), key
    assert mine.get("tags") == theirs.get("tags")
    assert sorted(mine["operationMetrics"]) == sorted(theirs["operationMetrics"])
    for key in ("numRemovedFiles", "numRemovedBytes", "numAddedFiles", "numDeletionVectorsRemoved"):
        assert mine["operationMetrics"][key] == theirs["operationMetrics"][key], key
    assert set(theirs) <= set(mine)
    return metrics


def same_statistics(ours, twin):
    """The statistics that we wrote equal Spark's on the twin, file by file where both have one file a bin."""
    assert _statistics(ours) == _statistics(twin)


def deltalake_reads(table, **storage_options):
    """Rows as the library deltalake reads them, every column decoded."""
    from deltalake import DeltaTable, QueryBuilder

    opened = DeltaTable(str(table), storage_options=storage_options or None)
    return sum(batch.num_rows for batch in QueryBuilder().register("t", opened).execute("SELECT * FROM t"))


def deltalake_rows(table, version=None, **storage_options):
    """All rows as deltalake reads them, in one order: two tables with the same rows give equal results."""
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder
    from deltalake.schema import PrimitiveType

    opened = DeltaTable(str(table), version=version, storage_options=storage_options or None)
    order = [str(number) for number, field in enumerate(opened.schema().fields, start=1) if isinstance(field.type, PrimitiveType)]
    return pa.table(QueryBuilder().register("t", opened).execute(f"SELECT * FROM t ORDER BY {', '.join(order)}"))


def duckdb_reads(table, lakesmith):
    """Physical rows of the live files as DuckDB's own Parquet reader sees them, with every value decoded."""
    import duckdb

    from urllib.parse import unquote

    files = [f"{table}/{unquote(file['path'])}" for file in lakesmith.files(table)]
    if not files:
        return 0
    query = "SELECT count(*), sum(hash(COLUMNS(*))) FROM read_parquet(?, hive_partitioning=false, union_by_name=true)"
    return duckdb.connect().execute(query, [files]).fetchone()[0]


def physical_rows(table, lakesmith):
    """Rows in the footers of the live files."""
    from urllib.parse import unquote

    return sum(parquet.read_metadata(f"{table}/{unquote(file['path'])}").num_rows for file in lakesmith.files(table))


def _count(actions, kind):
    return sum(1 for each, _ in actions if each == kind)


def _keys(actions, kind):
    return set().union(*(body.keys() for each, body in actions if each == kind))


def _statistics(table):
    bodies = [json.loads(body["stats"]) for kind, body in table.commit() if kind == "add"]
    return sorted(bodies, key=lambda stats: json.dumps(stats, sort_keys=True))
