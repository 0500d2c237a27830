"""Clients that know nothing of a proxy, recorded and replayed in sandboxes, on a machine of their own.

`python -m playhead.tests.support.captured` prints as JSON what each client printed both times and the two receipts.
Origins stand at names of this machine, at the ports that are everybody's: hence the machine.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web

from . import machine
from .certificates import make_certificates
from .origins import Handler, Origin
from .process import COMMAND

HOST, PLAIN = "api.example.test", "plain.example.test"
_HOSTS = f"127.0.0.1 localhost {HOST} {PLAIN}\n"

_PYTHON = {
    "urllib": f"import urllib.request as u; print(u.urlopen('https://{HOST}/urllib').read().decode())",
    "urllib plain": f"import urllib.request as u; print(u.urlopen('http://{PLAIN}/urllib').read().decode())",
    "aiohttp": f"""
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session:
        async with session.get('https://{HOST}/aiohttp') as answer:
            print(await answer.text())
asyncio.run(main())""",
    "raw tls": f"""
import socket, ssl
sock = ssl.create_default_context().wrap_socket(socket.create_connection(('{HOST}', 443)), server_hostname='{HOST}')
sock.sendall(b'GET /raw HTTP/1.1\\r\\nHost: {HOST}\\r\\nConnection: close\\r\\n\\r\\n')
print(sock.makefile('rb').read().partition(b'\\r\\n\\r\\n')[2].decode())""",
    "an address alone": f"""
import socket
sock = socket.create_connection(('203.0.113.9', 80))
sock.sendall(b'GET /address HTTP/1.1\\r\\nHost: {PLAIN}\\r\\nConnection: close\\r\\n\\r\\n')
print(sock.makefile('rb').read().partition(b'\\r\\n\\r\\n')[2].decode())""",
}


def clients() -> dict[str, list[str]]:
    """Give the clients that this machine has, by name."""
    found = {name: [sys.executable, "-c", code] for name, code in _PYTHON.items()}
    if shutil.which("curl"):
        found["curl"] = ["curl", "-sS", f"https://{HOST}/curl"]
        found["curl without variables"] = ["env", "-i", "curl", "-sS", f"https://{HOST}/bare"]
    if shutil.which("node"):
        code = f"fetch('https://{HOST}/node').then(a => a.text()).then(console.log)"
        found["node"] = ["node", "-e", code]
    return found


def run_clients() -> None:
    """Run each without proxy variables; print what they print, as JSON."""
    environ = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    told = {}
    for name, command in clients().items():
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        told[name] = done.stdout.strip() or done.stderr.strip()[-500:]
    print(json.dumps(told))


async def _say(request: web.Request) -> web.Response:
    return web.Response(text=f"{request.host}{request.path}")


def _playhead(*words: str) -> dict[str, Any]:
    inner = [sys.executable, "-m", __spec__.name, "clients"]
    done = subprocess.run(
        [*COMMAND, *words, "--json", "--", *inner],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, (done.returncode, done.stderr)
    return {
        "code": done.returncode,
        "told": json.loads(done.stdout),
        "receipt": json.loads(done.stderr),
    }


def _main() -> None:
    machine.enter(machine.SOMEBODY, {"/etc/hosts": _HOSTS})
    with tempfile.TemporaryDirectory() as made:
        os.environ["HOME"] = made
        store = ["--store", f"{made}/store"]
        certificates = make_certificates(Path(made), (HOST,))
        routes: dict[str, Handler] = {"/{any:.*}": _say}
        with Origin(routes, certificates, 443), Origin(routes, None, 80):
            trust = ["--upstream-ca", str(certificates.root)]
            recorded = _playhead("record", "--capture", "--run", "tape", *store, *trust)
        print(json.dumps({"recorded": recorded, "replayed": _playhead("replay", "tape", *store)}))


if __name__ == "__main__":
    run_clients() if sys.argv[1:] == ["clients"] else _main()
