"""A terminal of our own, in which a program runs as if a person sat at it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time


class Terminal:
    def __init__(self, command, env, rows=40, columns=100):
        self.seen = ""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, env)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.file, text.encode())

    def expect(self, pattern, timeout=60):
        """Reads until the pattern is there; gives everything up to it, without the terminal's own codes."""
        end = time.monotonic() + timeout
        while True:
            plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", self.seen)
            found = re.search(pattern, plain)
            if found:
                self.seen = plain[found.end() :]
                return plain[: found.end()]
            left = end - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; the terminal shows {plain[-2000:]!r}"
            if select.select([self.file], [], [], min(left, 0.2))[0]:
                try:
                    read = os.read(self.file, 65536)
                except OSError:
                    read = b""
                assert read, f"the program left before {pattern!r}; the terminal shows {plain[-2000:]!r}"
                self.seen += read.decode(errors="replace")

    def leave(self, timeout=30):
        """The exit code of the program."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if select.select([self.file], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.file, 65536).decode(errors="replace")
                except OSError:
                    pass
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                os.close(self.file)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"the program did not leave; the terminal shows {self.seen[-2000:]!r}")
