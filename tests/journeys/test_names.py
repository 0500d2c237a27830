"""Requests that name their host, method or path in more than one way: through the proxy, over real connections."""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.config import (
    Config,
    EffectRule,
    Gate,
    LiveRule,
    Mode,
    RedactRule,
    Runs,
    parse_match,
)
from playhead.store import RunInfo
from playhead.tape.canonical.canonical_request import CANONICAL_VERSION
from playhead.tape.exchange import VerdictKind
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates, make_certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import connect
from playhead.timeline import build
from playhead.timeline.receipts.render_text import render_receipt


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Of an origin with several names, as one behind which several tenants are."""
    return make_certificates(tmp_path / "certificates", ("localhost", "other.test", "x.test"))


class Spelled(NamedTuple):
    """One request to the origin, and how it is spelled."""

    target: str = "/emit"
    host: str = "{own}"
    """`{own}` is the origin's, `-` stands for no field at all."""
    method: str = "POST"
    sni: str | None = "localhost"
    tunnel: str = "localhost"
    more: tuple[str, ...] = ()
    body: str = ""


SAME = (
    Spelled(),
    Spelled(host="LOCALHOST:{port}"),
    Spelled(host="localhost.:{port}"),
    Spelled(tunnel="LocalHost"),
    Spelled(sni="LOCALHOST"),
    Spelled(target="/emit?a=%2e%2e"),
)
"""What a rule for `POST https://localhost:PORT/emit` names."""

OTHER_NAMES = (
    Spelled(sni="other.test"),
    Spelled(host="other.test:{port}"),
    Spelled(host="localhost"),
    Spelled(host="other.test:{port}", sni="other.test"),
    Spelled(host=""),
    Spelled(host="localhost:{port},other.test"),
    Spelled(host="other.test@localhost:{port}"),
    Spelled(target="https://other.test/emit"),
    Spelled(tunnel="127.0.0.1"),
    Spelled(more=("X-Forwarded-Host: other.test",)),
    Spelled(host="-"),
)
OTHER_SPELLINGS = (
    Spelled(target="/emit/"),
    Spelled(target="/%65mit"),
    Spelled(target="//emit"),
    Spelled(target="/x/../emit"),
    Spelled(target="/x/..%2femit"),
    Spelled(target="/emit;a=1"),
    Spelled(target="/emit#a"),
    Spelled(target="/x\\..\\emit"),
    Spelled(target="/EMIT"),
    Spelled(target="/x/%252e%252e/emit"),
    Spelled(target="/emit%00"),
    Spelled(method="post"),
    Spelled(more=("X-HTTP-Method-Override: DELETE",)),
    Spelled(target="/emit?_method=DELETE"),
    Spelled(
        more=("Content-Type: application/x-www-form-urlencoded", "Content-Length: 14"),
        body="_method=DELETE",
    ),
    Spelled(more=("X-Original-URL: /admin",)),
)
WIDE = (
    Spelled(target="/open/../emit"),
    Spelled(target="/open/%2e%2e/emit"),
    Spelled(target="/open/..%2femit"),
    Spelled(target="/open/..;/emit"),
    Spelled(target="/open/..%5cemit"),
    Spelled(target="/open/%252e%252e%252femit"),
    Spelled(target="/open/..%c0%afemit"),
    Spelled(target="/open/x", more=("X-Rewrite-URL: /emit",)),
)
"""What a rule for `/open/*` does not name, though its text seems to fit."""


@dataclass
class Stage:
    """An engine and an origin that counts."""

    running: Running
    origin: RawOrigin

    @property
    def seen(self) -> list[bytes]:
        """Request lines that have reached the origin."""
        return [head.partition(b" HTTP/")[0] for head in self.origin.heads]

    def tunnel(self, run: str, one: Spelled, alpn: str = "http/1.1") -> ssl.SSLSocket:
        """Open a tunnel with the names of a request."""
        proxy = self.running.url_for(run)
        opened = connect(proxy)
        place = f"{one.tunnel}:{self.origin.port}"
        basic = f"{run}:x".encode()
        given = base64.b64encode(basic).decode()
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nProxy-Authorization: Basic {given}\r\n\r\n"
        opened.sendall(head.encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += opened.recv(1) or b"\r\n\r\n"
        context = ssl.create_default_context(cafile=str(self.running.ca))
        context.check_hostname = False
        context.set_alpn_protocols([alpn])
        return context.wrap_socket(opened, server_hostname=one.sni)

    def ask(self, run: str, one: Spelled) -> int:
        """Ask over HTTP/1.1 in a tunnel; give the status, or 0."""
        with self.tunnel(run, one) as sock:
            own = one.host.format(own=f"localhost:{self.origin.port}", port=self.origin.port)
            named = [] if own == "-" else [f"Host: {own}"]
            lines = [f"{one.method} {one.target} HTTP/1.1", *named, *one.more]
            if not one.body:
                lines.append("Content-Length: 0")
            sock.sendall("\r\n".join([*lines, "", one.body]).encode("latin-1"))
            sock.settimeout(10)
            try:
                first = sock.recv(65536).split(b" ", 2)
            except OSError:
                return 0
            return int(first[1]) if len(first) > 1 else 0

    def ask_h2(self, run: str, authority: str, path: str, *, sni: str = "localhost") -> int:
        """Ask over HTTP/2 in a tunnel; give the status."""
        with self.tunnel(run, Spelled(sni=sni), "h2") as sock:
            client = Http2Client(sock)
            own = authority.format(own=f"localhost:{self.origin.port}")
            stream = client.ask("POST", f"https://{own}{path}", b"{}")
            client.read_until(lambda: bool(client.got[stream]))
            head = client.got[stream][0]
            return int(head[":status"]) if isinstance(head, dict) else 0


async def _say(conversation: Conversation) -> None:
    """Answer with the host that was asked."""
    host = next(
        (line for line in conversation.head.split(b"\r\n") if line.lower().startswith(b"host:")),
        b"",
    )
    await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(host), host))


@asynccontextmanager
async def staged(
    store: Path,
    certificates: Certificates,
    *,
    live: str = "",
    gate: str = "",
    secret_path: str = "",
) -> AsyncIterator[Stage]:
    """An engine with one rule, whose `PORT` is the origin's."""
    with RawOrigin(_say, certificates) as origin:
        port = str(origin.port)
        rules = (LiveRule(parse_match(live.replace("PORT", port)), "needed"),) if live else ()
        held = Gate(deadline_s=0.01)
        gates = (EffectRule(parse_match(gate.replace("PORT", port)), gate=held),) if gate else ()
        config = Config(
            mode=Mode.RECORD,
            store=store,
            upstream_ca=certificates.root,
            live=rules,
            effects=gates,
            runs=Runs(grace_s=0.1),
            redact=(RedactRule(path=secret_path),) if secret_path else (),
        )
        async with running_engine(config) as running:
            yield Stage(running, origin)


def _name(one: Spelled) -> str:
    return " ".join(str(part) for part in one if part not in ("", ())).replace("/", "|")


RULE = "POST https://localhost:PORT/emit"


async def _play(stage: Stage) -> None:
    """Record one exchange and have new runs play it."""
    await asyncio.to_thread(stage.ask, "tape", Spelled(target="/once", method="GET"))
    await stage.running.end("tape")
    stage.running.play()
    stage.origin.heads.clear()


@pytest.mark.parametrize("one", SAME, ids=_name)
async def test_a_live_rule_applies_where_all_names_agree(
    one: Spelled, store_dir: Path, certificates: Certificates
) -> None:
    """Case, a trailing dot and the scheme's own port say nothing else."""
    async with staged(store_dir, certificates, live=RULE) as stage:
        await _play(stage)
        assert await asyncio.to_thread(stage.ask, "tape", one) == 200
        assert stage.seen == [f"POST {one.target}".encode()]


async def test_a_live_rule_lets_nothing_else_out(
    store_dir: Path, certificates: Certificates
) -> None:
    """No other name of the host, no other spelling of path or method reaches the upstream."""
    async with staged(store_dir, certificates, live=RULE) as stage:
        await _play(stage)
        for one in (*OTHER_NAMES, *OTHER_SPELLINGS):
            status = await asyncio.to_thread(stage.ask, "tape", one)
            assert status in (0, 400, 424, 502), one
            assert stage.seen == [], one
        assert await asyncio.to_thread(stage.ask_h2, "tape", "other.test", "/emit") == 424
        found = await asyncio.to_thread(
            lambda: stage.ask_h2("tape", "{own}", "/emit", sni="other.test")
        )
        assert found == 424
        assert await asyncio.to_thread(stage.ask_h2, "tape", "{own}", "/x/../emit") == 424
        assert stage.seen == []
        assert await asyncio.to_thread(stage.ask_h2, "tape", "{own}", "/emit") == 200
        assert stage.seen == [b"POST /emit"]


async def test_a_wide_live_rule_cannot_be_left_by_a_path(
    store_dir: Path, certificates: Certificates
) -> None:
    """Whatever a server makes of dots, slashes and encodings, it is still within the rule, or stays here."""
    async with staged(store_dir, certificates, live="*://localhost:PORT/open/*") as stage:
        await _play(stage)
        for one in WIDE:
            assert await asyncio.to_thread(stage.ask, "tape", one) in (400, 424), one
        assert stage.seen == []
        inside = Spelled(target="/open/a%20b/c%2Fd:e")
        assert await asyncio.to_thread(stage.ask, "tape", inside) == 200


async def test_the_receipt_lists_a_request_without_a_host(
    store_dir: Path, certificates: Certificates
) -> None:
    """A server takes its default host for it; here it is answered from the tape, by the tunnel's name, or stays."""
    async with staged(store_dir, certificates, live=RULE) as stage:
        await _play(stage)
        await asyncio.to_thread(stage.ask, "tape", Spelled(host="-"))
        assert stage.seen == []
        run = _run_of(stage.running, "tape@1")
        await stage.running.end("tape@1")
        receipt = build(stage.running.store, run)
        (row,) = receipt.claims
        assert row["claims"] == [{"kind": "unnamed", "text": ""}]
        assert "named or spelled in more than one way" in render_receipt(receipt)


async def test_a_refusal_says_why_the_live_rule_does_not_apply(
    store_dir: Path, certificates: Certificates
) -> None:
    """And the receipt lists what the request claimed."""
    async with staged(store_dir, certificates, live=RULE) as stage:
        await _play(stage)
        await asyncio.to_thread(stage.ask, "tape", Spelled(host="other.test:{port}"))
        await asyncio.to_thread(stage.ask, "tape", Spelled())
        run = _run_of(stage.running, "tape@1")
        await stage.running.end("tape@1")
        receipt = build(stage.running.store, run)
        (refused,) = receipt.refused
        assert "does not apply" in refused["reason"]
        assert "other.test" in refused["reason"]
        (row,) = receipt.claims
        assert row["claims"] == [{"kind": "host", "text": f"other.test:{stage.origin.port}"}]
        text = render_receipt(receipt)
        assert f"host other.test:{stage.origin.port}" in text
        executed, answered = text.split("effects, answered instead of executed:")
        assert "effects, executed by a live rule:" in executed
        assert "seq 2" in executed.split("executed by a live rule:")[1]
        assert "seq 2" not in answered.split("live:")[0].split("refused:")[0].split("\nroot")[0]


async def test_a_reason_that_quotes_a_request_shows_no_secret_of_it(
    store_dir: Path, certificates: Certificates
) -> None:
    """A path that is shown for how it is spelled is redacted like any other."""
    rule = "POST https://localhost:PORT/hooks/*"
    async with staged(store_dir, certificates, live=rule, secret_path="^/hooks/([^/]+)") as stage:
        await _play(stage)
        spelled = Spelled(target="/hooks/Zm9vYmFyYmF6cXV4/../../x")
        assert await asyncio.to_thread(stage.ask, "tape", spelled) == 424
        run = _run_of(stage.running, "tape@1")
        await stage.running.end("tape@1")
        (refused,) = build(stage.running.store, run).refused
        assert "does not apply" in refused["reason"]
        assert "Zm9vYmFyYmF6cXV4" not in str(stage.running.store.events.read(run))


@pytest.mark.parametrize("one", [*SAME[1:], *OTHER_NAMES, *OTHER_SPELLINGS], ids=_name)
async def test_a_gate_holds_every_name_and_spelling(
    one: Spelled, store_dir: Path, certificates: Certificates
) -> None:
    """What may be the request that a gate names waits for somebody; nobody comes, so nothing is sent."""
    async with staged(store_dir, certificates, gate=RULE) as stage:
        one = one._replace(sni=None) if one.tunnel == "127.0.0.1" else one
        assert await asyncio.to_thread(stage.ask, "gated", one) in (0, 400, 424)
        assert stage.seen == []


async def test_recording_sends_on_what_was_sent_and_keeps_every_name(
    store_dir: Path, certificates: Certificates
) -> None:
    """Two tenants behind one address get their own answers, then and in playback."""
    async with staged(store_dir, certificates) as stage:
        tenants = [Spelled(host=f"{name}.test", sni="x.test") for name in ("one", "two")]
        for one in tenants:
            assert await asyncio.to_thread(stage.ask, "tape", one) == 200
        assert [b"Host: one.test" in head for head in stage.origin.heads] == [True, False]
        open_run = stage.running.open_run("tape")
        assert open_run.info is not None
        run = open_run.info
        await stage.running.end("tape")
        first, second = stage.running.store.exchanges.all(run)
        assert first.request.names == (("sni", "x.test"),)
        assert first.fingerprint != second.fingerprint
        stage.running.play()
        assert await asyncio.to_thread(stage.ask, "tape", tenants[1]) == 200
        stranger = Spelled(host="three.test", sni="x.test")
        assert await asyncio.to_thread(stage.ask, "tape", stranger) == 424
        assert await asyncio.to_thread(stage.ask, "tape", tenants[0]._replace(sni=None)) == 424
        assert len(stage.origin.heads) == 2
        run = _run_of(stage.running, "tape@1")
        await stage.running.end("tape@1")
        events = stage.running.store.events.read(run)
        served = [e.data for e in events if e.kind is EventKind.VERDICT]
        assert [(one["verdict"], one.get("tape_seq")) for one in served[:1]] == [
            (VerdictKind.SERVED.value, 2)
        ]
        assert CANONICAL_VERSION >= 7


async def test_several_host_fields_are_refused(store_dir: Path, certificates: Certificates) -> None:
    """In any mode: nobody knows which one is meant."""
    async with staged(store_dir, certificates) as stage:
        assert (
            await asyncio.to_thread(stage.ask, "tape", Spelled(more=("host: other.test",))) == 400
        )
        assert stage.seen == []


HERE = (
    "127.0.0.1",
    "localhost",
    "LOCALHOST.",
    "127.1",
    "0x7f.1",
    "2130706433",
    "0177.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::]",
    "[::127.0.0.1]",
    socket.gethostname(),
)


@pytest.mark.parametrize("plain", [True, False])
async def test_no_spelling_of_this_machine_reaches_the_proxy_itself(
    plain: bool, store_dir: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its own port nor the control port, while recording and by a live rule; names are looked up for that."""
    with socket.create_server(("127.0.0.1", 0)) as control:
        control.setblocking(False)
        async with staged(store_dir, certificates, live="*://*") as stage:
            stage.running.engine.keep_from_clients(control)
            loop = asyncio.get_running_loop()
            look_up = loop.getaddrinfo

            async def rebind(host: str, port: int, **more: int) -> object:
                return await look_up("127.0.0.1" if host == "rebound.test" else host, port, **more)

            monkeypatch.setattr(loop, "getaddrinfo", rebind)
            await _play(stage)
            for mode in (Mode.PLAYBACK, Mode.RECORD):
                stage.running.change(mode=mode)
                for name in (*HERE, "rebound.test"):
                    for port in (control.getsockname()[1], stage.running.address.port):
                        run = "tape" if mode is Mode.PLAYBACK else "again"
                        status = await asyncio.to_thread(_get, stage, run, f"{name}:{port}", plain)
                        assert status != 200, (name, mode)
                with pytest.raises(BlockingIOError):
                    control.accept()
            denied = " ".join(stage.running.engine.denied)
            assert "rebound.test" in denied


def _get(stage: Stage, run: str, place: str, plain: bool) -> int:
    """Ask as of a proxy, or in a tunnel; give the status."""
    given = base64.b64encode(f"{run}:x".encode()).decode()
    credentials = f"Proxy-Authorization: Basic {given}\r\n"
    with connect(stage.running.url) as sock:
        if plain:
            head = f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{credentials}\r\n"
            sock.sendall(head.encode())
        else:
            head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{credentials}\r\n"
            sock.sendall(head.encode())
            if not sock.recv(65536).startswith(b"HTTP/1.1 200"):
                return 0
            sock.sendall(f"GET / HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
        try:
            return int([*sock.recv(65536).split(b" ", 2), b"0", b"0"][1])
        except (OSError, ValueError):
            return 0


def _run_of(running: Running, name: str) -> RunInfo:
    run = running.open_run(name).info
    assert run is not None
    return run
