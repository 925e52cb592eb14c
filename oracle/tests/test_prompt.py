"""`lakesmith sql` on a terminal."""

import os
import shutil
import stat

import deltalake
import pyarrow
import pytest

from conftest import FIXTURES
from terminal import Terminal

# Below what was printed last; while something is typed the prompt is drawn again in its own row.
PROMPT = r"\n\rlakesmith> \r"


@pytest.fixture
def at_terminal(lakesmith, tmp_path):
    """Starts the prompt in a terminal of its own, with its own home."""
    def start(*args):
        env = {"HOME": str(tmp_path), "TERM": "xterm", "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path / "state")}
        terminal = Terminal(lakesmith.command("sql", *args), env)
        terminal.expect(PROMPT)
        return terminal

    return start


@pytest.fixture
def table(tmp_path):
    path = str(tmp_path / "plain")
    shutil.copytree(os.path.join(FIXTURES, "plain_24_appends"), path)
    return path


def test_statements_over_several_lines_settings_and_timing(at_terminal, table):
    terminal = at_terminal()
    terminal.type("\\?\r")
    assert "\\timing" in terminal.expect(PROMPT)
    terminal.type("\\timing\r")
    terminal.expect("timing is on")
    terminal.expect(PROMPT)
    terminal.type(f"DESCRIBE DETAIL\rdelta.`{table}`\r;\r")
    shown = terminal.expect(r"time: \d+ ms|time: \d+\.\d+ s")
    assert "numFiles" in shown and "24" in shown and "->" in shown
    terminal.expect(PROMPT)
    terminal.type("SET lakesmith.memory = 64MiB;\r")
    terminal.expect("64MiB.*64MiB")
    terminal.expect(PROMPT)
    terminal.type("\\q\r")
    assert terminal.leave() == 0


def test_errors_point_at_the_spot_and_the_prompt_goes_on(at_terminal):
    terminal = at_terminal()
    terminal.type("OPTIMISE t;\r")
    shown = terminal.expect(r"error\[PARSE_SYNTAX_ERROR\][\s\S]*\^")
    assert "OPTIMISE" in shown
    terminal.expect(PROMPT)
    terminal.type("DESCRIBE DETAIL delta.`/no/such/table`;\r")
    terminal.expect(r"error\[DELTA_MISSING_DELTA_TABLE\]")
    terminal.expect(PROMPT)
    terminal.type("\x04")
    assert terminal.leave() == 0


def test_keys_edit_complete_and_recall(at_terminal):
    terminal = at_terminal()
    # A word with a slip, mended in the middle of the line; the setting is completed.
    terminal.type("SEET lakesmith.mem\t\x01\x1b[C\x1b[C\x1b[3~\x05 = 77MiB;\r")
    terminal.expect("77MiB")
    terminal.expect(PROMPT)
    terminal.type("half of a statement\x03")
    terminal.expect(PROMPT)
    terminal.type("\x1b[A\x1b[A\x1b[A\x1b[B\r")
    terminal.expect(PROMPT)
    terminal.type("\x1b[A\r")
    assert "SET lakesmith.memory  = 77MiB;" in terminal.expect(PROMPT)
    terminal.type("\x04")
    assert terminal.leave() == 0


def test_history_is_kept_for_the_user_alone_and_without_secrets(at_terminal, tmp_path):
    terminal = at_terminal()
    for text in ("SET lakesmith.threads = 2;", "SET aws.secret.access.key = hunter2;", "SET a = 'x\ry';"):
        terminal.type(text + "\r")
        terminal.expect(PROMPT)
    terminal.type("quit\r")
    assert terminal.leave() == 0
    history = tmp_path / "state" / "lakesmith" / "history"
    text = history.read_text()
    assert "lakesmith.threads" in text and "hunter2" not in text and "aws.secret" not in text
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    again = at_terminal()
    again.type("\x1b[A\x1b[A\r")
    assert "lakesmith.threads = 2" in again.expect(PROMPT)
    again.type("\x04")
    assert again.leave() == 0


def test_ctrl_c_stops_the_running_statement_only(at_terminal, tmp_path):
    table = str(tmp_path / "wide")
    texts = pyarrow.array([f"{number * 2654435761 % 2**32:x}" * 4 for number in range(100_000)])
    for _ in range(20):
        deltalake.write_deltalake(table, pyarrow.table({"text": texts}), mode="append")
    # Another codec has every page encoded anew, which takes its time.
    terminal = at_terminal("--threads", "1", "--compression", "brotli")
    terminal.type(f"SET a = b; OPTIMIZE delta.`{table}`;\r")
    terminal.expect(r"a +b")
    terminal.type("\x03")
    assert "error[CANCELLED]" in terminal.expect(PROMPT)
    terminal.type(f"DESCRIBE DETAIL delta.`{table}`;\r")
    terminal.expect(r"numFiles +20\r")
    terminal.expect(PROMPT)
    terminal.type("\x04")
    assert terminal.leave() == 0


def test_statements_that_are_piped_in_are_read_as_ever(lakesmith, table):
    assert lakesmith.sql(f"DESCRIBE DETAIL delta.`{table}`")[0]["numFiles"] == 24
