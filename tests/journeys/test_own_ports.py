"""What a command says to its own programs over loopback passes, and leaves no trace on the tape."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead

AGENT = """
import http.client, http.server, os, socketserver, subprocess, sys
from urllib.parse import urlsplit
if sys.argv[1:] == ["serve"]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            drawn = os.urandom(8).hex().encode()
            self.send_response(200)
            self.send_header("content-length", str(len(drawn)))
            self.end_headers()
            self.wfile.write(drawn)
        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
daemon = subprocess.Popen(
    [sys.executable, __file__, "serve"], stdout=subprocess.PIPE, start_new_session=True
)
port = int(daemon.stdout.readline())
proxy = urlsplit(os.environ["HTTP_PROXY"])
def ask(client, target):
    client.request("GET", target)
    answer = client.getresponse()
    return answer.status, len(answer.read())
plain = http.client.HTTPConnection(proxy.hostname, proxy.port)
found = [ask(plain, f"http://127.0.0.1:{port}/{port}"), ask(plain, f"http://localhost:{port}/")]
found.append(ask(plain, sys.argv[1] + "/a")[0])
tunnel = http.client.HTTPConnection(proxy.hostname, proxy.port)
tunnel.set_tunnel("127.0.0.1", port)
found.append(ask(tunnel, f"/{port}"))
daemon.kill()
sys.exit(found != [(200, 16), (200, 16), 200, (200, 16)])
"""
"""Starts a server, on another port each time, which answers with what it draws; asks it, and an origin outside."""


@pytest.fixture
def origin() -> Iterator[Origin]:
    """A program of somebody else's on this machine."""

    async def say(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    with Origin({"/a": say}) as running:
        yield running


@pytest.mark.parametrize("flags", [(), ("--no-sandbox",)], ids=["sandbox", "no sandbox"])
def test_a_server_of_the_commands_own_is_not_recorded(
    tmp_path: Path, origin: Origin, flags: tuple[str, ...]
) -> None:
    """Plain and through a tunnel; the origin beside it on the same loopback is recorded and played."""
    if not flags:
        need("a sandbox")
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    command = ["--", sys.executable, str(agent), origin.url]
    store = ["--store", str(tmp_path / "store")]
    done = playhead("record", "--run", "own", *store, *command)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "store", readonly=True) as opened:
        (tape,) = opened.runs.all()
        assert [one.request.path for one in opened.exchanges.all(tape)] == ["/a"]
    receipt = tmp_path / "receipt.json"
    done = playhead("replay", "own", *flags, *store, "--receipt", str(receipt), *command)
    assert done.returncode == 0, done.stderr
    told = json.loads(receipt.read_text())
    assert (told["faithful"], told["counts"]["served"]) == (True, 1)
    assert len(told["own_programs"]) == 2  # under both names of loopback
    assert "passed, to programs of the command's own: 127.0.0.1:" in done.stderr
