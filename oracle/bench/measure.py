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
    runner = [sys.executable, "-S", "-E", os.path.abspath(__file__)]
    done = subprocess.run([*runner, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} failed: {done.stderr[-2000:]}")
    measured, last = json.loads(last_line(done.stderr)), last_line(done.stdout)
    if last.startswith('{"seconds"'):
        measured.update(json.loads(last))
    return measured, last


def last_line(text):
    return text.strip().rpartition("\n")[2]


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


def run(arguments):
    """Runs a program, writes what it cost to standard error as the last line, and ends as it did.

    In a small process of its own: a program's peak is at least what the process that started it holds.
    """
    started = time.monotonic()
    process = os.posix_spawnp(arguments[0], arguments, os.environ)
    _, status, usage = os.wait4(process, 0)
    measured = {"seconds": time.monotonic() - started, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        print("\n" + json.dumps(measured), file=sys.stderr)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    run(sys.argv[1:])
