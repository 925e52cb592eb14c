"""What a process costs, and tables that are made once."""

import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def timed(arguments):
    """Runs a program that must succeed: seconds, CPU seconds and peak bytes of the whole process, and its last line.

    A contestant that starts a server of its own prints these figures itself, as its last line.
    """
    started = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The pipes are small and so is what comes through them: one line on each, or an error.
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    if status != 0:
        raise SystemExit(f"{' '.join(arguments)} failed: {errors[-2000:]}")
    measured = {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}
    last = output.strip().rpartition("\n")[2]
    if last.startswith('{"seconds"'):
        measured.update(json.loads(last))
    return measured, last


def contestant(*arguments):
    """The command of a peer's Python program."""
    return [sys.executable, os.path.join(HERE, "contestant.py"), *map(str, arguments)]


def fresh_copy(table, folder):
    """A copy of the table in `folder`, in place of the one before."""
    copy = os.path.join(folder, "copy")
    shutil.rmtree(copy, ignore_errors=True)
    # Data files are never written to again, so links will do; the log is copied.
    return shutil.copytree(table, copy, copy_function=lambda a, b: (shutil.copy2 if "_delta_log" in a else os.link)(a, b))


def made_once(path, make):
    """What `make` said of the table at `path`, which it makes if it is not there yet."""
    facts = path + ".json"
    if not os.path.exists(facts):
        print(f"making {path}", file=sys.stderr, flush=True)
        made = make(path)
        with open(facts, "w", encoding="utf-8") as file:
            json.dump(made, file)
    with open(facts, encoding="utf-8") as file:
        return json.load(file)
