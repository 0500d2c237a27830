"""Who may ask the control API: by what name, from which site, with which token. On the wire."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from playhead.config import Config, Control
from playhead.proxy.control.handlers.breakpoints import ANSWER
from playhead.proxy.control.handlers.route_table import make_table
from playhead.proxy.control.http import serving
from playhead.proxy.control.http.route import BODY_BYTES, Route
from playhead.tests.support.client import Connection
from playhead.tests.support.control import Controlled, controlled, read_answer

_PAGE = (Path(__file__).parents[4] / "docs/control.md").read_text("utf-8")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Controlled]:
    """One that listens where it does by default, and has a further name; the same for all."""
    config = Config(
        store=tmp_path_factory.mktemp("control"), control=Control(hosts=("playhead.test",))
    )
    async with controlled(config) as made:
        yield made


@pytest.mark.parametrize("route", make_table(), ids=lambda route: route.name)
@pytest.mark.parametrize("token", ["", "x" * 43, "wrong token"])
async def test_no_route_but_the_open_ones_answers_without_the_token(
    api: Controlled, route: Route, token: str
) -> None:
    """Health, readiness and the document say nothing about any run; everything else is 401."""
    said = await api.ask(route.method, route.path.replace("{id}", "mine"), token=token)
    if route.open:
        assert said.status == 200
    else:
        assert said.status == 401
        assert said.headers["www-authenticate"].startswith("Bearer")
        assert set(said.json) == {"error", "expected", "found", "hint"}
    assert {route.name for route in make_table() if route.open} == {"health", "ready", "describe"}


@pytest.mark.parametrize(
    "authorization",
    [
        "Basic {0}",
        "{0}",
        "Bearer",
        "Bearer {0}x",
        "Bearer {0}, Bearer {0}",
        "Bearer é{0}",
        "Bearer {0}\r\nauthorization: Bearer x",
        "Bearer {0}\r\nauthorization: Bearer {0}",
    ],
)
async def test_the_token_has_one_form(api: Controlled, authorization: str) -> None:
    """`Bearer TOKEN`, once."""
    said = await api.ask("GET", "/v1/runs", authorization=authorization.format(api.token))
    assert said.status == 401


async def test_the_token_stands_in_its_field_alone(api: Controlled) -> None:
    """Neither in the query, nor in a cookie, nor in credentials of the URL."""
    ways = [
        api.ask("GET", f"/v1/runs?token={api.token}&access_token={api.token}", token=""),
        api.ask("GET", "/v1/runs", token="", cookie=f"token={api.token}"),
        api.ask("GET", "/v1/runs", token="", x_playhead_token=api.token),
    ]
    assert [(await way).status for way in ways] == [401, 401, 401]
    assert (await api.ask("GET", "/v1/runs")).status == 200
    assert (await api.ask("GET", "/v1/runs", authorization=f"bearer {api.token}")).status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{0}", 200),
        ("localhost:{0}", 200),
        ("LocalHost:{0}", 200),
        ("[::1]:{0}", 200),
        # What a name that was made to lead here looks like.
        ("attacker.example:{0}", 403),
        ("127.0.0.1.attacker.example:{0}", 403),
        ("localhost.attacker.example:{0}", 403),
        ("localhost.:{0}", 403),
        ("0.0.0.0:{0}", 403),
        ("192.0.2.1:{0}", 403),
        ("2130706433:{0}", 403),
        ("127.1:{0}", 403),
        # Another port, or the default one.
        ("127.0.0.1:1", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:0{0}", 403),
        ("127.0.0.1:+{0}", 403),
        ("127.0.0.1:{0}.", 403),
        ("127.0.0.1.:{0}", 403),
        ("0177.0.0.1:{0}", 403),
        ("[::ffff:127.0.0.1]:{0}", 403),
        ("127.0.0.1:{0}, attacker.example", 403),
        ("attacker.example#127.0.0.1:{0}", 403),
        ("127.0.0.1:{0}@x", 403),
        ("x@127.0.0.1:{0}", 403),
        ("127.0.0.1:{0}\r\nhost: attacker.example", 400),
        ("", 400),
    ],
)
async def test_only_our_own_names_are_answered(api: Controlled, host: str, status: int) -> None:
    """DNS rebinding: the page's name stands in the host field, whatever address it leads to."""
    port = api.address.rpartition(":")[2]
    for path in ("/v1/runs", "/healthz"):
        assert (await api.ask("GET", path, host=host.format(port))).status == status


async def test_what_names_no_host_is_refused(api: Controlled) -> None:
    """HTTP/1.0 need not name one, which is no reason to take any."""
    for version in ("1.0", "0.9"):
        head = f"GET /v1/runs HTTP/{version}\r\nauthorization: Bearer {api.token}\r\n\r\n"
        assert (await api.send(head.encode())).status == 400


async def test_an_upgrade_changes_nothing(api: Controlled) -> None:
    """To a WebSocket or to HTTP/2: the token is asked for, and the answer is the plain one."""
    for kind in ("websocket", "h2c"):
        for token, status in (("", 401), (api.token, 200)):
            said = await api.ask("GET", "/v1/runs", token=token, connection="Upgrade", upgrade=kind)
            assert said.status == status


async def test_a_whole_url_is_no_path(api: Controlled) -> None:
    """Its host would count for more than the field."""
    for target in ("http://attacker.example/v1/runs", f"{api.server.url}/v1/runs", "*"):
        assert (await api.ask("GET", target)).status == 400


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"origin": "{0}"}, 200),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none"}, 200),
        ({"origin": "http://attacker.example"}, 403),
        ({"origin": "https://{1}"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "{0}/"}, 403),
        ({"origin": "{0}.attacker.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"origin": "{0}", "sec_fetch_site": "cross-site"}, 403),
    ],
)
async def test_other_sites_are_refused_with_the_token_too(
    api: Controlled, fields: dict[str, str], status: int
) -> None:
    """A page of another site that has got hold of it still cannot use it from a browser."""
    told: dict[str, Any] = {
        name: value.format(api.server.url, api.address) for name, value in fields.items()
    }
    assert (await api.ask("GET", "/v1/runs", **told)).status == status
    assert (await api.ask("GET", "/healthz", **told)).status == status


async def test_nothing_is_changed_by_asking(api: Controlled) -> None:
    """Every route that changes something is POST alone; no other method reaches it."""
    changing = [route for route in make_table() if route.path.endswith(("/stop", "/seal"))]
    assert {route.method for route in changing} == {"POST"}
    async with _OneRun(api) as run:
        methods = ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
        for method, what in itertools.product(methods, ("stop", "seal")):
            answer = await api.ask(method, f"/v1/runs/{run}/{what}", x_http_method_override="POST")
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
        open_run = api.running.open_run(run)
        assert open_run.lifetime.stopped is None
        assert not open_run.lifetime.ending


class _OneRun:
    """An open run with one request behind it."""

    def __init__(self, api: Controlled) -> None:
        self._api = api

    async def __aenter__(self) -> str:
        connection = await Connection.open(str(self._api.running.address))
        await connection.ask("http://playhead.internal/", credentials="mine:x")
        await connection.close()
        self.open_run = self._api.running.registry.open[-1]
        assert self.open_run.info is not None
        return self.open_run.info.id

    async def __aexit__(self, *_: object) -> None:
        ending = self._api.running.registry.end(self.open_run, "the test is over")
        if ending is not None:
            await ending


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "text/plain", 200),
        (b"{}", "application/json", 200),
        (b"{}", "application/json; charset=utf-8", 200),
        (b'{"reason": "\xc3\xa9"}', "application/json", 200),
        # What a form of another site can send.
        (b"{}", "text/plain", 415),
        (b"reason=x", "application/x-www-form-urlencoded", 415),
        (b"{}", "multipart/form-data", 415),
        (b"{}", "", 415),
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 60_000, "application/json", 400),
        (b'{"reason": ' * 5000, "application/json", 400),
        (b"1" * 5000, "application/json", 400),
        (b" " * (BODY_BYTES + 1), "application/json", 413),
        (b"[]", "application/json", 422),
        (b"null", "application/json", 200),
        (b"NaN", "application/json", 422),
        (b'{"why": 1}', "application/json", 422),
        (b'{"\\ud800": 1}', "application/json", 422),
        (b'{"reason": 1}', "application/json", 422),
        (b'{"reason": null}', "application/json", 422),
        (b'{"reason": "\\ud800"}', "application/json", 422),
        (b'{"reason": "a\\nb"}', "application/json", 422),
        (b'{"reason": "\\u001b[2J"}', "application/json", 422),
        (b'{"reason": "' + b"x" * 501 + b'"}', "application/json", 422),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_a_body_is_bounded_json(api: Controlled, body: bytes, kind: str, status: int) -> None:
    """Anything else is told from it, and never an error of ours."""
    async with _OneRun(api) as run:
        said = await api.ask("POST", f"/v1/runs/{run}/stop", body, content_type=kind)
        assert said.status == status
        stopped = api.running.open_run(run).lifetime.stopped
        assert (stopped is not None) is (status == 200)


async def test_a_coded_body_is_not_undone(api: Controlled) -> None:
    """Some bytes that become gigabytes are refused as they are."""
    said = await api.ask("POST", "/v1/runs/mine/stop", b"\x1f\x8b", content_encoding="gzip")
    assert said.status == 415


async def test_a_head_is_bounded(api: Controlled) -> None:
    """A line too long, or too many of them, ends the connection with a refusal."""
    head = f"GET /healthz HTTP/1.1\r\nhost: {api.address}\r\n"
    for more in ("x: " + "a" * 100_000, "x: a\r\n" * 5000, "a" * 70_000):
        said = await api.send(f"{head}{more}\r\n\r\n".encode())
        assert said.status in (400, 431)
    long = await api.send(f"GET /{'a' * 100_000} HTTP/1.1\r\nhost: {api.address}\r\n\r\n".encode())
    assert long.status in (400, 414)


async def test_a_body_in_chunks_is_bounded_too(api: Controlled) -> None:
    """Its length is not known before."""
    head = (
        f"POST /v1/runs/mine/stop HTTP/1.1\r\nhost: {api.address}\r\nauthorization: Bearer {api.token}\r\n"
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    assert (
        await api.send(head.encode() + chunk * (BODY_BYTES // 0x4000 + 1) + b"0\r\n\r\n")
    ).status == 413


_BROKEN = [
    b"GET /v1/runs HTTP/1.1\nhost: x\n{auth}\n\n",
    b"GET /v1/runs HTTP/1.1\r\nhost : x\r\n{auth}\r\n\r\n",
    b"GET /v1/runs HTTP/1.1\r\n{auth}\r\n\r\n",
    b"GET /v1/runs HTTP/1.1\r\n{host}\r\nauthorization: Bearer\r\n {token}\r\n\r\n",
    b"GET /v1/runs HTTP/1.1\r\n{host}\r\n{host}\r\n{auth}\r\n\r\n",
    b"GET /v1/runs HTTP/1.1\r\n{host}\r\n{auth}\r\nx: \0\r\n\r\n",
    b"GET /v1/runs HTTP/1.1\r\n{host}\r\n{auth}\r\nx: " + b"a" * 100_000 + b"\r\n\r\n",
    b"POST /v1/runs/x/stop HTTP/1.1\r\n{host}\r\n{auth}\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    b"POST /v1/runs/x/stop HTTP/1.1\r\n{host}\r\n{auth}\r\ncontent-length: -1\r\n\r\n",
    b"POST /v1/runs/x/stop HTTP/1.1\r\n{host}\r\n{auth}\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"1" * 100_000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03" + bytes(100),
    b"get /v1/runs HTTP/1.1\r\n{host}\r\n{auth}\r\n\r\n",
]


@pytest.mark.parametrize("data", _BROKEN, ids=range(len(_BROKEN)))
async def test_what_is_no_http_is_told_so_and_not_logged(
    api: Controlled, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """As JSON, and the connection ends; neither the answer nor the log repeats it, since the token may stand in it."""
    caplog.set_level("INFO")
    data = data.replace(b"{auth}", b"authorization: Bearer {token}")
    data = data.replace(b"{host}", f"host: {api.address}".encode())
    reader, writer = await api.connect()
    writer.write(data.replace(b"{token}", api.token.encode()))
    said = await read_answer(reader)
    assert said.status == 400
    with contextlib.suppress(ConnectionResetError):  # there was more to read
        assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    assert set(said.json) == {"error", "expected", "found", "hint"}
    assert said.headers["cache-control"] == "no-store"
    assert len(said.text) < 300
    assert api.token not in said.text + caplog.text
    assert len(caplog.text) < 1000
    assert "Traceback" not in caplog.text


async def test_a_body_that_breaks_later_is_told_so(
    api: Controlled, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk that is none, after one that is, when somebody waits for it already."""
    await api.ask("GET", "/healthz")
    monkeypatch.setattr(serving, "BODY_S", 0.2)
    reader, writer = await api.connect()
    head = (
        f"POST /v1/runs/mine/stop HTTP/1.1\r\nhost: {api.address}\r\nauthorization: Bearer {api.token}\r\n"
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"
    )
    writer.write(head.encode())
    for _ in range(50):  # until it is read
        await asyncio.sleep(0)
    writer.write(b"no chunk\r\n")
    said = await read_answer(reader)
    writer.close()
    assert (said.status, set(said.json)) == (400, {"error", "expected", "found", "hint"})
    assert "Traceback" not in caplog.text


async def test_a_head_that_never_ends_is_not_waited_for(
    api: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are answered meanwhile."""
    await api.ask("GET", "/healthz")
    monkeypatch.setattr(serving, "HEAD_S", 0.2)
    slow = [await api.connect() for _ in range(20)]
    monkeypatch.setattr(serving, "HEAD_S", 60)
    for _, writer in slow:
        writer.write(b"GET /v1/runs HTTP/1.1\r\nhost: ")
    assert (await api.ask("GET", "/healthz")).status == 200
    async with asyncio.timeout(10):
        for reader, writer in slow:
            assert await reader.read() == b""
            writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(
    api: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client is told."""
    monkeypatch.setattr(serving, "BODY_S", 0.2)
    reader, writer = await api.connect()
    writer.write(
        f"POST /v1/runs/mine/stop HTTP/1.1\r\nhost: {api.address}\r\nauthorization: Bearer {api.token}\r\n"
        'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"re'.encode()
    )
    assert (await read_answer(reader)).status == 400
    writer.close()


async def test_connections_are_bounded(api: Controlled, monkeypatch: pytest.MonkeyPatch) -> None:
    """For one too many, the one is closed on which nothing has been asked for longest."""
    await api.ask("GET", "/healthz")
    await _emptied(api)
    monkeypatch.setattr(serving, "CONNECTIONS", 3)
    kept = [await api.connect() for _ in range(3)]
    health = f"GET /healthz HTTP/1.1\r\nhost: {api.address}\r\n\r\n".encode()
    for reader, writer in (*kept, kept[0]):
        writer.write(health)
        assert (await read_answer(reader)).status == 200
    reader, writer = await api.connect()
    assert await asyncio.wait_for(kept[1][0].read(), 10) == b""
    for asked_reader, asked_writer in (kept[0], kept[2], (reader, writer)):
        asked_writer.write(health)
        assert (await read_answer(asked_reader)).status == 200
    for _, one in [*kept, (reader, writer)]:
        one.close()
        await one.wait_closed()
    await _emptied(api)
    assert (await api.ask("GET", "/healthz")).status == 200


async def test_what_is_being_answered_is_not_closed_for_another(
    api: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all are, one too many is."""
    await api.ask("GET", "/healthz")
    await _emptied(api)
    monkeypatch.setattr(serving, "CONNECTIONS", 1)
    asked_reader, asked_writer = await api.connect()
    head = f"POST /v1/runs/mine/stop HTTP/1.1\r\nhost: {api.address}\r\nauthorization: Bearer {api.token}\r\n"
    asked_writer.write(
        f"{head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{{".encode()
    )
    assert api.server._runner is not None
    server = api.server._runner.server
    assert server is not None
    async with asyncio.timeout(10):
        while not any(found._current_request for found in server.connections):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)
    reader, writer = await api.connect()
    assert await asyncio.wait_for(reader.read(), 10) == b""
    asked_writer.write(b"}")
    assert (await read_answer(asked_reader)).status
    for one in (asked_writer, writer):
        one.close()
        await one.wait_closed()


async def _emptied(api: Controlled) -> None:
    """Wait until the server has seen everybody go."""
    assert api.server._runner is not None
    server = api.server._runner.server
    assert server is not None
    async with asyncio.timeout(10):
        while server.connections:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)


async def test_no_answer_is_for_another_site(api: Controlled) -> None:
    """Not kept, not framed, not read, and never with a field that allows it."""
    for path, token in (
        ("/v1/runs", None),
        ("/v1/runs", ""),
        ("/nothing", None),
        ("/metrics", None),
    ):
        said = await api.ask("GET", path, token=token, origin=api.server.url)
        assert said.headers["cache-control"] == "no-store"
        assert said.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in said.headers["content-security-policy"]
        assert not [name for name in said.headers if name.startswith("access-control")]
        assert api.token not in said.text


async def test_an_agent_cannot_ask_through_the_proxy(api: Controlled) -> None:
    """Not while recording, when everything else may be reached."""
    connection = await Connection.open(str(api.running.address))
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await connection.ask(f"{api.server.url}/healthz", credentials="mine:x")
    await connection.close()
    assert dict(api.running.engine.denied) == {api.address: 1}


async def test_names_that_were_given_are_answered(api: Controlled) -> None:
    """With any port, since something else may stand before us, which ends TLS."""
    for host, origin, status in [
        ("playhead.test", "https://playhead.test", 200),
        ("playhead.test:8443", "https://playhead.test:8443", 200),
        ("Playhead.test", "http://playhead.test", 200),
        ("playhead.test", "https://playhead.test:8443", 403),
        ("x.playhead.test", "https://x.playhead.test", 403),
    ]:
        assert (await api.ask("GET", "/v1/runs", host=host, origin=origin)).status == status


async def test_the_longest_body_is_documented() -> None:
    """As the longest text that a route takes fits into it."""
    assert f"| 413 | Body above {BODY_BYTES >> 20} MiB. |" in _PAGE
    assert ANSWER.most < BODY_BYTES
