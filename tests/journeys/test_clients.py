"""Real clients, unmodified: what they see on a replay is what they saw while they were recorded.

Everything is recorded at once, then every origin is stopped and a listener that only counts takes its
port, then everything is replayed at once. The tests look at what came of it. Half of the clients run
under `playhead record` and `playhead replay`, the other half share one `playhead serve`, told apart by
their credentials.
"""

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from playhead.proxy.trust.environment import environment
from playhead.store import Store
from playhead.tape.exchange import Exchange
from playhead.tests.support import answers, prepared
from playhead.tests.support.asgi import AsgiOrigin
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.mcp_server import McpOrigin
from playhead.tests.support.needs import Outcomes, has
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import Serve, playhead, read_json
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import Receipt, build

CLIENTS = Path(__file__).with_name("clients")
PARALLEL = 4

# ---- what is run -------------------------------------------------------------------------------------

LAUNCHED = ("curl", "python")
"""Runs under `playhead record` and `playhead replay`; the others are under `serve`.

The OpenAI SDK is launched in examples/test_double_refund.py.
"""

COMMANDS = {
    "anthropic": ("anthropic_sdk.py", "{h1}/anthropic"),
    "openai": ("openai_sdk.py", "{h1}/openai"),
    "python": ("plain_python.py", "{h1}", "{h2}"),
    "mcp": ("mcp_client.py", "{mcp}/mcp"),
    "curl": (
        *("curl", "-sS", "-i", "--suppress-connect-headers", "--http1.1", "{h1}/curl/bytes"),
        *("--next", "-sS", "-i", "--http1.1", "-d", "a=1&b=2", "{h1}/curl/echo"),
        *("--next", "-sS", "-i", "--http1.1", "-F", "file=@{upload}", "{h1}/curl/echo?multipart"),
        *("--next", "-sS", "-i", "--http2", "{h2}/curl/bytes"),
        *("--next", "-sS", "-i", "--http2", "-d", "a=1&b=2", "{h2}/curl/echo"),
        *("--next", "-sS", "-i", "--http2", "-F", "file=@{upload}", "{h2}/curl/echo?multipart"),
        *("--next", "-sS", "-i", "{plain}/curl/bytes"),
        *("--next", "-sS", "-i", "-d", "a=1&b=2", "{plain}/curl/echo"),
    ),
}
"""By run: a script among `clients` with its arguments, or a whole command."""

CASES: dict[str, tuple[str, ...]] = {
    "bytes": ("/bytes",),
    "head": ("-I", "/bytes"),
    "options": ("-X", "OPTIONS", "/text"),
    "delete": ("-X", "DELETE", "/text?id=7&id=8"),
    "empty": ("/empty",),
    "none-204": ("/none",),
    "cached-304": ("-H", 'If-None-Match: "v1"', "/cached"),
    "hop-302": ("-L", "/hop"),
    "see-303": ("-L", "-d", "x=1", "/see"),
    "gzip": ("-H", "Accept-Encoding: gzip", "/gzip"),
    "chunks": ("--raw", "-N", "/chunks"),
    "large": ("/large",),
    "upload": ("-H", "Expect: 100-continue", "--data-binary", "@{upload}", "/echo"),
    "put": ("-T", "{upload}", "/echo"),
    "chunked-put": ("-H", "Transfer-Encoding: chunked", "-T", "{small}", "/echo"),
}
"""What curl is asked to do over each protocol, each as a run of its own under `serve`."""

PROTOCOLS = {"h1": ("--http1.1",), "h2": ("--http2",), "plain": ()}


def _is_tried(protocol: str, case: str) -> bool:
    """Say whether curl does this over a protocol: over all, or today over HTTP/1.1 and one of the two others in turns."""
    if (protocol, case) == ("h2", "chunked-put"):
        return False  # HTTP/2 has no transfer codings
    if FULL or protocol == "h1":
        return True
    return (protocol == "h2") == (list(CASES).index(case) % 2 == 0 or case == "large")


OWN_PATHS = {"python": ("/httpx", "/requests/", "/aiohttp/", "/urllib/")}
"""Where a run asks at other paths than /RUN/."""

RAW_REQUEST = (
    "GET /raw/{name} HTTP/1.1\r\nHOST: {authority}\r\nx-lower: 1\r\nX-UPPER: 2\r\nX-Twice: b\r\n"
    "X-Between: ,\r\nx-twice: a\r\nConnection: close\r\n{more}\r\n"
)
RAW_BODIES = {"trailers": "6\r\nupload\r\n0\r\nX-Sum: 7\r\nx-second: b\r\n\r\n"}
"""Sent in chunks where a request has one."""
RAW_ANSWERS = {
    # Order, case and duplicates of fields, and a reason phrase of its own.
    "fields": b"HTTP/1.1 200 Fine By Me\r\nx-LOWER: 1\r\nX-Twice: b\r\nDate: never\r\nx-twice: a\r\n"
    b"X-TWICE: b\r\nSet-Cookie: theme=; Path=/\r\nX-Bytes: \xe9\xff\r\nContent-Length: 2\r\n\r\nok",
    # Chunks in one piece on the wire keep their boundaries.
    "chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    b"7\r\ndata: 1\r\n2\r\n\n\n\r\n9\r\ndata: 2\n\n\r\n1\r\nx\r\n0\r\n\r\n",
    # Without a length the end of the connection is the end of the body.
    "until-the-end": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
    "old": b"HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\nold",
    "odd-status": b"HTTP/1.1 299 Strange\r\nContent-Length: 3\r\n\r\nodd",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
    b"3\r\nabc\r\n0\r\nX-Sum: 7\r\nx-second: b\r\n\r\n",
    "error": b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfinal",
}


# ---- running it --------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of one client."""

    recorded: subprocess.CompletedProcess[bytes]
    replayed: subprocess.CompletedProcess[bytes]
    tape: list[Exchange] = field(default_factory=list)
    receipt: Receipt | None = None
    written: dict[str, Any] = field(default_factory=dict)
    """The receipt's JSON as `replay` wrote it."""

    def lines(self) -> dict[str, dict[str, Any]]:
        """Give what a script said while it was recorded, by case."""
        return {line["case"]: line for line in map(json.loads, self.recorded.stdout.splitlines())}


@dataclass
class Story:
    """Everything that was recorded and replayed."""

    outcomes: Outcomes[Outcome]
    log: answers.Log
    mcp_sent: dict[str, list[bytes]]
    raw_got: list[tuple[bytes, bytes]]
    """Heads and bodies."""
    raw_authority: str
    touched: int
    """Connections that reached an origin's port while replaying."""
    store: Path


class Traps:
    """Listens where the origins were, and counts."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.count = 0
        self._sockets = [socket.create_server(("127.0.0.1", port)) for port in ports]
        for listening in self._sockets:
            threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listening.accept()
                self.count += 1
                accepted.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for listening in self._sockets:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()


def _raw_head(name: str, authority: str) -> str:
    more = "Transfer-Encoding: chunked\r\n" if name in RAW_BODIES else ""
    return RAW_REQUEST.format(name=name, authority=authority, more=more)


async def _say_raw(conversation: Conversation) -> None:
    name = conversation.path.rpartition("/")[2]
    await conversation.say(RAW_ANSWERS[name])


def _jobs(places: dict[str, str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Give the commands to launch and those to run under `serve`, by run."""
    launched: dict[str, list[str]] = {}
    served: dict[str, list[str]] = {}
    for name, command in COMMANDS.items():
        words = [word.format(**places) for word in command]
        script = (
            [sys.executable, str(CLIENTS / words[0])] if words[0].endswith(".py") else words[:1]
        )
        (launched if name in LAUNCHED else served)[name] = [*script, *words[1:]]
    for protocol, chosen in PROTOCOLS.items():
        for case, (*flags, path) in CASES.items():
            if not _is_tried(protocol, case):
                continue
            name = f"{protocol}-{case}"
            common = [
                "curl",
                "-sS",
                "-i",
                "--suppress-connect-headers",
                "--max-time",
                "30",
                *chosen,
            ]
            given = [flag.format(**places) for flag in flags]
            served[name] = [*common, *given, f"{places[protocol]}/{name}{path}"]
    authority = places["raw"].partition("//")[2]
    for name in RAW_ANSWERS:
        script = [sys.executable, str(CLIENTS / "raw_socket.py"), places["raw"]]
        served[f"raw-{name}"] = [
            *script,
            json.dumps(_raw_head(name, authority)),
            RAW_BODIES.get(name, ""),
        ]
    for jobs in (launched, served):
        for name in [name for name, command in jobs.items() if command[0] == "curl"]:
            if not has("curl"):
                del jobs[name]
    return launched, served


def _run(command: Sequence[str], env: dict[str, str] | None = None) -> Any:
    return prepared.run(command, imports=prepared.SDKS, timeout=60, env=env, process_group=0)


def _run_all(
    launcher: list[str],
    launched: dict[str, list[str]],
    served: dict[str, list[str]],
    proxy: Serve,
    public_dir: Path,
) -> dict[str, Any]:
    """Run every client at the same time; `launcher` is the command of ours, {run} its run."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        running = {
            name: pool.submit(_run, [*(word.format(run=name) for word in launcher), "--", *command])
            for name, command in launched.items()
        }
        for name, command in served.items():
            env = environment(os.environ, proxy_url=proxy.url_for(name), public_dir=public_dir)
            running[name] = pool.submit(_run, command, env)
        return {name: future.result() for name, future in running.items()}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    """Record every client, stop the origins, replay every client."""
    folder = tmp_path_factory.mktemp("clients")
    store, receipts = folder / "store", folder / "receipts"
    receipts.mkdir()
    upload, small = folder / "upload.bin", folder / "small.bin"
    upload.write_bytes(answers.LARGE[::-1])
    small.write_bytes(answers.ALL_BYTES)
    ours = [sys.executable, "-m", "playhead.proxy.cli"]
    flags = ["--store", str(store), "--upstream-ca", str(certificates.root)]
    log = answers.Log()
    handler = answers.over_http1(log)
    with (
        Origin({"/{path:.*}": handler}, certificates) as h1,
        Origin({"/{path:.*}": handler}) as plain,
        AsgiOrigin(answers.over_asgi(log), certificates) as h2,
        McpOrigin(certificates, prepared.SDKS) as mcp,
        RawOrigin(_say_raw, certificates) as raw,
    ):
        places = {"h1": h1.url, "plain": plain.url, "h2": h2.url, "mcp": mcp.url, "raw": raw.url}
        launched, served = _jobs({**places, "upload": str(upload), "small": str(small)})
        with Serve("--mode", "record", "--listen", "127.0.0.1:0", *flags) as proxy:
            launcher = [*ours, "record", *flags, "--run", "{run}"]
            recorded = _run_all(launcher, launched, served, proxy, store / "ca")
        origins = (h1, plain, h2, mcp, raw)
        for origin in origins:
            origin.stop()
        with (
            Traps([origin.port for origin in origins]) as traps,
            Serve("--mode", "playback", "--listen", "127.0.0.1:0", *flags) as proxy,
        ):
            launcher = [*ours, "replay", *flags, "--receipt", f"{receipts}/{{run}}.json", "{run}"]
            replayed = _run_all(launcher, launched, served, proxy, store / "ca")
            touched = traps.count
    outcomes = Outcomes(
        {name: Outcome(recorded[name], replayed[name]) for name in recorded}, "curl"
    )
    with Store.open(store, readonly=True) as opened:
        for name, outcome in outcomes.items():
            run = opened.runs.find(name)
            outcome.tape = list(opened.exchanges.all(run)) if run else []
            again = opened.runs.find(f"{name}@1")
            outcome.receipt = build(opened, again) if again else None
            written = receipts / f"{name}.json"
            outcome.written = json.loads(written.read_text()) if written.exists() else {}
    authority = raw.url.partition("//")[2]
    got = list(zip(raw.heads, raw.bodies, strict=True))
    return Story(outcomes, log, mcp.sent, got, authority, touched, store)


# ---- what must hold for every client -----------------------------------------------------------------

RUNS = [
    *COMMANDS,
    *(
        f"{protocol}-{case}"
        for protocol in PROTOCOLS
        for case in CASES
        if _is_tried(protocol, case)
    ),
    *(f"raw-{name}" for name in RAW_ANSWERS),
]


@pytest.mark.parametrize("name", RUNS)
def test_a_client_sees_on_replay_what_it_saw_while_recorded(story: Story, name: str) -> None:
    """Status, fields in order and case, bodies, events, exit code: the same transcript."""
    outcome = story.outcomes[name]
    assert outcome.recorded.returncode == 0, outcome.recorded.stderr.decode()
    assert outcome.recorded.stdout
    assert outcome.replayed.stdout == outcome.recorded.stdout, outcome.replayed.stderr.decode()
    assert outcome.replayed.returncode == 0, outcome.replayed.stderr.decode()


@pytest.mark.parametrize("name", RUNS)
def test_a_replay_is_faithful_and_uses_the_whole_tape(story: Story, name: str) -> None:
    """Every recorded exchange was served, and nothing else was asked for."""
    outcome = story.outcomes[name]
    receipt = outcome.receipt
    assert receipt is not None
    assert receipt.faithful is True, receipt.to_json()
    assert receipt.counts["served"] == len(outcome.tape) == receipt.requests > 0
    assert not receipt.egress


@pytest.mark.parametrize("name", LAUNCHED)
def test_the_receipt_that_replay_writes_is_that_of_the_store(story: Story, name: str) -> None:
    """`--receipt` says what `playhead receipt` says, and is signed."""
    outcome = story.outcomes[name]
    assert outcome.written["signature"]["algorithm"] == "ed25519"
    assert outcome.written["faithful"] is True
    assert outcome.receipt is not None
    unsigned = {key: value for key, value in outcome.written.items() if key != "signature"}
    assert unsigned == json.loads(json.dumps(outcome.receipt.to_json()))


def test_no_origin_is_reached_in_a_replay(story: Story) -> None:
    """A listener on each origin's port counts no connection."""
    assert story.touched == 0


@pytest.mark.parametrize(
    "name", [name for name in RUNS if name != "mcp" and not name.startswith("raw")]
)
def test_the_tape_holds_what_the_origin_got_and_sent(story: Story, name: str) -> None:
    """Bodies of both directions, byte for byte, and each piece of a stream on its own."""
    outcome = story.outcomes[name]
    left = {
        key: list(exchanged)
        for key, exchanged in story.log.exchanged.items()
        if key.partition(" ")[2].startswith(OWN_PATHS.get(name, (f"/{name}/",)))
    }
    assert outcome.tape
    for exchange in outcome.tape:
        request, response = exchange.request, exchange.response
        assert response is not None
        assert response.complete
        received, sent = left[f"{request.method} {request.target}"].pop(0)
        assert request.body == received
        assert response.status == sent.status
        assert response.body == (b"" if request.method == "HEAD" else sent.body)
        if sent.streamed and request.http_version == "HTTP/1.1":
            # (Over HTTP/2 the origin's own library puts pieces together.)
            assert tuple(chunk.size for chunk in response.chunks) == tuple(map(len, sent.pieces))
    assert not any(left.values())


def test_show_prints_the_bytes_of_the_tape(story: Story) -> None:
    """`playhead show --json` gives the body that the origin sent, as base64 where it is no text."""
    assert story.outcomes["h1-bytes"].tape
    shown = read_json("show", "h1-bytes", "1", "--store", story.store)
    assert base64.b64decode(shown["response"]["body_base64"]) == answers.ALL_BYTES
    assert shown["response"]["complete"] is True
    listed = playhead("show", "openai", "--raw", "--store", story.store)
    assert listed.returncode == 0
    assert listed.stdout.count("inference") == 4


# ---- what each of them is to have seen ---------------------------------------------------------------

SDK_TEXT = {"openai": "Grüße from a fake model ✓", "anthropic": "Grüße from another ✓"}


@pytest.mark.parametrize("case", ["sync", "sync-stream", "async", "async-stream"])
@pytest.mark.parametrize("name", SDK_TEXT)
def test_an_sdk_gets_its_answer(story: Story, name: str, case: str) -> None:
    """Whole and streamed, the text and the events are the provider's."""
    line = story.outcomes[name].lines()[case]
    assert line["status"] == 200
    if not case.endswith("stream"):
        assert SDK_TEXT[name] in line["text"]
        return
    text = "".join(_delta(json.loads(event)) for event in line["events"])
    assert text == SDK_TEXT[name]
    assert len(line["events"]) > 5


def _delta(event: dict[str, Any]) -> str:
    if event.get("type") == "content_block_delta":
        return str(event["delta"]["text"])
    return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))


@pytest.mark.parametrize("name", SDK_TEXT)
def test_models_are_asked_without_content_coding_and_the_tape_says_what_the_client_asked(
    story: Story, name: str
) -> None:
    """`accept-encoding: identity` goes upstream, the client's own words go on the tape."""
    upstream = [
        headers.get("accept-encoding")
        for (_, target), headers in zip(story.log.requests, story.log.headers, strict=True)
        if target.startswith(f"/{name}/")
    ]
    assert upstream == ["identity"] * 4
    for exchange in story.outcomes[name].tape:
        asked = exchange.request.header(b"accept-encoding")
        assert asked is not None
        assert b"gzip" in asked


def test_other_requests_are_asked_as_the_client_asked(story: Story) -> None:
    """Reads keep their `accept-encoding`, and a gzip body stays as it was sent."""
    (exchange,) = story.outcomes["h1-gzip"].tape
    asked = [
        headers.get("accept-encoding")
        for (_, target), headers in zip(story.log.requests, story.log.headers, strict=True)
        if target.startswith("/h1-gzip/")
    ]
    assert asked == ["gzip"]
    assert exchange.response is not None
    assert exchange.response.body == answers.GZIPPED
    assert exchange.response.header(b"content-encoding") == b"gzip"


def test_httpx_speaks_the_protocol_of_the_upstream(story: Story) -> None:
    """HTTP/2 where the upstream has it, HTTP/1.1 elsewhere, while recording and on replay."""
    lines = story.outcomes["python"].lines()
    spoken = {case: line["version"] for case, line in lines.items() if "version" in line}
    assert spoken == {
        case: "HTTP/1.1" if case.startswith("httpx-h1") else "HTTP/2" for case in spoken
    }
    assert len(spoken) == 12


@pytest.mark.parametrize("name", ["h2-bytes", "h2-large", "h2-chunks"])
def test_curl_speaks_http2_on_replay(story: Story, name: str) -> None:
    """The protocol that was negotiated is on the tape."""
    assert story.outcomes[name].replayed.stdout.startswith(b"HTTP/2 200")


@pytest.mark.parametrize(
    ("case", "cases"),
    [
        ("httpx", {"httpx-h1-multipart", "httpx-h2-multipart", "httpx-async-large"}),
        ("requests", {"requests-gzip", "requests-multipart", "requests-see", "requests-raw-gzip"}),
        ("aiohttp", {"aiohttp-get", "aiohttp-post", "aiohttp-multipart", "aiohttp-stream"}),
        ("urllib", {"urllib-bytes", "urllib-echo"}),
    ],
)
def test_python_clients_did_what_they_are_here_for(
    story: Story, case: str, cases: set[str]
) -> None:
    """Every client of the script came to its end."""
    lines = story.outcomes["python"].lines()
    assert cases <= lines.keys()
    assert all(line["status"] == 200 for name, line in lines.items() if name.startswith(case))


def test_an_mcp_client_talks_to_its_server(story: Story) -> None:
    """Initialize, list, call: results and logs are the server's."""
    outcome = story.outcomes["mcp"]
    said = [json.loads(line) for line in outcome.recorded.stdout.splitlines()]
    assert [line["case"] for line in said] == [
        "initialize",
        "tools",
        "add",
        *("log",) * 3,
        "count",
        "fail",
    ]
    assert said[0]["session"]
    assert '"42"' in said[2]["result"]
    assert [line["data"] for line in said if line["case"] == "log"] == ["at 1", "at 2", "at 3"]
    assert '"isError":true' in said[-1]["result"]


def test_the_tape_holds_what_the_mcp_server_sent(story: Story) -> None:
    """What passed of each stream is on the tape, the whole of it where the client stayed."""
    left = {key: list(bodies) for key, bodies in story.mcp_sent.items()}
    assert story.outcomes["mcp"].tape
    for exchange in story.outcomes["mcp"].tape:
        sent = left[f"{exchange.request.method} {exchange.request.target}"].pop(0)
        body = exchange.response.body if exchange.response else b""
        if exchange.gone is None:
            assert body == sent
        else:
            assert sent.startswith(body)


@pytest.mark.parametrize("name", RAW_ANSWERS)
def test_an_answer_comes_through_byte_for_byte(story: Story, name: str) -> None:
    """Status line, order and case of fields, duplicates, chunk boundaries: as the origin wrote them."""
    (line,) = story.outcomes[f"raw-{name}"].lines().values()
    assert line["received"].encode("latin-1") == RAW_ANSWERS[name]


@pytest.mark.parametrize("name", RAW_ANSWERS)
def test_a_request_reaches_the_origin_byte_for_byte(story: Story, name: str) -> None:
    """The origin reads the head and the trailers that the client wrote."""
    wrote = _raw_head(name, story.raw_authority).encode(), RAW_BODIES.get(name, "").encode()
    assert [got for got in story.raw_got if f"/raw/{name} ".encode() in got[0]] == [wrote]


def test_an_upload_that_waits_is_told_to_continue(story: Story) -> None:
    """`Expect: 100-continue` is answered, and a megabyte follows."""
    outcome = story.outcomes["h1-upload"]
    assert outcome.recorded.stdout.startswith(b"HTTP/1.1 100 Continue\r\n")
    assert len(outcome.tape[0].request.body) == len(answers.LARGE)
