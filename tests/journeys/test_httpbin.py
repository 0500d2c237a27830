"""httpbin as a broad origin: every endpoint it has, by every method, recorded once and played with it gone.

httpx asks over HTTP/1.1 and HTTP/2 with TLS, and a bare socket asks over plain HTTP, where a relay beside
httpbin keeps what it really said. The list of endpoints is httpbin's own: one that has no row fails. The full
count asks everything over each protocol; else they take turns, and what has a body goes over two.
"""

import os
import ssl
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from playhead.store import Store
from playhead.tape.exchange import Exchange
from playhead.tests.support.asgi import AsgiOrigin
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.process import Serve
from playhead.tests.support.relay import Relay
from playhead.tests.support.wire import Answer, Wire
from playhead.tests.support.wsgi import over_asgi, serving
from playhead.timeline import Receipt, build

if TYPE_CHECKING:
    import httpx

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
PARALLEL = 4
_SEED = "seed=7"
_JSON = {"content-type": "application/json"}


class Row(NamedTuple):
    """How an endpoint is asked."""

    path: str
    headers: dict[str, str] = {}  # noqa: RUF012  # nobody changes it
    body: bytes = b""


_BODY = b'{"a": [1, 2.50, "\xc3\xbc"]}'
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_BASIC = {"authorization": "Basic " + b64encode(b"me:secret").decode()}
ROWS: dict[str, tuple[Row, ...]] = {
    "/static/<path:filename>": (
        Row("/static/favicon.ico"),
        Row("/static/favicon.ico", {"range": "bytes=0-99"}),
        Row("/static/none"),
    ),
    "/": (Row("/"),),
    "/html": (Row("/html"),),
    "/robots.txt": (Row("/robots.txt"),),
    "/deny": (Row("/deny"),),
    "/ip": (Row("/ip"), Row("/ip?forwarded", {"x-forwarded-for": "192.0.2.7"})),
    "/uuid": (Row("/uuid"),),
    "/headers": (Row("/headers", {"x-mixed-Case": "a", "x-empty": ""}),),
    "/user-agent": (Row("/user-agent", {"user-agent": "an agent"}),),
    "/get": (Row("/get?a=1&a=2&b=%C3%BC&c"),),
    "/anything/<path:anything>": (Row("/anything/a/b%2Fc?d=e", _JSON, _BODY),),
    "/anything": (
        Row("/anything", _JSON, _BODY),
        Row("/anything?form", {"content-type": "application/x-www-form-urlencoded"}, b"a=1&b=2"),
        Row("/anything?bytes", {"content-type": "application/octet-stream"}, bytes(range(256))),
    ),
    "/post": (
        Row("/post", _JSON, _BODY),
        Row(
            "/post?multipart",
            {"content-type": "multipart/form-data; boundary=b"},
            b'--b\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n\x00\xff\r\n--b--\r\n',
        ),
    ),
    "/put": (Row("/put", _JSON, _BODY),),
    "/patch": (Row("/patch", _JSON, _BODY),),
    "/delete": (Row("/delete", _JSON, _BODY),),
    "/gzip": (Row("/gzip", {"accept-encoding": "gzip"}),),
    "/deflate": (Row("/deflate", {"accept-encoding": "deflate"}),),
    "/brotli": (Row("/brotli", {"accept-encoding": "br"}),),
    "/redirect/<int:n>": (Row("/redirect/2"), Row("/redirect/1?absolute=true")),
    "/redirect-to": (
        Row("/redirect-to?url=/get"),
        Row("/redirect-to?url=https://example.test/%C3%BC&status_code=307"),
    ),
    "/relative-redirect/<int:n>": (Row("/relative-redirect/2"),),
    "/absolute-redirect/<int:n>": (Row("/absolute-redirect/2"),),
    "/stream/<int:n>": (Row("/stream/7"),),
    # (1xx cannot be asked for: Flask would send it as the answer.)
    "/status/<codes>": tuple(
        Row(f"/status/{code}")
        for code in (200, 204, 205, 226, 301, 302, 304, 400, 401, 402, 404, 406, 407, 418, 429)
    )
    + tuple(Row(f"/status/{code}") for code in (500, 503, 599, "200:1,503:0", "no")),
    "/response-headers": (Row("/response-headers?X-A=1&X-A=2&x-b=%C3%A9&Content-Type=text/x"),),
    "/cookies": (Row("/cookies", {"cookie": "theme=dark; size=7"}),),
    "/forms/post": (Row("/forms/post"),),
    "/cookies/set/<name>/<value>": (Row("/cookies/set/theme/dark"),),
    "/cookies/set": (Row("/cookies/set?theme=dark&size=7"),),
    "/cookies/delete": (Row("/cookies/delete?theme", {"cookie": "theme=dark"}),),
    "/basic-auth/<user>/<passwd>": (
        Row("/basic-auth/me/secret"),
        Row("/basic-auth/me/secret?given", _BASIC),
    ),
    "/hidden-basic-auth/<user>/<passwd>": (
        Row("/hidden-basic-auth/me/secret"),
        Row("/hidden-basic-auth/me/secret?given", _BASIC),
    ),
    "/bearer": (Row("/bearer"), Row("/bearer?given", {"authorization": "Bearer a-token-of-mine"})),
    # (Answering the challenge is another request; see `test_a_digest_is_negotiated_again`.)
    "/digest-auth/<qop>/<user>/<passwd>": (Row("/digest-auth/auth/me/secret"),),
    "/digest-auth/<qop>/<user>/<passwd>/<algorithm>": (Row("/digest-auth/auth/me/secret/SHA-256"),),
    "/digest-auth/<qop>/<user>/<passwd>/<algorithm>/<stale_after>": (
        Row("/digest-auth/auth-int/me/secret/SHA-512/1"),
    ),
    "/delay/<delay>": (Row("/delay/0.05", _JSON, _BODY),),
    "/drip": (
        Row("/drip?numbytes=5&duration=0.05&delay=0.02"),
        Row("/drip?numbytes=3&duration=0.01&code=500"),
    ),
    "/base64/<value>": (Row("/base64/w7xiZXI="), Row("/base64/!")),
    "/cache": (Row("/cache"), Row("/cache", {"if-none-match": "any"})),
    "/etag/<etag>": (
        Row("/etag/v1"),
        Row("/etag/v1", {"if-none-match": '"v1"'}),
        Row("/etag/v1?match", {"if-match": '"v2"'}),
    ),
    "/cache/<int:value>": (Row("/cache/60"),),
    "/encoding/utf8": (Row("/encoding/utf8"),),
    "/bytes/<int:n>": (Row(f"/bytes/4096?{_SEED}"), Row("/bytes/0"), Row("/bytes/100000")),
    "/stream-bytes/<int:n>": (Row(f"/stream-bytes/10000?{_SEED}&chunk_size=1000"),),
    "/range/<int:numbytes>": (
        Row("/range/2000"),
        Row("/range/2000", {"range": "bytes=10-19"}),
        Row("/range/2000", {"range": "bytes=-7"}),
        Row("/range/2000", {"range": "bytes=5000-"}),
        Row("/range/50?duration=0.05&chunk_size=10"),
    ),
    "/links/<int:n>/<int:offset>": (Row("/links/5/2"),),
    "/links/<int:n>": (Row("/links/5"),),
    "/image": (Row("/image", {"accept": "image/webp"}), Row("/image", {"accept": "text/plain"})),
    "/image/png": (Row("/image/png"),),
    "/image/jpeg": (Row("/image/jpeg"),),
    "/image/webp": (Row("/image/webp"),),
    "/image/svg": (Row("/image/svg"),),
    "/xml": (Row("/xml"),),
    "/json": (Row("/json"),),
}
"""By the rule of httpbin's url map."""


class Ask(NamedTuple):
    """One request."""

    rule: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@cache
def httpbin() -> Any:
    """Give the application."""
    from httpbin import app  # here: every process that runs tests collects this file

    return app


@cache
def asks() -> list[Ask]:
    """The first row of each rule by every method it has, the others by one; by all in the full count."""
    found: list[Ask] = []
    for rule in httpbin().url_map.iter_rules():
        methods = sorted(rule.methods or ())
        for index, row in enumerate(ROWS.get(rule.rule, ())):
            if index and not FULL:
                methods = ["POST" if row.body else "GET"]
            for method in methods:
                body = row.body if method in _WITH_BODY else b""
                headers = {"accept": "*/*", **row.headers}
                if not body:
                    headers.pop("content-type", None)
                found.append(Ask(rule.rule, method, row.path, headers, body))
    return found


SECURE = ("HTTP/1.1", "HTTP/2")
PROTOCOLS = (*SECURE, "plain")


@cache
def numbers(protocol: str) -> list[int]:
    """Give the numbers of what is asked over a protocol."""
    turn = PROTOCOLS.index(protocol)
    return [
        number
        for number, ask in enumerate(asks())
        if FULL
        or number % 3 == turn
        or (ask.method not in ("HEAD", "OPTIONS") and (number + 1) % 3 == turn)
    ]


class Seen(NamedTuple):
    """An answer as httpx gives it, with nothing undone."""

    version: str
    status: int
    reason: bytes
    fields: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Story:
    """Everything that was asked, by its number in `asks`."""

    seen: dict[tuple[str, str], dict[int, Seen]] = field(default_factory=dict)
    """By protocol, and `recorded` or `played`."""
    bare: dict[str, dict[int, Answer]] = field(default_factory=dict)
    said: dict[int, Answer] = field(default_factory=dict)
    """What httpbin said to who asked with a bare socket."""
    tapes: dict[str, dict[int, Exchange]] = field(default_factory=dict)
    """By run, and then by the number of the ask."""
    receipts: dict[str, Receipt] = field(default_factory=dict)
    digests: list[list[int]] = field(default_factory=list)


def _number(index: int) -> dict[str, str]:
    return {"x-number": str(index)}


def _ask_httpx(transport: "httpx.HTTPTransport", url: str, index: int) -> Seen:
    """Ask without a client above: no cookies, redirects or fields that nobody asked for."""
    import httpx

    ask = asks()[index]
    host = {"host": url.partition("//")[2]}
    headers = [*host.items(), *ask.headers.items(), *_number(index).items()]
    request = httpx.Request(ask.method, url + ask.path, headers=headers, content=ask.body or None)
    response = transport.handle_request(request)
    body = b"".join(response.stream)  # type: ignore[arg-type]  # it is not asynchronous
    response.close()
    said = response.extensions
    reason = said.get("reason_phrase", b"")
    version = said["http_version"].decode()
    return Seen(version, response.status_code, reason, response.headers.raw, body)


def _ask_bare(proxy: Serve, url: str, index: int) -> Answer:
    ask = asks()[index]
    host, _, port = proxy.address.partition(":")
    given = b64encode(b"plain:x").decode()
    fields = {
        "Host": url.partition("//")[2],
        "Proxy-Authorization": f"Basic {given}",
        **ask.headers,
        **_number(index),
        **({"Content-Length": str(len(ask.body))} if ask.body else {}),
    }
    head = f"{ask.method} {url}{ask.path} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with Wire.open(host, int(port)) as wire:
        return wire.ask(head.encode() + b"\r\n" + ask.body)


def _digest(proxy: Serve, url: str, ca: Path) -> list[int]:
    """Have httpx answer a challenge; give the statuses it saw."""
    import httpx

    context = ssl.create_default_context(cafile=str(ca))
    with httpx.Client(proxy=proxy.url_for("digest"), verify=context) as client:
        answer = client.get(
            f"{url}/digest-auth/auth/me/secret", auth=httpx.DigestAuth("me", "secret")
        )
        return [*(before.status_code for before in answer.history), answer.status_code]


def _all(made: Story, phase: str, proxy: Serve, secure: str, plain: str, ca: Path) -> None:
    import httpx

    context = ssl.create_default_context(cafile=str(ca))
    with ThreadPoolExecutor(PARALLEL) as pool:
        for version in SECURE:
            through = httpx.Proxy(proxy.url_for(version.replace("/", "-")))
            http2 = version == "HTTP/2"
            with httpx.HTTPTransport(
                verify=context, proxy=through, http1=not http2, http2=http2
            ) as transport:
                # One after the other over HTTP/2: threads on one connection break httpx's table of fields.
                each = map if http2 else pool.map
                asked = numbers(version)
                answers = each(lambda index: _ask_httpx(transport, secure, index), asked)
                made.seen[version, phase] = dict(zip(asked, answers, strict=True))
        asked = numbers("plain")
        bare = pool.map(lambda index: _ask_bare(proxy, plain, index), asked)
        made.bare[phase] = dict(zip(asked, bare, strict=True))
    made.digests.append(_digest(proxy, secure, ca))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    """Record every ask over every protocol, stop httpbin, and ask again."""
    made = Story()
    store = tmp_path_factory.mktemp("httpbin") / "store"
    ca = store / "ca" / "playhead-ca-cert.pem"
    flags = ("--store", store, "--listen", "127.0.0.1:0", "--upstream-ca", certificates.root)
    with (
        serving(httpbin()) as port,
        AsgiOrigin(over_asgi(httpbin()), certificates) as secure,
        Relay(port) as relay,
    ):
        with Serve("--mode", "record", *flags) as proxy:
            _all(made, "recorded", proxy, secure.url, relay.url, ca)
        secure.stop()
        relay.stop()
        with Serve("--mode", "playback", *flags) as proxy:
            _all(made, "played", proxy, secure.url, relay.url, ca)
    made.said = {index: _split(bytes(relay.said[b"%d" % index])) for index in numbers("plain")}
    with Store.open(store, readonly=True) as opened:
        for run in ("HTTP-1.1", "HTTP-2", "plain"):
            made.tapes[run] = {
                int(exchange.request.header(b"x-number") or b"-1"): exchange
                for exchange in opened.exchanges.all(opened.runs.get(run))
            }
        for run in ("HTTP-1.1", "HTTP-2", "plain", "digest"):
            made.receipts[run] = build(opened, opened.runs.get(f"{run}@1"))
    return made


def _split(said: bytes) -> Answer:
    """Take what a server said on a connection for one answer."""
    head, mark, body = said.partition(b"\r\n\r\n")
    return Answer(head + mark, body)


def _unredacted(
    fields: list[tuple[bytes, bytes]], exchange: Exchange
) -> list[tuple[bytes, bytes | int]]:
    """Give fields with the length alone of those that a redaction is declared for."""
    places = {redaction.place for redaction in exchange.redactions}
    return [
        (name, len(value) if f"response.header.{name.decode().lower()}" in places else value)
        for name, value in fields
    ]


def test_every_endpoint_has_a_row() -> None:
    """httpbin's own list is the table's, and each method of each is asked."""
    rules = {rule.rule for rule in httpbin().url_map.iter_rules()}
    assert ROWS.keys() == rules
    asked = [asks()[number] for protocol in PROTOCOLS for number in numbers(protocol)]
    assert all(ask in asked for ask in asks())
    assert {ask.rule for ask in asked} == rules
    assert {ask.method for ask in asked} >= {"GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"}


@pytest.mark.parametrize("version", SECURE)
def test_every_endpoint_is_played_as_it_was_recorded(story: Story, version: str) -> None:
    """Version, status, reason, fields with case, order and duplicates, and the bytes of the body."""
    recorded, played = story.seen[version, "recorded"], story.seen[version, "played"]
    tape = story.tapes[version.replace("/", "-")]
    assert recorded.keys() == played.keys() == tape.keys() == {*numbers(version)}
    for index in numbers(version):
        ask = asks()[index]
        was, now = recorded[index], played[index]
        assert was.version == version
        fields = [_unredacted(seen.fields, tape[index]) for seen in (was, now)]
        assert fields[0] == fields[1], ask
        assert was._replace(fields=[]) == now._replace(fields=[]), ask


def test_every_endpoint_is_played_to_the_byte(story: Story) -> None:
    """Heads as written, chunk boundaries, and where the answer ended."""
    for index in numbers("plain"):
        ask = asks()[index]
        was, now = story.bare["recorded"][index], story.bare["played"][index]
        assert (was.ending, now.ending) == ("whole", "whole"), ask
        assert now.body == was.body, ask
        kept = [
            (answer.head.split(b"\r\n")[0], _unredacted(answer.fields, story.tapes["plain"][index]))
            for answer in (was, now)
        ]
        assert kept[0] == kept[1], ask
        assert len(now.head) == len(was.head), ask


def test_what_httpbin_said_is_what_was_recorded(story: Story) -> None:
    """Beside httpbin and behind the proxy the same bytes are seen."""
    for index in numbers("plain"):
        ask = asks()[index]
        said, got = story.said[index], story.bare["recorded"][index]
        assert got.head == said.head, ask
        assert got.content == said.content, ask


@pytest.mark.parametrize("run", ["HTTP-1.1", "HTTP-2", "plain"])
def test_the_tape_holds_the_bodies(story: Story, run: str) -> None:
    """Of the request and of the answer, and that nothing was left out."""
    for index in numbers(run.replace("-", "/")):
        ask = asks()[index]
        exchange = story.tapes[run][index]
        assert exchange.request.body == ask.body, ask
        assert exchange.response is not None
        if run == "plain":
            seen = story.bare["recorded"][index].content
        else:
            seen = story.seen[run.replace("-", "/"), "recorded"][index].body
        assert exchange.response.body == seen, ask
        assert exchange.warnings == (), ask


@pytest.mark.parametrize("run", ["HTTP-1.1", "HTTP-2", "plain", "digest"])
def test_every_replay_is_faithful(story: Story, run: str) -> None:
    """Everything was served, nothing diverged, nothing is unused."""
    receipt = story.receipts[run]
    assert receipt.faithful is True, receipt.to_json()


def test_a_digest_is_negotiated_again(story: Story) -> None:
    """The client answers the recorded challenge with another response, and is let in as it was."""
    assert story.digests == [[401, 200], [401, 200]]
