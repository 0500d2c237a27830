"""Who may ask the page, and for what: each request of the table gets its status, and none changes anything unasked."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from playhead.config import Config
from playhead.proxy.control.address import open_token
from playhead.tests.support.kept import kept_bytes
from playhead.tests.web.cases.page_process import Answer, Ui, find_onward, path_of
from playhead.tests.web.cases.refund_store import RUN, write_refund_store
from playhead.tests.web.cases.requests import ASKED, Asked


class Servers:
    """Three processes of one store: the one that is asked, one with `--allow-run`, and a third."""

    def __init__(self, stack: ExitStack, store: Path) -> None:
        self.store = store
        self.reader, self.ruler, third = (
            stack.enter_context(Ui(store, *flags)) for flags in ((), ("--allow-run",), ())
        )
        self.used = _token(self.reader)
        self.cookies = {"reader": self.reader.open_session(), "ruler": self.ruler.open_session()}
        self.cookies["other process"] = third.open_session()
        self.cookies["made up"] = "playhead=" + "A" * 43
        self.bearer = open_token(Config(store=store))

    def send(self, asked: Asked) -> Answer:
        """Send a request of the table."""
        if "{token}" in asked.path:
            with Ui(self.store) as fresh:
                return self._send(fresh, asked)
        return self._send(self.ruler if asked.session == "ruler" else self.reader, asked)

    def _send(self, ui: Ui, asked: Asked) -> Answer:
        def fill(text: str) -> str:
            given = {"host": ui.host, "port": ui.port, "name": ui.host.partition(":")[0]}
            given |= {"token": _token(ui), "used": self.used, "bearer": self.bearer}
            return re.sub(r"\{(\w+)\}", lambda found: str(given[found[1]]), text)

        fields = {"host": fill(asked.host)} if asked.host else {}
        if asked.session in self.cookies:
            fields["cookie"] = self.cookies[asked.session]
        if asked.session in ("store token", "wrong token"):
            right = asked.session == "store token"
            fields["authorization"] = f"Bearer {self.bearer if right else self.bearer[::-1]}"
        fields |= {name: fill(value) for name, value in asked.fields.items()}
        return ui.send(asked.method, fill(asked.path), fields, asked.body)


def _token(ui: Ui) -> str:
    return ui.led.partition("token=")[2]


@pytest.fixture(scope="module")
def servers(refund_store: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack, refund_store)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.name)
def test_a_request_gets_its_status(servers: Servers, asked: Asked) -> None:
    """It leads to no other origin, allows nothing to other sites, sets no second cookie and shows no file."""
    answer = servers.send(asked)
    assert answer.status in asked.status
    assert asked.says in answer.text
    assert "access-control-" not in " ".join(name for name, _ in answer.fields)
    location = answer.field("location")
    assert not location or (location.startswith("/") and not location.startswith(("//", "/\\")))
    assert [
        value for name, value in answer.fields if name == "set-cookie" and "pwned" in value
    ] == []
    assert "root:" not in answer.text
    assert servers.bearer not in answer.text
    if answer.status == 405:
        assert answer.field("allow")
    if asked.method == "TRACE":
        assert "cookie" not in answer.text.lower()


def test_no_request_of_the_table_has_changed_the_store(tmp_path: Path) -> None:
    """All of them once more on a store of its own: its runs are byte for byte what they were."""
    store = write_refund_store(tmp_path / "store")
    before = _runs(store)
    with ExitStack() as stack:
        servers = Servers(stack, store)
        for asked in ASKED:
            servers.send(asked)
    assert _runs(store) == before


def _runs(store: Path) -> dict[str, bytes]:
    return {name: data for name, data in kept_bytes(store) if name.startswith(RUN)}


def test_every_answer_says_what_a_browser_may_do_with_it(servers: Servers) -> None:
    """Nothing is guessed, framed, kept or sent on; the policy allows our own files alone."""
    for path in ("/runs", path_of(RUN, 6), "/gates", "/destinations", "/nowhere", "/data/runs"):
        answer = servers.reader.ask(path, servers.cookies["reader"])
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in answer.field("content-security-policy").split(";")
        )
        assert policy["default-src"] == "'none'", path
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == "'none'"
        assert policy["form-action"] in ("'none'", "'self'")
        allowed = {word for words in policy.values() for word in words.split()}
        assert not allowed & {
            "'unsafe-inline'",
            "'unsafe-eval'",
            "data:",
            "blob:",
            "*",
            "http:",
            "https:",
        }
        assert answer.field("x-content-type-options") == "nosniff"
        assert answer.field("referrer-policy") == "no-referrer"
        assert "no-store" in answer.field("cache-control")


def test_the_page_has_no_script_and_no_style_inside(servers: Servers) -> None:
    """All of it comes from files of the same address, and is of ours."""
    text = servers.reader.ask(path_of(RUN), servers.cookies["reader"]).text
    assert re.findall(r"<script(?![^>]*\bsrc=\"/)[^>]*>", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", text) == []
    files = re.findall(r"(?:src|href)=\"(/[^\"]+\.(?:js|css|svg|png)[^\"]*)\"", text)
    assert files
    for path in files:
        answer = servers.reader.ask(path, servers.cookies["reader"])
        assert answer.status == 200, path
        assert "http://" not in answer.text.replace("http://www.w3.org/", "")
        assert "https://" not in answer.text


def test_a_link_is_exchanged_for_a_cookie_once(tmp_path: Path) -> None:
    """A HEAD, as of a preview, does not use it up; the cookie is no token of the store, and scripts cannot read it."""
    store = write_refund_store(tmp_path / "store")
    with Ui(store, run=RUN) as ui:
        assert ui.link.startswith(f"http://127.0.0.1:{ui.port}/")
        parts = urlsplit(ui.led)
        target = f"{parts.path}?{parts.query}"
        assert parts.path == path_of(RUN)
        assert ui.host.partition(":")[0].endswith(".localhost")
        ui.send("HEAD", target)
        first = ui.send("GET", target)
        assert find_onward(first) == path_of(RUN)
        cookie, *attributes = (one.strip() for one in first.field("set-cookie").split(";"))
        assert cookie.startswith("playhead=")
        assert {one.lower() for one in attributes} == {"httponly", "samesite=strict", "path=/"}
        assert open_token(Config(store=store)) not in cookie
        assert _token(ui) not in cookie
        again = ui.send("GET", target)
        assert (again.status, again.field("set-cookie")) == (401, "")
        assert ui.ask(target, cookie).status in (200, 303)
        assert ui.ask(path_of(RUN), cookie).status == 200


def test_the_server_listens_on_loopback_alone(servers: Servers) -> None:
    """Whatever address this machine has beside it."""
    import psutil

    listening = [
        one.laddr.ip
        for one in psutil.Process(servers.reader.process.pid).net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) <= {"127.0.0.1", "::1"}


BYTES = {
    "two hosts": b"GET /runs HTTP/1.1\r\nHost: {host}\r\nHost: evil.test\r\n{cookie}\r\n",
    "no host": b"GET /runs HTTP/1.1\r\n{cookie}\r\n",
    "a length and chunks": b"POST /data/runs/refund/stop HTTP/1.1\r\nHost: {host}\r\n{cookie}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded field": b"GET /runs HTTP/1.1\r\nHost: {host}\r\n evil.test\r\n{cookie}\r\n",
    "a blank in a name": b"GET /runs HTTP/1.1\r\nHost : {host}\r\n{cookie}\r\n",
    "a line feed alone": b"GET /runs HTTP/1.1\nHost: {host}\n\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a head of 1 MB": b"GET /runs HTTP/1.1\r\nHost: {host}\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_what_is_no_request_is_refused(servers: Servers, name: str) -> None:
    """With a status of its own, or a closed connection; the next one is answered."""
    cookie = f"Cookie: {servers.cookies['reader']}\r\n".encode()
    data = BYTES[name].replace(b"{host}", servers.reader.host.encode()).replace(b"{cookie}", cookie)
    try:
        status = servers.reader.send_bytes(data + b"\r\n\r\n").status
    except ConnectionError:
        status = 0
    assert status in (0, 400, 401, 403, 431, 505)
    assert servers.reader.ask("/runs", servers.cookies["reader"]).status == 200
