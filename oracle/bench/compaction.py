"""Compaction of one generated table, each time on a fresh copy."""

import json
import os
import shutil
import subprocess
import sys

import events
import measure

TARGET = 256 << 20
MIB = 1 << 20


class Compaction:
    peers = ("lakesmith", "deltalake", "spark")
    unit = "rows"
    work = "compact"

    def __init__(self, options):
        scale = events.SCALE if options.scale is None else options.scale
        self.table, self.data = os.path.join(options.data, f"events-{scale:g}"), options.data
        facts = measure.made_once(self.table, lambda path: events.make(path, scale))
        self.units = facts["rows"]
        self.title = f"{self.work}: {facts['rows']:,} rows, {facts['files']:,} files, {facts['bytes'] / MIB:,.0f} MiB; target {TARGET // MIB} MiB"

    def once(self, peer):
        """Measures one run on a fresh copy, and checks that it lost no row."""
        copy = measure.fresh_copy(self.table, self.data)
        measured, _ = measure.timed(self.command(peer, copy))
        shape = subprocess.run([sys.executable, os.path.join(measure.HERE, "shape.py"), self.table, copy], capture_output=True, check=True, text=True)
        shutil.rmtree(copy)
        shape = json.loads(shape.stdout)
        if shape.pop("rows_before") != shape["rows"]:
            raise SystemExit(f"{peer} changed the number of rows to {shape['rows']}")
        return {**measured, "files": shape["files"], "bytes": shape["bytes"]}

    def command(self, peer, table):
        if peer == "lakesmith":
            return [os.environ["LAKESMITH_BIN"], "optimize", table, "--target-size", f"{TARGET // MIB}MiB", "--json"]
        return measure.contestant(peer, self.work, table, TARGET)
