"""Runs `lakesmith` on a warehouse that lasts as long as a lesson."""

import json
import math
import os
import shutil
import subprocess
import tempfile


class Refused(Exception):
    """What the tool did not do: the class of the error and its message."""

    def __init__(self, error):
        super().__init__(f"[{error.get('class')}] {error['message']}")
        self.error_class = error.get("class")


class Warehouse:
    """A folder for tables, and the tool to work on them.

    The binary is the one that LAKESMITH_BIN names, or the `lakesmith` on the PATH.
    """

    def __enter__(self):
        self.binary = os.environ.get("LAKESMITH_BIN", "lakesmith")
        self.folder = tempfile.mkdtemp(prefix="lakesmith-lesson-")
        return self

    def __exit__(self, *failure):
        shutil.rmtree(self.folder)

    def run(self, *words):
        """A command line with `--json`: what it prints on standard output, and what on standard error."""
        command = [self.binary, "--warehouse", self.folder, *words, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith('{"error"')]
            raise Refused(json.loads(errors[-1])["error"] if errors else {"message": done.stderr})
        return done.stdout, done.stderr

    def tool(self, *words):
        """The document that a command gives."""
        return json.loads(self.run(*words)[0])

    def sql(self, statements):
        """The rows of statements that run in one session, each a dict."""
        return [json.loads(line) for line in self.run("sql", statements)[0].splitlines()]

    def row(self, query):
        """The values of the only row of a query."""
        (row,) = self.sql(query)
        return tuple(row.values())

    def refusal(self, statements):
        """The class of the error with which statements fail, as they have to."""
        try:
            self.sql(statements)
        except Refused as refused:
            return refused.error_class
        raise AssertionError(f"this was not refused: {statements}")

    def sizes(self, table):
        """The sizes of a table's files in bytes."""
        return [file["size"] for file in self.tool("files", table)]

    def files_read(self, query):
        """How many data files a query has to open."""
        quoted = query.replace("'", "''")
        return self.row(f"SELECT count(*) FROM input_files('{quoted}')")[0]


def packed(sizes, most):
    """How many files compaction takes away and makes: small ones first, into a file as long as they fit.

    A file that is left alone in its bin stays as it is.
    """
    bins, room = [], 0
    for size in sorted(sizes):
        if not bins or size > room:
            bins.append(0)
            room = most
        bins[-1] += 1
        room -= size
    shared = [count for count in bins if count > 1]
    return sum(shared), len(shared)


def cut(sizes, most):
    """How many files of about `most` bytes an ordered rewrite makes."""
    return max(1, math.floor(sum(sizes) / most))
