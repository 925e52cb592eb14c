"""A table in a bucket among very many objects that no version of it names.

The objects are not uploaded, which would take hours: the S3 server (SeaweedFS) loads a dump of its own kind that describes
them. A dump is a row of messages, each after its length: folder, name, times, and the content itself.

# Source
SeaweedFS, weed/pb/filer.proto: FullEntry, Entry, FuseAttributes.
"""

import hashlib
import json
import os
import struct
import sys

import pyarrow as pa

import events
import measure

sys.path += [os.path.join(measure.HERE, ".."), os.path.join(measure.HERE, "..", "tests")]
import bucket  # noqa: E402
import services  # noqa: E402

BODY = b"x" * 64


def make(lake, ports, table, objects, folders, modified, work):
    """Puts the table's log into the bucket, and loads so many objects, last modified at `modified` (seconds).

    They are spread over so many folders; without any they lie beside the log.
    """
    actions = events.creation(pa.schema([("id", pa.int64())]), [])
    text = "".join(json.dumps(action) + "\n" for action in actions)
    lake.client.put_object(Bucket=bucket.NAME, Key=f"{table}/_delta_log/{0:020d}.json", Body=text.encode())
    path = os.path.join(work, "objects.meta")
    attributes = number(1, len(BODY)) + number(2, modified) + number(3, 0o660) + number(6, modified) + text_of(14, hashlib.md5(BODY).digest())
    rest = text_of(4, attributes) + text_of(9, BODY)
    with open(path, "wb") as file:
        for each in range(objects):
            folder = f"/buckets/{bucket.NAME}/{table}" + (f"/folder-{each % folders:03d}" if folders else "")
            entry = text_of(1, f"part-{each:08d}.parquet".encode()) + rest
            message = text_of(1, folder.encode()) + text_of(2, entry)
            file.write(struct.pack(">I", len(message)) + message)
    services.load_entries(ports, path)
    os.remove(path)


def number(field, value):
    """A field of a message that is a number."""
    return varint(field << 3) + varint(value)


def text_of(field, value):
    """A field of a message that is text, bytes or a message."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
