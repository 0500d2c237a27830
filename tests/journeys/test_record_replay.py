"""The main story: record, stop the upstream, replay from the tape."""

import itertools
from pathlib import Path

from aiohttp import web

from playhead.tests.support.certificates import Certificates
from playhead.tests.support.origins import Handler, Origin
from playhead.tests.support.process import Serve, fetch, playhead, read_json


def _counter() -> Handler:
    counts = itertools.count(1)

    async def count(_: web.Request) -> web.Response:
        return web.json_response({"count": next(counts)})

    return count


def test_what_was_recorded_is_served_when_the_upstream_is_gone(
    certificates: Certificates, store_dir: Path, tmp_path: Path
) -> None:
    """Record over TLS, stop the origin, serve the tape: the same bytes, in order."""
    flags = ("--store", store_dir, "--listen", "127.0.0.1:0", "--upstream-ca", certificates.root)
    ca = store_dir / "ca" / "playhead-ca-cert.pem"
    with Origin({"/x": _counter()}, certificates) as origin:
        with Serve("--mode", "record", "--run", "tape", *flags) as proxy:
            first = [fetch(f"{origin.url}/x", proxy=proxy.url, ca=ca) for _ in range(3)]
        assert len(origin.requests) == 3
        origin.stop()
        with Serve("--mode", "playback", "--run", "tape", *flags) as proxy:
            again = [fetch(f"{origin.url}/x", proxy=proxy.url_for("tape"), ca=ca) for _ in range(1)]
    assert first == [b'{"count": 1}', b'{"count": 2}', b'{"count": 3}']
    assert again == first[:1]
    assert len(origin.requests) == 3
    runs = read_json("runs", "--store", store_dir)
    assert [(run["id"], run["status"]) for run in runs] == [
        ("tape", "sealed"),
        ("tape@1", "sealed"),
    ]
    assert playhead("show", "tape", "2", "--store", store_dir).returncode == 0
