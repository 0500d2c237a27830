"""A disk that fills while an agent is recorded: nothing is forwarded unrecorded, and nobody hangs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from playhead.tests.support.origins import Origin

_SCRIPT = """
mount -t tmpfs -o size=2m none "$1" || exit 77
shift
exec "$@"
"""


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(text="ok")


def test_a_full_disk_stops_the_recording_and_leaves_nobody_waiting(tmp_path: Path) -> None:
    """After the store has failed each request is refused at once; the origin sees none of them."""
    store = tmp_path / "full"
    store.mkdir()
    (tmp_path / "large").write_bytes(os.urandom(3 << 20))
    with Origin({"/x": _answer}) as origin:
        ask = f"curl -sS -m 10 -o /dev/null -w '%{{http_code}}\\n' {origin.url}/x"
        agent = f"{ask} --data-binary @{tmp_path}/large; {ask} -d a=1; {ask}; exit 0"
        playhead = [sys.executable, "-m", "playhead.proxy.cli", "record", "--store", str(store)]
        inside = ["unshare", "--mount", "--map-root-user", "sh", "-c", _SCRIPT, "sh", str(store)]
        done = subprocess.run(
            [*inside, *playhead, "--", "sh", "-c", agent],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode == 77 or "unshare failed" in done.stderr:
            pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
        assert origin.requests == ["POST /x"]
    codes = done.stdout.split()
    assert codes[1:] == ["424", "424"]
    assert "Traceback" not in done.stderr
    assert "cannot write the store" in done.stderr
    assert done.returncode == 2
