"""What is written for people keeps no client waiting, whoever reads it."""

import http.client
from pathlib import Path

from playhead.tests.support.process import Serve

_PIPE_BYTES = 64 * 1024
"""What a pipe takes before whoever writes to it waits."""


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
