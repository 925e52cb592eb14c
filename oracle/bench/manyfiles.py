"""The log of a table of very many files, without the files: one classic checkpoint and a few commits after it.

Statistics take about 480 bytes a file, partitions are days. Everything follows from a file's number.
"""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import events

HEXADECIMAL = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
CHUNK = 100_000
DAYS = 730
TAIL_COMMITS, TAIL_FILES = 5, 20
CHECKPOINT_VERSION = 62
# Spark's row groups hold about 128 MiB, which is so many files.
ROW_GROUP = 250_000

COLUMNS = pa.schema([("id", pa.int64()), ("customer_id", pa.int64()), ("event_ts", pa.timestamp("us", tz="UTC")), ("event_type", pa.string()),
                     ("country", pa.string()), ("price", pa.float64()), ("quantity", pa.int32()), ("payload", pa.string()), ("date", pa.date32())])
TEXT_MAP = pa.map_(pa.string(), pa.string())
ADD = pa.struct([("path", pa.string()), ("partitionValues", TEXT_MAP), ("size", pa.int64()), ("modificationTime", pa.int64()),
                 ("dataChange", pa.bool_()), ("stats", pa.string()), ("tags", TEXT_MAP)])
REMOVE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
METADATA = pa.struct([("id", pa.string()), ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])), ("schemaString", pa.string()),
                      ("partitionColumns", pa.list_(pa.string())), ("configuration", TEXT_MAP), ("createdTime", pa.int64())])
PROTOCOL = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
TRANSACTION = pa.struct([("appId", pa.string()), ("version", pa.int64())])
CHECKPOINT = pa.schema([("txn", TRANSACTION), ("add", ADD), ("remove", REMOVE), ("metaData", METADATA), ("protocol", PROTOCOL)])


def make(root, files):
    """Writes the log at `root` and says what it holds."""
    tail = TAIL_COMMITS * TAIL_FILES
    if files <= tail:
        raise SystemExit(f"a table of many files has more than {tail}")
    shutil.rmtree(root, ignore_errors=True)
    log = f"{root}/_delta_log"
    os.makedirs(log)
    protocol, metadata = events.creation(COLUMNS, ["date"])
    name = f"{log}/{CHECKPOINT_VERSION:020d}.checkpoint.parquet"
    with pq.ParquetWriter(name, CHECKPOINT, compression="snappy") as writer:
        writer.write_table(_actions(1, protocol=_row(PROTOCOL, protocol["protocol"]), metaData=_row(METADATA, metadata["metaData"])))
        for start in range(0, files - tail, ROW_GROUP):
            end = min(start + ROW_GROUP, files - tail)
            chunks = [adds(first, min(first + CHUNK, end)) for first in range(start, end, CHUNK)]
            writer.write_table(pa.concat_tables([_actions(len(chunk), add=chunk) for chunk in chunks]), row_group_size=ROW_GROUP)
    with open(f"{log}/_last_checkpoint", "w", encoding="utf-8") as file:
        json.dump({"version": CHECKPOINT_VERSION, "size": files - tail + 2}, file)
    events.commit(root, CHECKPOINT_VERSION, [])
    for number in range(TAIL_COMMITS):
        start = files - tail + number * TAIL_FILES
        bodies = adds(start, start + TAIL_FILES).to_pylist()
        added = [{"add": {**body, "partitionValues": dict(body["partitionValues"]), "tags": None}} for body in bodies]
        events.commit(root, CHECKPOINT_VERSION + 1 + number, added)
    return {"files": files, "log_bytes": sum(entry.stat().st_size for entry in os.scandir(log))}


def adds(start, end):
    """The actions of the files start..end."""
    count, number = end - start, np.arange(start, end, dtype=np.int64)
    random = np.random.Generator(np.random.PCG64([7, start]))
    rows, low = random.integers(1000, 9000, count), random.integers(0, 250_000, count)
    high = low + random.integers(1000, 250_000, count)
    day = pa.array((number % DAYS + 19_358).astype(np.int32)).cast(pa.date32()).cast(pa.string())
    key, country = _digits(number, 8), pa.array(events.COUNTRIES)
    stats = _joined(
        '{"numRecords":', rows,
        ',"minValues":{"id":', number * 9000, ',"customer_id":', low, ',"event_ts":"', day, 'T00:00:0', number % 10, '.000Z","event_type":"add_to_cart","country":"',
        country.take(pa.array(number % 30)), '","price":1.25,"quantity":1,"payload":"A', key, "x" * 20,
        '"},"maxValues":{"id":', number * 9000 + rows, ',"customer_id":', high, ',"event_ts":"', day, 'T23:59:5', number % 10, '.000Z","event_type":"search","country":"',
        country.take(pa.array(30 + number % 30)), '","price":999.99,"quantity":9,"payload":"z', key, "x" * 20,
        '"},"nullCount":{' + ",".join(f'"{name}":0' for name in COLUMNS.names if name != "date") + "}}",
    )
    identity = [events.text(random, count, width, HEXADECIMAL) for width in (8, 4, 4, 4, 12)]
    path = _joined("date=", day, "/part-", _digits(number % 200, 5), "-", *sum(([part, "-"] for part in identity), [])[:-1], ".c000.snappy.parquet")
    values = pa.MapArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32)), pa.array(["date"]).take(pa.array(np.zeros(count, dtype=np.int32))), day)
    return pa.StructArray.from_arrays(
        [path, values, pa.array(random.integers(200_000, 2_000_000, count)), pa.array(np.full(count, events.FIRST_COMMIT_MS)),
         pa.array(np.ones(count, dtype=bool)), stats, pa.nulls(count, TEXT_MAP)],
        fields=list(ADD),
    )


def _actions(count, **columns):
    return pa.table({field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in CHECKPOINT}, schema=CHECKPOINT)


def _row(kind, body):
    body = {key: list(value.items()) if isinstance(value, dict) and key != "format" else value for key, value in body.items()}
    if "format" in body:
        body["format"] = {"provider": "parquet", "options": []}
    return pa.array([body], kind)


def _digits(numbers, width):
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _joined(*parts):
    arrays = [part if isinstance(part, (str, pa.Array)) else pa.array(part).cast(pa.string()) for part in parts]
    return pc.binary_join_element_wise(*arrays, "")
