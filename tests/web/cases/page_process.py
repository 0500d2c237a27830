"""`playhead ui` as a process, and a client that sends it just the bytes that it is told to."""

import json
import re
import selectors
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

from playhead.tests.support import prepared
from playhead.tests.support.browser import Browser

_LINK = re.compile(rb"http://\S+")
_ONWARD = re.compile(r"http-equiv=\"refresh\" content=\"0; url=([^\"]*)\"")
_LONG_S = 30.0
_IS_THERE = """window.isLeft === undefined && document.readyState === 'complete'
&& (document.body.dataset.watched === 'yes' || document.querySelector('script') === null)"""
"""Says whether a page hears of news already, or has no script, as one that says what is wrong."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    fields: tuple[tuple[str, str], ...]
    """Header fields, names in lower case."""
    body: bytes

    def field(self, name: str) -> str:
        """Give a field, empty if there is none."""
        return next((value for one, value in self.fields if one == name), "")

    @property
    def text(self) -> str:
        """The body."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Ui:
    """`playhead ui` until the context ends."""

    def __init__(self, store: Path, *words: str, run: str = "", cwd: Path | None = None) -> None:
        """Prepare; `words` are flags, and behind `--` the command."""
        at = words.index("--") if "--" in words else len(words)
        flags, command = words[:at], words[at:]
        self._command = [*prepared.OURS, "ui", *([run] if run else []), "--no-browser"]
        self._command += ["--store", str(store), *flags, *command]
        self._cwd = cwd

    def __enter__(self) -> Self:
        self.process = prepared.start(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self._cwd
        )
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(_LONG_S) else b""
        found = _LINK.search(line)
        if found is None:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"ui did not start: {line + out!r} {err.decode()}")
        self.link = found[0].decode()
        """The address with its token."""
        self.port = urlsplit(self.link).port or 80
        self.printed = f"127.0.0.1:{self.port}"
        self._led = ""
        return self

    @property
    def led(self) -> str:
        """The address to which the link leads, of the session; its token was not opened."""
        if not self._led:
            parts = urlsplit(self.link)
            answer = self.send("GET", f"{parts.path}?{parts.query}", {"host": self.printed})
            assert answer.status == 303, answer
            self._led = answer.field("location")
        return self._led

    @property
    def host(self) -> str:
        """The secret host of sessions, with its port."""
        return urlsplit(self.led).netloc

    @property
    def origin(self) -> str:
        """That of sessions."""
        return f"http://{self.host}"

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; twice is once."""
        if self.process.returncode is None:
            self.process.send_signal(number)
            try:
                self.process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()
                raise AssertionError("ui did not end") from None

    def hang(self) -> None:
        """Have it answer nothing any more, and keep its sockets."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Have it answer again."""
        self.process.send_signal(signal.SIGCONT)

    def address(self, path: str) -> str:
        """Give the address of a path."""
        return f"{self.origin}{path}"

    def open_session(self) -> str:
        """Open the link as a browser would; give the cookie, as `playhead=...`."""
        parts = urlsplit(self.led)
        answer = self.send("GET", f"{parts.path}?{parts.query}")
        assert "token" not in find_onward(answer)
        return answer.field("set-cookie").partition(";")[0]

    @cached_property
    def cookie(self) -> str:
        """That of one session, which its link has begun."""
        return self.open_session()

    async def show(self, browser: Browser, path: str = "/runs") -> None:
        """Open a path in a browser, within the session; wait until its script is there."""
        name, _, value = self.cookie.partition("=")
        await browser.call(
            "Network.setCookie",
            name=name,
            value=value,
            url=self.origin,
            httpOnly=True,
            sameSite="Strict",
        )
        await self.go(browser, path)

    async def go(self, browser: Browser, path: str) -> None:
        """Open another path; wait until its script is there, so that what is clicked does something."""
        await browser.run("window.isLeft = true")
        await browser.go(self.address(path))
        await browser.until(_IS_THERE)

    def ask(self, path: str, cookie: str, method: str = "GET", **fields: str) -> Answer:
        """Ask within a session; fields with `_` for `-`."""
        given = {name.replace("_", "-"): value for name, value in fields.items()}
        return self.send(method, path, {"host": self.host, "cookie": cookie, **given})

    def post(self, path: str, cookie: str, what: Any) -> Answer:
        """Change something within a session, as the page does."""
        fields = {"host": self.host, "cookie": cookie, "origin": self.origin}
        body = json.dumps(what).encode()
        return self.send("POST", path, {**fields, "content-type": "application/json"}, body)

    def send(
        self,
        method: str,
        target: str,
        fields: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request and read its answer; of one that does not end, its head."""
        given = {"host": self.host} if fields is None else fields
        lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in given.items())]
        if body is not None:
            lines.append(f"content-length: {len(body)}")
        head = "\r\n".join([*lines, "connection: close", "", ""])
        return self.send_bytes(head.encode("latin-1") + (body or b""), method)

    def send_bytes(self, data: bytes, method: str = "GET") -> Answer:
        """Send bytes and read one answer."""
        with socket.create_connection(("127.0.0.1", self.port), _LONG_S) as sock:
            sock.sendall(data)
            with sock.makefile("rb") as stream:
                status = stream.readline()
                if not status:
                    return Answer(0, (), b"")
                return _read(stream, status, method)


def _read(stream: Any, status: bytes, method: str) -> Answer:
    fields = []
    while line := stream.readline().rstrip(b"\r\n"):
        name, _, value = line.decode("latin-1").partition(":")
        fields.append((name.lower(), value.strip()))
    made = Answer(int(status.split()[1]), tuple(fields), b"")
    if method == "HEAD" or made.field("content-type").startswith("text/event-stream"):
        return made
    if size := made.field("content-length"):
        return Answer(made.status, made.fields, stream.read(int(size)))
    if made.field("transfer-encoding") == "chunked":
        return Answer(made.status, made.fields, b"".join(_chunks(stream)))
    return Answer(made.status, made.fields, stream.read())


def _chunks(stream: Any) -> Iterator[bytes]:
    while size := int(stream.readline().partition(b";")[0], 16):
        yield stream.read(size)
        stream.readline()


def find_onward(answer: Answer) -> str:
    """Give where a page that opened a session goes on to."""
    assert answer.status == 200, answer
    found = _ONWARD.search(answer.text)
    assert found is not None, answer
    return found[1]


def path_of(run: str, seq: int | str | None = None) -> str:
    """Give the path of a run's page, at a step."""
    path = f"/runs/{quote(run, safe='')}"
    return path if seq is None else f"{path}?seq={seq}"
