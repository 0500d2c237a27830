"""The doctor: what was seen makes the finding, and real clients against a small real proxy."""

import asyncio
import json
import os
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from playhead.proxy.ca import CertificateAuthority, certificate_store, open_ca
from playhead.proxy.doctor import Finding, Probe, Status, examine, judge, render, render_json
from playhead.proxy.probes import probes

PROBE = Probe(
    "a client", True, ("client",), "token", if_bypassed="go through", if_untrusted="trust it"
)


@pytest.mark.parametrize(
    ("exit_code", "proxy_saw", "origin_saw", "output", "status", "advice"),
    [
        # what the proxy read was proxied and trusted
        (0, True, False, "", Status.OK, ""),
        (0, True, True, "", Status.OK, ""),
        (1, True, True, "JSONDecodeError", Status.FAILED, "could not use the answer"),
        (None, True, True, "", Status.FAILED, "could not use the answer"),
        # what only the origin saw went past it
        (0, False, True, "", Status.BYPASSED, "go through"),
        (1, False, True, "certificate", Status.BYPASSED, "go through"),
        # the client says why
        (
            60,
            False,
            False,
            "curl: (60) SSL certificate problem: self-signed",
            Status.UNTRUSTED,
            "trust it",
        ),
        (1, False, False, "PKIX path building failed", Status.UNTRUSTED, "trust it"),
        (1, False, False, "x509: unknown authority", Status.UNTRUSTED, "trust it"),
        (6, False, False, "curl: (6) Could not resolve host: x", Status.BYPASSED, "go through"),
        (1, False, False, "ENOTFOUND getaddrinfo ENOTFOUND x", Status.BYPASSED, "go through"),
        # nobody knows
        (7, False, False, "connection refused", Status.FAILED, "ended with 7"),
        (None, False, False, "", Status.FAILED, "within 10 s"),
        (0, False, False, "", Status.FAILED, "ended with 0"),
    ],
)
def test_finding_follows_from_what_was_seen(
    exit_code: int | None,
    proxy_saw: bool,
    origin_saw: bool,
    output: str,
    status: Status,
    advice: str,
) -> None:
    """One row a case."""
    found = judge(PROBE, exit_code, proxy_saw, origin_saw, output)
    assert found.status is status
    assert advice in found.advice
    assert bool(found.advice) is bool(advice)


def test_client_that_fails_by_design_is_judged_by_what_was_seen() -> None:
    """git finds no repository, which is not the question."""
    assert judge(replace(PROBE, any_exit=True), 128, True, True).status is Status.OK


def test_absent_client_is_no_failure() -> None:
    """It is listed, so that nobody wonders whether it was tried."""
    found = judge(replace(PROBE, installed=False), None, False, False)
    assert found == Finding("a client", Status.ABSENT)


def test_what_a_client_says_is_cut_and_made_safe() -> None:
    """Terminal sequences come from outside; the telling line stands before frames and versions."""
    output = "Picked up JAVA_TOOL_OPTIONS: -Dx\n\x1b[31mboom " + "x" * 999 + "\n    at f (a.js:1)\n"
    detail = judge(PROBE, 1, False, False, output).detail
    assert detail.startswith("?[31mboom x")
    assert len(detail) == 200


def test_findings_are_written_for_people_and_programs() -> None:
    """The same in both, advice below its client."""
    findings = [
        Finding("curl", Status.OK),
        Finding("node", Status.BYPASSED, "do this", "said that"),
    ]
    assert render(findings) == "curl  ok\nnode  bypassed\n      do this\n      said that"
    assert json.loads(render_json(findings))[1] == {
        "client": "node",
        "status": "bypassed",
        "advice": "do this",
        "detail": "said that",
    }
    assert render([]) == ""


def test_every_probe_asks_for_its_own_token() -> None:
    """In the command or in the file that it runs; and what is not on PATH is not installed."""
    made = probes("https://localhost:1/x/", path="/nowhere")
    assert len({probe.token for probe in made}) == len({probe.name for probe in made}) == len(made)
    for probe in made:
        texts = " ".join((*probe.command, *probe.files.values()))
        assert f"https://localhost:1/x/{probe.token}" in texts
        assert "{url}" not in texts
        assert "{plain}" not in texts
    assert {probe.name for probe in made if probe.installed} >= {"python urllib", "aiohttp"}
    assert not any(probe.installed for probe in made if probe.name in ("curl", "git", "java"))


@dataclass
class Net:
    """A TLS origin, and a proxy that reads what it passes on, which is nothing: it answers itself."""

    ca: CertificateAuthority
    ports: list[int] = field(default_factory=list)
    proxy_paths: list[str] = field(default_factory=list)
    origin_paths: list[str] = field(default_factory=list)

    def proxy_saw(self, token: str) -> bool:
        return any(token in path for path in self.proxy_paths)

    def origin_saw(self, token: str) -> bool:
        return any(token in path for path in self.origin_paths)

    async def proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await writer.drain()
            await writer.start_tls(self.context())
            await answer(reader, writer, self.proxy_paths)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def origin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer, self.origin_paths)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca.key_file.with_name("leaf.pem"))
        return context


async def answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, paths: list[str]
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    paths.append(head.split()[1].decode())
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
    await writer.drain()


@pytest.fixture
async def net(tmp_path: Path) -> AsyncIterator[Net]:
    ca = open_ca(tmp_path, tmp_path / "ca", environ={})
    net = Net(ca)
    leaf = certificate_store(ca).get_cert("localhost", [x509.DNSName("localhost")])
    key = leaf.privatekey.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    ca.key_file.with_name("leaf.pem").write_bytes(key + leaf.cert.to_pem())
    proxy = await asyncio.start_server(net.proxy, "127.0.0.1", 0)
    origin = await asyncio.start_server(net.origin, "127.0.0.1", 0, ssl=net.context())
    async with proxy, origin:
        net.ports = [server.sockets[0].getsockname()[1] for server in (proxy, origin)]
        yield net


def only(net: Net, *names: str) -> list[Probe]:
    wanted = [p for p in probes(f"https://localhost:{net.ports[1]}") if p.name in names]
    if not all(probe.installed for probe in wanted):
        pytest.skip("not installed here")
    return wanted


async def found(net: Net, clients: list[Probe], **base: str) -> list[tuple[str, Status]]:
    findings = await examine(
        f"http://run:token@127.0.0.1:{net.ports[0]}",
        net.ca.bundle_file.parent,
        f"https://localhost:{net.ports[1]}",
        net.proxy_saw,
        net.origin_saw,
        clients=clients,
        base={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(net.ca.key_file.parent), **base},
    )
    return [(finding.client, finding.status) for finding in findings]


@pytest.mark.parametrize(
    "name", ["curl", "wget", "git", "python urllib", "requests", "httpx", "aiohttp trust_env"]
)
async def test_client_that_follows_its_variables_is_well(net: Net, name: str) -> None:
    """Real clients, whose requests the proxy reads."""
    assert await found(net, only(net, name)) == [(name, Status.OK)]


async def test_client_that_goes_past_the_proxy_is_told_so(net: Net) -> None:
    """aiohttp's default session reaches the origin itself."""
    assert await found(net, only(net, "aiohttp")) == [("aiohttp", Status.BYPASSED)]


@pytest.mark.skipif(shutil.which("node") is None, reason="not installed here")
async def test_node_is_either_well_or_past_the_proxy(net: Net) -> None:
    """It depends on its version, and both of its clients agree."""
    findings = await found(net, only(net, "node https", "node fetch"))
    assert {status for _, status in findings} <= {Status.OK, Status.BYPASSED}
    assert len({status for _, status in findings}) == 1


async def test_client_that_does_not_trust_the_ca_is_told_so(net: Net) -> None:
    """It drops our roots for others and gets no further than the handshake."""
    code = (
        "import ssl, urllib.request as u\n"
        f"u.urlopen('https://localhost:{net.ports[1]}/token',"
        " context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))"
    )
    probe = replace(PROBE, command=(sys.executable, "-c", code))
    assert await found(net, [probe]) == [("a client", Status.UNTRUSTED)]


async def test_client_that_hangs_is_ended_with_its_children(net: Net, tmp_path: Path) -> None:
    """The limit is the probe's own; a pipe that ends shows that nobody is left to write to it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    hang = ("/bin/sh", "-c", 'exec 3> "$0"; echo here >&3; sleep 99 & wait', str(pipe))
    assert await found(net, [replace(PROBE, command=hang, timeout_s=0.5)]) == [
        ("a client", Status.FAILED)
    ]
    os.set_blocking(reader, True)
    said = b"".join(iter(lambda: os.read(reader, 100), b""))
    os.close(reader)
    assert said == b"here\n"


async def test_client_that_cannot_be_started_is_a_finding(net: Net) -> None:
    """A broken installation stops nothing else."""
    broken = replace(PROBE, command=("/nowhere/client",))
    assert await found(net, [broken, replace(PROBE, installed=False)]) == [
        ("a client", Status.FAILED),
        ("a client", Status.ABSENT),
    ]
