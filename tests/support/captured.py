"""Clients that know nothing of a proxy, recorded and replayed in sandboxes, on a machine of their own.

`python -m playhead.tests.support.captured` prints as JSON what each client printed both times and the two receipts.
Origins stand at names of this machine, at the ports that are everybody's: hence the machine.
"""

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web

from . import machine, prepared
from .certificates import make_certificates
from .needs import has
from .origins import Handler, Origin
from .process import COMMAND

HOST, PLAIN = "api.example.test", "plain.example.test"
_HOSTS = f"127.0.0.1 localhost {HOST} {PLAIN}\n"

_ADDRESS = "203.0.113.9"


def _urllib(url: str) -> str:
    import urllib.request

    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())


def _aiohttp(url: str) -> str:
    import asyncio

    import aiohttp

    async def ask() -> str:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()

    return asyncio.run(ask())


def _raw(address: str, port: int, host: str) -> str:
    """Ask without any library: over TLS at its port, plain at the other."""
    sock = socket.create_connection((address, port))
    if port == 443:
        sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
    with sock:
        sock.sendall(f"GET /raw HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return sock.makefile("rb").read().partition(b"\r\n\r\n")[2].decode()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr.strip()[-500:]


def run_clients() -> None:
    """Run each without proxy variables; print what it was answered, as JSON."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    told = {
        "urllib": _urllib(f"https://{HOST}/urllib"),
        "urllib plain": _urllib(f"http://{PLAIN}/urllib"),
        "aiohttp": _aiohttp(f"https://{HOST}/aiohttp"),
        "raw TLS": _raw(HOST, 443, HOST),
        # Whoever knows addresses by himself is known by what he greets, or asks for.
        "an address, with TLS": _raw(_ADDRESS, 443, HOST),
        "an address, plain": _raw(_ADDRESS, 80, PLAIN),
    }
    if has("curl"):
        told["curl"] = _run("curl", "-sS", f"https://{HOST}/curl")
        # Nor does it know a variable that names our certificate.
        told["curl, bare"] = _run("env", "-i", "curl", "-sS", f"https://{HOST}/bare")
    if has("node"):
        code = f"fetch('https://{HOST}/node').then(a => a.text()).then(console.log)"
        told["node"] = _run("node", "-e", code)
    print(json.dumps(told))


async def _say(request: web.Request) -> web.Response:
    return web.Response(text=f"{request.host}{request.path}")


def _playhead(*words: str) -> dict[str, Any]:
    inner = [sys.executable, "-m", __spec__.name, "clients"]
    done = prepared.run([*COMMAND, *words, "--json", "--", *inner], text=True, timeout=120)
    assert done.stdout, (done.returncode, done.stderr)
    return {
        "code": done.returncode,
        "told": json.loads(done.stdout),
        "receipt": json.loads(done.stderr),
    }


def _main() -> None:
    machine.enter_or_exit(machine.SOMEBODY, {"/etc/hosts": _HOSTS})
    prepared.stay_ready()
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
