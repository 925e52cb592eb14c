"""The health check of a table of very many files, from its log: sizes, partitions, findings.

deltalake has no health check; it opens the table and lists every live file's size and partition, what such a check
would start from.
"""

import json
import os

import manyfiles
import measure


class Health:
    peers = ("lakesmith", "deltalake")
    unit = "files"

    def __init__(self, options):
        self.table = os.path.join(options.data, f"manyfiles-{options.files}")
        facts = measure.made_once(self.table, lambda path: manyfiles.make(path, options.files))
        self.units = facts["files"]
        self.title = f"health: a log of {facts['files']:,} files, {facts['log_bytes'] / (1 << 20):,.0f} MiB"

    def once(self, peer):
        if peer == "lakesmith":
            measured, last = measure.timed([os.environ["LAKESMITH_BIN"], "health", self.table, "--json"])
            found = json.loads(last)["files"]
        else:
            measured, _ = measure.timed(measure.contestant(peer, "load", self.table))
            found = measured.pop("found")
        if found != self.units:
            raise SystemExit(f"{peer} found {found} of {self.units} files")
        return measured
