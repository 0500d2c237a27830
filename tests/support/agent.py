"""An agent that does what it is told, one line at a time: a process group of its own, with children."""

import os
import subprocess
import sys
from typing import Self

PROGRAM = """
import os, sys, urllib.request

def get(url):
    asked = urllib.request.Request(url, headers={"accept": "*/*"})
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.read()
    except urllib.error.HTTPError as refused:
        return b"%d " % refused.code + refused.read()
    except Exception as error:
        return str(error).encode()

def get_in_child(url):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, get(url))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        out = answer.read()
    os.waitpid(child, 0)
    return out

if "orphan" in sys.argv and os.fork():
    os._exit(0)  # the group lives on without its leader
for line in sys.stdin:
    how, url = line.split()
    out = get_in_child(url) if how == "child" else get(url)
    print(" ".join(out.decode().split()) or "nothing", flush=True)
"""
"""Reads `get URL` and `child URL`, prints what came, on one line; ends with its input."""


class Agent:
    """A running agent. Use as a context manager."""

    def __init__(self, proxy: str, *, orphan: bool = False) -> None:
        """Prepare an agent that uses `proxy`.

        orphan: the leader of its process group ends before the first request.
        """
        self._proxy = proxy
        self._arguments = ["orphan"] if orphan else []

    def __enter__(self) -> Self:
        environment = {**os.environ, "http_proxy": self._proxy, "no_proxy": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", PROGRAM, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            process_group=0,
        )
        if self._arguments:
            self.process.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def ask(self, url: str, how: str = "get") -> str:
        """Have it make a request; give what it saw."""
        self.tell(url, how)
        return self.hear()

    def tell(self, url: str, how: str = "get") -> None:
        """Have it make a request."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{how} {url}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """Read what it saw."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        """End it with its whole group. Twice is once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.stdout.read()  # until the last of the group has ended
            self.process.stdout.close()
        self.process.wait(10)
