"""A deterministic table of events in arrival order: many small appends, as a stream leaves them behind.

Rows, file names and times follow from the position alone, so two machines make the same table.
"""

import json
import os
import shutil
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# Of 10 million rows in 2,000 files.
SCALE = 0.1
ROWS_A_FILE = 5000
FILES_A_COMMIT = 10
FIRST_EVENT_US = 1_704_067_200_000_000
FIRST_COMMIT_MS = 1_735_689_600_000
DAY_US = 86_400_000_000

KINDS = ["page_view", "click", "scroll", "search", "add_to_cart", "checkout", "purchase", "login", "logout", "error"]
KIND_SHARES = np.array([40, 20, 12, 9, 6, 4, 3, 3, 2, 1]) / 100
COUNTRIES = [f"{chr(65 + n // 26)}{chr(65 + n * 7 % 26)}" for n in range(60)]
AGENTS = [f"Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Client/{n % 40}.{n % 7} Build/{n:04d}{'r' * (n % 13)}" for n in range(200)]
LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)


def make(root, scale):
    """Writes the table at `root` (10 million rows at scale 1) and says what it holds."""
    files = max(20, int(2000 * scale))
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(f"{root}/_delta_log")
    total, size = files * ROWS_A_FILE, 0
    schema = rows(0, 1, total).schema
    commit(root, 0, creation(schema, []))
    for version, first in enumerate(range(0, files, FILES_A_COMMIT), start=1):
        adds = []
        for number in range(first, min(first + FILES_A_COMMIT, files)):
            start = number * ROWS_A_FILE
            table = rows(start, start + ROWS_A_FILE, total)
            name = f"part-{number % FILES_A_COMMIT:05d}-{_uuid(number)}-c000.snappy.parquet"
            pq.write_table(table, f"{root}/{name}", compression="snappy")
            bytes_ = os.stat(f"{root}/{name}").st_size
            size += bytes_
            adds.append(_add(name, bytes_, version, table))
        commit(root, version, adds)
    return {"rows": total, "files": files, "bytes": size}


def rows(start, end, total, days=30):
    """Rows start..end of the stream; `event_ts` lags arrival a little, 2 % of it by up to three days."""
    random = np.random.Generator(np.random.PCG64([20240101, start]))
    n = end - start
    position = np.arange(start, end, dtype=np.int64)
    arrival = FIRST_EVENT_US + position * (days * DAY_US // total)
    lag = random.exponential(90e6, n)
    late = random.random(n) < 0.02
    lag[late] = random.random(late.sum()) * 3 * DAY_US
    happened = np.maximum(FIRST_EVENT_US, arrival - lag.astype(np.int64))
    customer = np.minimum((random.pareto(1.3, n) * 4000).astype(np.int64), 499_999)
    micros = pa.timestamp("us", tz="UTC")
    geo = pa.StructArray.from_arrays(
        [pa.array(random.uniform(-60, 70, n)), pa.array(random.uniform(-180, 180, n))], names=["lat", "lon"]
    )
    item = pa.array(random.integers(0, 200_000, n)).cast(pa.string())
    return pa.table({
        "event_id": position,
        "customer_id": customer,
        "session_id": text(random, n, 16, LETTERS[:16]),
        "device_id": random.integers(0, 100_000, n, dtype=np.int32),
        "event_ts": pa.array(happened).cast(micros),
        "ingest_ts": pa.array(arrival).cast(micros),
        "event_date": pa.array((happened // DAY_US).astype(np.int32)).cast(pa.date32()),
        "event_type": _choice(KINDS, random.choice(len(KINDS), n, p=KIND_SHARES)),
        "country": _choice(COUNTRIES, np.minimum(random.geometric(0.12, n), 60) - 1),
        "url": pc.binary_join_element_wise("/shop/item/", item, ""),
        "user_agent": _choice(AGENTS, random.integers(0, len(AGENTS), n)),
        "price": np.round(random.lognormal(3, 1, n), 2),
        "quantity": random.integers(1, 10, n, dtype=np.int32),
        "duration_ms": pa.array(random.integers(1, 600_000, n, dtype=np.int32), mask=random.random(n) < 0.1),
        "score": pa.array(random.normal(50, 15, n), mask=random.random(n) < 0.2),
        "is_mobile": random.random(n) < 0.6,
        "geo": geo,
        "amount": _decimals(random.integers(0, 1_000_000, n)),
        "payload": text(random, n, 60, LETTERS),
    })


def text(random, n, width, letters):
    """Strings of one width, made of these letters."""
    data = letters[random.integers(0, len(letters), size=(n, width), dtype=np.uint8)]
    offsets = np.arange(0, (n + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes()))


def _choice(values, index):
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pa.array(values)).cast(pa.string())


def _decimals(cents):
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


# The log, by hand.

NAMES = {pa.int64(): "long", pa.int32(): "integer", pa.float64(): "double", pa.string(): "string", pa.bool_(): "boolean", pa.date32(): "date"}


def _type(kind):
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(field) for field in kind]}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "timestamp" if pa.types.is_timestamp(kind) else NAMES[kind]


def _field(field):
    return {"name": field.name, "type": _type(field.type), "nullable": True, "metadata": {}}


def creation(schema, partition_columns):
    """Protocol and metadata of a new table."""
    text = json.dumps({"type": "struct", "fields": [_field(field) for field in schema]})
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": _uuid("table"), "format": {"provider": "parquet", "options": {}}, "schemaString": text,
                      "partitionColumns": partition_columns, "configuration": {}, "createdTime": FIRST_COMMIT_MS}},
    ]


def _add(name, size, version, table):
    stats = {"numRecords": table.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in ("event_id", "customer_id", "device_id", "quantity"):
        bounds = pc.min_max(table[column])
        stats["minValues"][column], stats["maxValues"][column] = bounds["min"].as_py(), bounds["max"].as_py()
        stats["nullCount"][column] = table[column].null_count
    return {"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": _moment(version),
                    "dataChange": True, "stats": json.dumps(stats)}}


def commit(root, version, actions):
    """Writes a commit of these actions. Gives its file's path."""
    info = {"timestamp": _moment(version), "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    path = f"{root}/_delta_log/{version:020d}.json"
    with open(path, "w", encoding="utf-8") as file:
        for action in [{"commitInfo": info}, *actions]:
            file.write(json.dumps(action, separators=(",", ":")) + "\n")
    return path


def _moment(version):
    return FIRST_COMMIT_MS + version * 60_000


def _uuid(key):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"lakesmith/events/{key}"))
