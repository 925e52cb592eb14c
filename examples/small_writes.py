#!/usr/bin/env python3
"""What twenty small writes do to a table, and how to keep it fast, small and forgetful.

Compaction, Z-order, liquid clustering, deletion vectors and VACUUM, one after the other, on a table of visits to shops.
Every figure is checked as it is printed.
"""

from warehouse import Warehouse, cut, packed

KIB = 1024

# A visit: which, to which shop, on which day, and what was spent. The shop is as good as random, as it is where
# people arrive in whatever order they like.
VISITS = """
    SELECT id AS visit,
           CAST(hash(id) % 1000 AS INT) AS shop,
           date_add(DATE '2026-03-01', CAST(id % 31 AS INT)) AS day,
           CAST(pmod(xxhash64(id), 10007) AS DOUBLE) / 100 AS spent
    FROM range({start}, {end})
"""
COLUMNS = "visit BIGINT, shop INT, day DATE, spent DOUBLE"
SHOPS_BY_FILE = "SELECT _metadata.file_name AS file, min(shop) AS first, max(shop) AS last FROM {} GROUP BY file ORDER BY first, last"


def shops(lake, table):
    """The lowest and highest shop of each file: what a filter on the shop has to go by."""
    return [(row["first"], row["last"]) for row in lake.sql(SHOPS_BY_FILE.format(table))]


def small_writes(lake):
    print("# Twenty batches, each written by two tasks")
    statements = [f"CREATE TABLE visits ({COLUMNS}) USING delta"]
    for start in range(0, 100_000, 5_000):
        rows = VISITS.format(start=start, end=start + 5_000).replace("SELECT", "SELECT /*+ REPARTITION(2) */", 1)
        statements.append(f"INSERT INTO visits {rows}")
    lake.sql(";".join(statements))
    count = len(lake.sizes("visits"))
    print("files:", count)
    assert count == 40
    assert lake.row("SELECT count(*), count(DISTINCT visit) FROM visits") == (100_000, 100_000)


def compaction(lake):
    print("# OPTIMIZE packs small files into large ones, in one commit")
    # 256 KiB instead of the usual gigabyte, so that the little table gets more than one file.
    target = 256 * KIB
    expected = packed(lake.sizes("visits"), target)
    optimize = f"SET spark.databricks.delta.optimize.maxFileSize = {target}; OPTIMIZE visits"
    metrics = lake.sql(optimize)[-1]["metrics"]
    print("files removed, files added:", metrics["numFilesRemoved"], metrics["numFilesAdded"])
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == expected
    assert expected[0] == 40

    # Nothing is left to pack: the second run does nothing, and no version is made for it.
    version = lake.tool("detail", "visits")["version"]
    again = lake.sql(optimize)[-1]["metrics"]
    assert (again["numFilesRemoved"], again["numFilesAdded"]) == (0, 0)
    assert lake.tool("detail", "visits")["version"] == version

    # A stream that follows the table sees appends alone: the rewrite says of itself that it changed no data.
    changes = lake.tool("history", "visits", "--data-changes")
    assert {commit["operation"] for commit in changes} == {"WRITE"} and len(changes) == 20

    # The files are larger; which rows share one is as before. No filter on the shop spares a file.
    ranges = shops(lake, "visits")
    print("shops by file:", ranges)
    assert all(first < -990 and last > 990 for first, last in ranges)
    assert lake.files_read("SELECT * FROM visits WHERE shop = 42") == len(ranges)
    return target


def z_order(lake):
    print("# ZORDER BY lets rows that are asked for together share files")
    target = 64 * KIB
    expected = cut(lake.sizes("visits"), target)
    lake.sql(f"SET spark.databricks.delta.optimize.maxFileSize = {target}; OPTIMIZE visits ZORDER BY (shop)")
    ranges = shops(lake, "visits")
    print("files:", len(ranges), "of the first four:", ranges[:4])
    assert len(ranges) == expected

    read = lake.files_read("SELECT * FROM visits WHERE shop = 42")
    print("shop 42 reads", read)
    assert 1 <= read <= 2
    # The same for several columns at once; each has less of the order then.
    lake.sql(f"SET spark.databricks.delta.optimize.maxFileSize = {target}; OPTIMIZE visits ZORDER BY (shop, day)")
    both = lake.files_read("SELECT * FROM visits WHERE shop = 42 AND day = DATE '2026-03-09'")
    assert both < len(lake.sizes("visits")) / 2
    assert lake.row("SELECT count(*), count(DISTINCT visit) FROM visits") == (100_000, 100_000)


def liquid_clustering(lake):
    print("# CLUSTER BY: the table itself says what it is ordered by")
    target = 64 * KIB
    rows = VISITS.format(start=0, end=100_000).replace("SELECT", "SELECT /*+ REPARTITION(8) */", 1)
    lake.sql(f"CREATE TABLE clustered ({COLUMNS}) USING delta CLUSTER BY (shop); INSERT INTO clustered {rows}")
    sizes = lake.sizes("clustered")
    assert len(sizes) == 8
    settings = f"SET spark.databricks.delta.optimize.maxFileSize = {target};"
    added = lake.sql(f"{settings} OPTIMIZE clustered")[-1]["metrics"]["numFilesAdded"]
    print("files:", added, "of the first three:", shops(lake, "clustered")[:3])
    assert added == cut(sizes, target)
    assert lake.files_read("SELECT * FROM clustered WHERE shop = 42") <= 2

    (detail,) = lake.sql("DESCRIBE DETAIL clustered")
    print(detail["clusteringColumns"], detail["tableFeatures"])
    assert detail["clusteringColumns"] == ["shop"]
    assert sorted(detail["tableFeatures"]) == ["appendOnly", "clustering", "domainMetadata", "invariants"]

    # Other columns from now on. What lies there stays as it is until FULL asks for it.
    lake.sql("ALTER TABLE clustered CLUSTER BY (day, shop)")
    assert lake.sql(f"{settings} OPTIMIZE clustered")[-1]["metrics"]["numFilesRemoved"] == 0
    full = lake.sql(f"{settings} OPTIMIZE clustered FULL")[-1]["metrics"]
    assert full["numFilesRemoved"] == added
    assert lake.files_read("SELECT * FROM clustered WHERE day = DATE '2026-03-09'") < full["numFilesAdded"] / 2
    assert lake.row("SELECT count(*), count(DISTINCT visit) FROM clustered") == (100_000, 100_000)

    # A table has one order. Z-order on top of clustering is refused.
    refused = lake.refusal("OPTIMIZE clustered ZORDER BY (spent)")
    print("ZORDER BY on it:", refused)
    assert refused == "DELTA_CLUSTERING_WITH_ZORDER_BY"


def deletion_vectors(lake):
    print("# A deletion vector marks rows; no file is rewritten for them")
    lake.sql("""
        CREATE TABLE notes (id BIGINT, note STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
        INSERT INTO notes SELECT /*+ COALESCE(1) */ id, CAST(id AS STRING) FROM range(1000)
    """)
    (answer,) = lake.sql("DELETE FROM notes WHERE id < 10")
    assert answer == {"num_affected_rows": 10}
    metrics = lake.tool("history", "notes", "--limit", "1")[0]["operationMetrics"]
    wanted = {name: metrics[name] for name in ("numDeletionVectorsAdded", "numRemovedFiles", "numCopiedRows")}
    print(wanted)
    assert wanted == {"numDeletionVectorsAdded": "1", "numRemovedFiles": "0", "numCopiedRows": "0"}
    assert len(lake.sizes("notes")) == 1
    (rows,) = lake.row("SELECT count(*) FROM notes")
    print("rows:", rows)
    assert rows == 990

    # The rows are out of sight, not out of the file: an earlier version still has them. Whoever has to erase them
    # rewrites the file and then lets VACUUM take the old one.
    assert lake.row("SELECT count(*) FROM notes VERSION AS OF 1 WHERE id < 10") == (10,)
    lake.sql("REORG TABLE notes APPLY (PURGE)")
    lake.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false; VACUUM notes RETAIN 0 HOURS")
    gone = lake.refusal("SELECT sum(id) FROM notes VERSION AS OF 1")
    assert gone == "FAILED_READ_FILE.FILE_NOT_EXIST"
    assert lake.row("SELECT count(*), min(id) FROM notes") == (990, 10)


def vacuum(lake):
    print("# VACUUM deletes what no version within the retention needs")
    needless = lake.sql("VACUUM visits DRY RUN")
    print("would delete:", len(needless))
    assert needless == []
    refused = lake.refusal("VACUUM visits RETAIN 0 HOURS")
    print("RETAIN 0 HOURS:", refused)
    assert refused == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"

    # The check can be switched off. Only a lesson does so: whoever is reading an earlier version, or is about to
    # commit what they have written, loses files under their hands.
    removed = sum(int(c["operationMetrics"]["numRemovedFiles"]) for c in lake.tool("history", "visits") if c["operation"] == "OPTIMIZE")
    off = "SET spark.databricks.delta.retentionDurationCheck.enabled = false;"
    planned = lake.sql(f"{off} VACUUM visits RETAIN 0 HOURS DRY RUN")[1:]
    assert len(planned) == removed
    lake.sql(f"{off} VACUUM visits RETAIN 0 HOURS")
    ended = lake.tool("history", "visits", "--limit", "1")[0]
    print("deleted:", ended["operationMetrics"]["numDeletedFiles"])
    assert (ended["operation"], ended["operationMetrics"]["numDeletedFiles"]) == ("VACUUM END", str(removed))

    # A bare count comes from the log and needs no file; it proves nothing about an old version.
    assert lake.row("SELECT count(*) FROM visits VERSION AS OF 20") == (100_000,)
    gone = lake.refusal("SELECT * FROM visits VERSION AS OF 20")
    print("version 20:", gone)
    assert gone == "FAILED_READ_FILE.FILE_NOT_EXIST"
    assert lake.refusal("RESTORE TABLE visits TO VERSION AS OF 20")
    (rows,) = lake.row("SELECT count(*) FROM visits")
    print("rows now:", rows)
    assert rows == 100_000


if __name__ == "__main__":
    with Warehouse() as lake:
        small_writes(lake)
        compaction(lake)
        z_order(lake)
        liquid_clustering(lake)
        deletion_vectors(lake)
        vacuum(lake)
