"""Running the lakesmith command line tool."""

import json
import os
import subprocess


class Failed(Exception):
    """The tool's own error: exit code and the document on standard error."""

    def __init__(self, code, stderr):
        super().__init__(f"exit code {code}: {stderr}")
        self.code = code
        lines = [line for line in stderr.splitlines() if line.startswith('{"error"')]
        self.error = json.loads(lines[-1])["error"] if lines else {}

    @property
    def error_class(self):
        return self.error.get("class")


class Lakesmith:
    def __init__(self):
        self.binary = os.environ.get("LAKESMITH_BIN")
        if not self.binary:
            raise RuntimeError("LAKESMITH_BIN must name the lakesmith binary; cargo xtask test sets it")

    def command(self, *args):
        return [self.binary, *map(str, args)]

    def run(self, *args, timeout=600):
        """Standard output of a run that succeeds. Raises Failed otherwise."""
        done = subprocess.run(self.command(*args), capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(done.returncode, done.stderr)
        return done.stdout

    def json(self, *args, **options):
        return json.loads(self.run(*args, "--json", **options))

    def optimize(self, table, *args):
        return self.json("optimize", table, *args)

    def purge(self, table, *args):
        return self.json("reorg", table, "--purge", *args)

    def detail(self, table):
        return self.json("detail", table)

    def history(self, table):
        return self.json("history", table)

    def files(self, table):
        return self.json("files", table)

    def sql(self, text, *args):
        """Rows of the statements, each a dict."""
        return [json.loads(line) for line in self.run("sql", text, "--json", *args).splitlines()]
