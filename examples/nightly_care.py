#!/usr/bin/env python3
"""From a slow table to a nightly job: look first, then compact, order, partition, vacuum.

Payments of people, partitioned by day. Each step asks how many files a query opens, before and after.
"""

from warehouse import Warehouse, cut, packed

KIB = 1024
DAYS = 6
PAYMENTS = """
    SELECT CAST(concat('u_', lpad(CAST(pmod(hash(id), 2000) AS STRING), 4, '0')) AS STRING) AS user,
           concat('p_', CAST(xxhash64(id) AS STRING)) AS payment,
           CAST(pmod(xxhash64(id), 9973) AS DECIMAL(10, 2)) AS amount,
           CASE pmod(id, 3) WHEN 0 THEN 'new' WHEN 1 THEN 'paid' ELSE 'void' END AS state,
           date_add(DATE '2026-05-01', {day}) AS day
    FROM range({start}, {end})
"""
COLUMNS = "user STRING, payment STRING, amount DECIMAL(10, 2), state STRING, day DATE"
ONE_USER = "SELECT sum(amount) FROM payments WHERE user = 'u_0821' AND day >= DATE '2026-05-04'"


def neglected(lake):
    """A table as it is after some days of small writes: six a day, each of two files."""
    lake.sql(f"CREATE TABLE payments ({COLUMNS}) USING delta PARTITIONED BY (day)")
    batch, statements = 2_000, []
    for number in range(DAYS * 6):
        rows = PAYMENTS.format(day=number // 6, start=number * batch, end=(number + 1) * batch)
        statements.append("INSERT INTO payments " + rows.replace("SELECT", "SELECT /*+ REPARTITION(2) */", 1))
    lake.sql(";".join(statements))


def diagnosis(lake):
    print("# Look before you optimize")
    (detail,) = lake.sql("DESCRIBE DETAIL payments")
    files, size = detail["numFiles"], detail["sizeInBytes"]
    print(f"files: {files}, {size} bytes, {size / files / KIB:.0f} KiB a file")
    assert files == DAYS * 12 and detail["partitionColumns"] == ["day"]
    health = lake.tool("health", "payments")
    for finding in health["findings"]:
        print(finding["severity"], finding["id"], "->", finding.get("command"))
    assert "small-files" in {finding["id"] for finding in health["findings"]}


def recent_partitions(lake):
    print("# Pack what is recent; the rest was packed last week")
    optimize = "OPTIMIZE payments WHERE day >= '2026-05-05'"
    metrics = lake.sql(optimize)[0]["metrics"]
    print("partitions, removed, added:", metrics["partitionsOptimized"], metrics["numFilesRemoved"], metrics["numFilesAdded"])
    assert (metrics["partitionsOptimized"], metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (2, 24, 2)
    rest = lake.sql("OPTIMIZE payments")[0]["metrics"]
    assert (rest["numFilesRemoved"], rest["numFilesAdded"]) == (48, 4)
    # Only partition columns may say which files are meant.
    refused = lake.refusal("OPTIMIZE payments WHERE user = 'u_0821'")
    print("WHERE user = …:", refused)
    assert refused == "DELTA_NON_PARTITION_COLUMN_REFERENCE"


def ordered(lake):
    print("# Z-order by who, inside the partitions of when")
    target = 48 * KIB
    expected = sum(max(1, size // target) for size in lake.sizes("payments"))
    total = lake.row(ONE_USER)
    settings = f"SET spark.databricks.delta.optimize.maxFileSize = {target};"
    lake.sql(f"{settings} OPTIMIZE payments ZORDER BY (user, payment)")
    files = len(lake.sizes("payments"))
    read = lake.files_read(ONE_USER)
    print(f"one user, last three days: {read} of {files} files")
    assert files == expected and lake.row(ONE_USER) == total
    # Days that are not asked for are skipped as whole partitions, users by the ranges in the log.
    explained = lake.tool("explain", "payments", "--where", "user = 'u_0821' AND day >= DATE '2026-05-04'")
    skipped = explained["skipped"]
    print("skipped:", skipped)
    assert skipped["partition"] == files // 2 and skipped["stats"] == files - files // 2 - read > 0
    # A partition column is no column to order by: within a partition it has one value.
    refused = lake.refusal("OPTIMIZE payments ZORDER BY (user, day)")
    print("ZORDER BY (user, day):", refused)
    assert refused == "DELTA_ZORDERING_ON_PARTITION_COLUMN"
    assert lake.refusal("OPTIMIZE payments ZORDER BY (nobody)") == "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"


def partitions(lake):
    print("# Partitions by year, month and day: coarse questions stay cheap, and days can be named")
    lake.sql("""
        CREATE TABLE by_date (user STRING, amount DECIMAL(10, 2), year INT, month INT, day DATE) USING delta
        PARTITIONED BY (year, month, day);
        INSERT INTO by_date SELECT user, amount, year(day), month(day), day FROM payments
    """)
    files = len(lake.sizes("by_date"))
    read = lake.files_read("SELECT * FROM by_date WHERE day >= DATE '2026-05-05'")
    print(f"two days: {read} of {files} files")
    assert (read * DAYS, files % DAYS) == (files * 2, 0)
    metrics = lake.sql("OPTIMIZE by_date WHERE day >= DATE '2026-05-05' ZORDER BY (user)")[0]["metrics"]
    assert metrics["partitionsOptimized"] == 2
    assert lake.row("SELECT count(*), sum(amount) FROM by_date") == lake.row("SELECT count(*), sum(amount) FROM payments")


def statistics(lake):
    print("# The first 32 columns have statistics; a filter on the 33rd reads everything")
    noise = [f"c{number}" for number in range(32)]
    lake.sql(f"CREATE TABLE wide ({', '.join(f'{name} INT' for name in noise)}, region STRING) USING delta")
    for region in ("east", "north", "south", "west"):
        lake.sql(f"INSERT INTO wide SELECT {', '.join('1' for _ in noise)}, '{region}' FROM range(10)")
    query = "SELECT * FROM wide WHERE region = 'north'"
    before = lake.files_read(query)
    # Say which columns are filtered by. Files that are there get their statistics when they are rewritten.
    lake.sql("ALTER TABLE wide SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'region,c0')")
    lake.sql("INSERT OVERWRITE wide SELECT * FROM wide WHERE region = 'north'")
    for region in ("east", "south", "west"):
        lake.sql(f"INSERT INTO wide SELECT {', '.join('1' for _ in noise)}, '{region}' FROM range(10)")
    after = lake.files_read(query)
    print("files read before and after:", before, after)
    assert (before, after) == (4, 1)
    lake.sql("ALTER TABLE wide SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '32', 'delta.columnMapping.mode' = 'name')")
    assert lake.row(query.replace("*", "count(*)")) == (10,)
    assert lake.refusal("OPTIMIZE wide ZORDER BY (c5)") == "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"
    # Bloom filter indexes are not part of open Delta; for one payment among many, order by it as well.
    refused = lake.refusal("CREATE BLOOMFILTER INDEX ON TABLE payments FOR COLUMNS (payment OPTIONS (fpp = 0.1))")
    print("CREATE BLOOMFILTER INDEX:", refused)
    assert refused == "PARSE_SYNTAX_ERROR"


def writers(lake):
    print("# Properties that other writers heed: larger files at once, and compaction after a write")
    lake.sql("""
        ALTER TABLE payments SET TBLPROPERTIES
            ('delta.autoOptimize.optimizeWrite' = 'true', 'delta.autoOptimize.autoCompact' = 'true')
    """)
    shown = lake.sql("SHOW TBLPROPERTIES payments ('delta.autoOptimize.autoCompact')")
    assert shown[0]["value"] == "true"
    assert lake.refusal("ALTER TABLE payments SET TBLPROPERTIES ('delta.nope' = '1')") == "DELTA_UNKNOWN_CONFIGURATION"


def nightly(lake):
    print("# Every night, every table: look, pack and order what is recent, vacuum")
    tables = {
        "payments": ("user, payment", 168),
        "by_date": ("user", 336),
    }
    for table, (order, hours) in tables.items():
        (before,) = lake.sql(f"DESCRIBE DETAIL {table}")
        rows = lake.row(f"SELECT count(*), sum(amount) FROM {table}")
        lake.sql(f"OPTIMIZE {table} WHERE day >= date_sub(DATE '2026-05-06', 3) ZORDER BY ({order})")
        # First see what would go, then let it go. The files of tonight stay for as long as the retention says.
        assert lake.sql(f"VACUUM {table} RETAIN {hours} HOURS DRY RUN") == []
        lake.sql(f"VACUUM {table} RETAIN {hours} HOURS")
        (after,) = lake.sql(f"DESCRIBE DETAIL {table}")
        print(f"{table}: {before['numFiles']} files, then {after['numFiles']}")
        assert after["numFiles"] <= before["numFiles"]
        assert lake.row(f"SELECT count(*), sum(amount) FROM {table}") == rows


if __name__ == "__main__":
    with Warehouse() as lake:
        neglected(lake)
        diagnosis(lake)
        recent_partitions(lake)
        ordered(lake)
        partitions(lake)
        statistics(lake)
        writers(lake)
        nightly(lake)
