"""A table of very many files, from its log: loading its state (every live file is known), and the health check.

deltalake has no health check; it opens the table and lists every live file, what such a check would start from.
"""

import json
import os

import manyfiles
import measure

FILES = 620_000


class Loading:
    peers = ("lakesmith", "deltalake")
    unit = "files"
    name, command, count = "load", "detail", "numFiles"

    def __init__(self, options):
        files = options.files or FILES
        self.table = os.path.join(options.data, f"manyfiles-{files}")
        facts = measure.made_once(self.table, lambda path: manyfiles.make(path, files))
        self.units = facts["files"]
        self.title = f"{self.name}: a log of {facts['files']:,} files, {facts['log_bytes'] / (1 << 20):,.0f} MiB"

    def once(self, peer):
        if peer == "lakesmith":
            measured, last = measure.timed([os.environ["LAKESMITH_BIN"], self.command, self.table, "--json"])
            found = json.loads(last)[self.count]
        else:
            measured, _ = measure.timed(measure.contestant(peer, "load", self.table))
            found = measured.pop("found")
        if found != self.units:
            raise SystemExit(f"{peer} found {found} of {self.units} files")
        return measured


class Health(Loading):
    name, command, count = "health", "health", "files"
