"""What is written for people keeps no client waiting, whoever reads it."""

import http.client
import os
import re
import subprocess
from pathlib import Path
from typing import BinaryIO

import pytest

from playhead.tests.support.process import COMMAND, Serve

_PIPE_BYTES = 64 * 1024
"""What a pipe takes before whoever writes to it waits."""


def _unread() -> BinaryIO:
    """Give a pipe whose reader has gone."""
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "wb")


@pytest.mark.parametrize("gone", ["full", "closed"])
def test_a_stdout_that_cannot_be_written_ends_no_proxy(tmp_path: Path, gone: str) -> None:
    """It serves, and says on stderr where."""
    stdout = open("/dev/full", "wb") if gone == "full" else _unread()  # noqa: SIM115
    command = [*COMMAND, "serve", "--store", str(tmp_path / "store"), "--listen", "127.0.0.1:0"]
    with stdout, subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        found = re.search(r"stdout cannot be written: .*http://([\d.]+):(\d+)", line)
        assert found, line
        asked = http.client.HTTPConnection(found[1], int(found[2]), timeout=20)
        asked.request("GET", "/no-proxy-request")
        assert asked.getresponse().status == 400
        asked.close()
        process.terminate()
        assert process.wait(20) == 0
        assert b"Traceback" not in process.stderr.read()


def test_a_stderr_that_nobody_reads_keeps_no_client_waiting(tmp_path: Path) -> None:
    """Each request has a message of its own, and all of them are more than a pipe takes; each is answered."""
    with Serve("--store", tmp_path / "store", "--listen", "127.0.0.1:0") as serve:
        host, _, port = serve.address.rpartition(":")
        count, size = 0, 0
        while size < 2 * _PIPE_BYTES:
            asked = http.client.HTTPConnection(host, int(port), timeout=20)
            asked.request("GET", "/no-proxy-request")
            assert asked.getresponse().status == 400
            asked.close()
            count += 1
            size += 150  # of each message
        _, _, told = serve.stop()
    assert told.count("this is a proxy and no server") == count
