#!/usr/bin/env python3
"""Two million orders, loaded once an hour into two tables alike, but for the clustering of one.

How many files does a question about one customer open: after the day, and after OPTIMIZE? And what does a VACUUM
that takes everything leave of the versions before?
"""

from decimal import Decimal

from warehouse import Warehouse, cut, packed

MIB = 1024 * 1024
TARGET = 2 * MIB
HOURS = 24

ORDERS = """
    CREATE TEMPORARY VIEW orders AS
    SELECT id AS number, id % 50000 AS customer, CAST((id % 9000) / 100 AS DECIMAL(10, 2)) AS price
    FROM range(2000000)
"""
COLUMNS = "number BIGINT, customer BIGINT, price DECIMAL(10, 2)"
TABLES = {"plain": "", "clustered": "CLUSTER BY (customer)"}
ALL = (2_000_000, "89920000.00")


def load(lake, table, layout):
    """A day of orders: every hour an append, and each is written by four tasks."""
    statements = [ORDERS, f"CREATE TABLE {table} ({COLUMNS}) USING delta {layout}"]
    for hour in range(HOURS):
        statements.append(f"INSERT INTO {table} SELECT /*+ REPARTITION(4) */ * FROM orders WHERE number % {HOURS} = {hour}")
    lake.sql(";".join(statements))


def report(lake, table, when):
    """How many files there are, and how many of them somebody opens who asks for one customer."""
    (detail,) = lake.sql(f"DESCRIBE DETAIL {table}")
    read = lake.files_read(f"SELECT * FROM {table} WHERE customer = 42")
    print(f"{table:10} {when:15} {detail['numFiles']:3} files, customer 42 reads {read}")
    # The same from the log alone, for people who have a condition and no query.
    explained = lake.tool("explain", table, "--where", "customer = 42")
    assert (explained["files"], explained["read_files"]) == (detail["numFiles"], read)
    return detail["numFiles"], read


def compacted(lake, table):
    """OPTIMIZE, and how many files should come of it."""
    sizes = lake.sizes(table)
    lake.sql(f"SET spark.databricks.delta.optimize.maxFileSize = {TARGET}; OPTIMIZE {table}")
    if TABLES[table]:
        return cut(sizes, TARGET)
    taken, made = packed(sizes, TARGET)
    return len(sizes) - taken + made


def old_files(lake):
    """What a VACUUM without any retention takes along."""
    needless = lake.sql("VACUUM clustered DRY RUN")
    print("older than the retention:", len(needless))
    assert needless == []

    off = "SET spark.databricks.delta.retentionDurationCheck.enabled = false;"
    lake.sql(f"{off} VACUUM clustered RETAIN 0 HOURS")
    ended = lake.tool("history", "clustered", "--limit", "1")[0]["operationMetrics"]
    print(f"deleted: {ended['numDeletedFiles']} files in {ended['numVacuumedDirectories']} folder")
    assert (ended["numDeletedFiles"], ended["numVacuumedDirectories"]) == ("96", "1")

    before = f"clustered VERSION AS OF {HOURS}"
    (count,) = lake.row(f"SELECT count(*) FROM {before}")
    refused = lake.refusal(f"SELECT sum(price) FROM {before}")
    print(f"version {HOURS}: {count} rows says the log; the sum: {refused}")
    assert (count, refused) == (2_000_000, "FAILED_READ_FILE.FILE_NOT_EXIST")
    # Whoever wants to know which versions can still be read whole asks for that.
    readable = lake.tool("history", "clustered", "--readable")
    assert [v["version"] for v in readable if v["readable"]] == [HOURS + 3, HOURS + 2, HOURS + 1, 0]
    now = lake.row("SELECT count(*), sum(price) FROM clustered")
    print("now:", now)
    assert now == ALL


if __name__ == "__main__":
    with Warehouse() as lake:
        for table, layout in TABLES.items():
            load(lake, table, layout)
        for table in TABLES:
            # Each order came when it came: every file has orders of all customers, and none can be skipped.
            assert report(lake, table, "after the day") == (96, 96)
            assert lake.row(f"SELECT count(*), sum(price) FROM {table}") == ALL
            expected = compacted(lake, table)
            files, read = report(lake, table, "after OPTIMIZE")
            assert files == expected
            # Packing makes files fewer. Clustering makes them different: one holds all of customer 42.
            assert read == (1 if TABLES[table] else files)
            (total,) = lake.row(f"SELECT sum(price) FROM {table} WHERE customer = 42")
            assert Decimal(total) == sum(Decimal(n % 9000) / 100 for n in range(42, 2_000_000, 50_000))
            # To run it again is free.
            assert compacted(lake, table) >= 1 and report(lake, table, "once more") == (files, read)
        old_files(lake)
