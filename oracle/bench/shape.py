"""Rows, files and bytes of a table before and after: shape.py BEFORE AFTER.

A process of its own: what a parent holds in memory counts as a child's peak, and would hide a small program's.
"""

import json
import sys

import pyarrow as pa
from deltalake import DeltaTable


def shape(path):
    adds = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    return adds.num_rows, sum(adds["size_bytes"].to_pylist()), sum(adds["num_records"].to_pylist())


if __name__ == "__main__":
    before, after = shape(sys.argv[1]), shape(sys.argv[2])
    print(json.dumps({"files": after[0], "bytes": after[1], "rows": after[2], "rows_before": before[2]}))
