"""docs/troubleshooting.md: each message is one that is printed, and each remedy that can be tried here helps."""

import http.server
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import playhead as package
from playhead.proxy.sandbox.preflight import works
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.handshakes import Acceptor, answering
from playhead.tests.support.process import playhead

ROOT = Path(package.__file__).parent
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN_ORIGIN = "127.0.0.1:9100"

ASK = """
import os, socket, sys, time, urllib.request
def ask(path, data=None):
    urllib.request.urlopen(os.environ["ORIGIN"] + path, data=data).read()
"""
PROGRAMS = {
    "clock": 'ask(f"/?timestamp={time.time_ns()}")',
    "search": 'ask("/search", b"q=mugs")',
    "two": 'ask("/1"); ask("/2")',
    "one": 'ask("/1")',
    "leak": 'ask("/1"); ask("/2"); socket.create_connection(("192.0.2.1", 80), 2).close()',
    "bypass": "import http.client; c = http.client.HTTPConnection(os.environ['ORIGIN'][7:]); c.request('GET', '/'); c.getresponse()",
}
needs_sandbox = pytest.mark.skipif(not works(), reason="no sandbox can be made here")


class Ended(NamedTuple):
    """What a command printed, as the page shows it, and its exit code."""

    code: int
    text: str


def fences(title: str) -> list[tuple[str, str]]:
    """Give kind and text of the blocks of a section."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return _FENCE.findall(found[1])


def message(title: str) -> list[str]:
    """Give the lines of the message of a section, without numbers that differ from run to run."""
    return [_fixed(line) for line in fences(title)[0][1].splitlines()]


def _fixed(line: str) -> str:
    return re.sub(r"\d{19}", "NUMBER", line)


class Machine:
    """A folder with a store, an origin and programs."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def __call__(self, *words: str, program: str = "") -> Ended:
        """Run a command of ours, on a program where one is named."""
        command = ["--", sys.executable, "-c", ASK + PROGRAMS[program]] if program else []
        env = {"ORIGIN": f"http://127.0.0.1:{self.port}"}
        done = playhead(*words, *command, cwd=self.folder, env=env)
        text = (done.stdout + done.stderr).replace(f"127.0.0.1:{self.port}", _SHOWN_ORIGIN)
        return Ended(done.returncode, _fixed(text))

    def configure(self, title: str) -> None:
        """Write the block of YAML of a section into `playhead.yaml`."""
        (text,) = [text for kind, text in fences(title) if kind == "yaml"]
        self.write(text)

    def write(self, text: str) -> None:
        (self.folder / "playhead.yaml").write_text(
            text.replace(_SHOWN_ORIGIN, f"127.0.0.1:{self.port}")
        )


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Answer every request with 200."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def machine(tmp_path: Path, port: int) -> Machine:
    """A fresh store."""
    return Machine(tmp_path, port)


def replay(machine: Machine, *words: str, program: str) -> Ended:
    """Replay outside of a sandbox, which takes half the time."""
    return machine("replay", *words, "--no-sandbox", program=program)


def assert_shown(title: str, printed: Ended, code: int) -> None:
    """The message of the section is printed, line by line."""
    assert printed.code == code, printed.text
    lines = printed.text.splitlines()
    assert [line for line in message(title) if line not in lines] == [], printed.text


def test_nothing_is_recorded(machine: Machine) -> None:
    """A client that goes past the proxy; the preload leads it there, and --strict says so by the code."""
    title = "Nothing is recorded"
    assert_shown(title, machine("record", program="bypass"), 0)
    assert machine("record", "--strict", program="bypass").code == 2
    helped = machine("record", "--determinism", "seed", program="bypass")
    assert "sealed: 1 exchange recorded" in helped.text


def test_certificate_errors(tmp_path: Path, certificates: Certificates) -> None:
    """A client with the roots of certifi; the preload has it trust the CA."""
    (line,) = message("Certificate errors")
    code = (
        "import certifi, ssl, sys, urllib.request\n"
        "context = ssl.create_default_context(cafile=certifi.where())\n"
        "try: urllib.request.urlopen(sys.argv[1], context=context).read()\n"
        "except OSError as error: print(error)"
    )
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with Acceptor(answering(certificates, answer)) as origin:
        command = ("--", sys.executable, "-c", code, origin.url)
        flags = ("--store", tmp_path / "store", "--upstream-ca", certificates.root)
        done = playhead("record", *flags, *command)
        said = re.sub(r"by python[\d.]*", "by python", done.stdout + done.stderr)
        assert "CERTIFICATE_VERIFY_FAILED" in said
        assert line.replace("api.example.com:443", f"127.0.0.1:{origin.port}") in said
        helped = playhead("record", *flags, "--determinism", "seed", *command)
    assert "sealed: 1 exchange recorded" in helped.stderr


def test_the_replay_diverges_at_the_first_call(machine: Machine) -> None:
    """The time is in the request: the clock comes again, or the rule that is printed makes it count no more."""
    title = "The replay diverges at the first call"
    machine("record", "--run", "clock", program="clock")
    found = replay(machine, "clock", program="clock")
    assert_shown(title, found, 121)
    assert message("The agent gets HTTP 424")[0] in found.text
    rule = found.text.partition("in the configuration:\n")[2].partition("  followed by")[0]
    machine.write(re.sub(r"^ {11}", "", rule, flags=re.MULTILINE))
    assert replay(machine, "clock", program="clock").code == 0
    machine.write("")
    machine("record", "--run", "full", "--determinism", "full", program="clock")
    assert replay(machine, "full", program="clock").code == 0


def test_too_many_effects(machine: Machine) -> None:
    """A search by POST is an effect until it is named as a read, in what was recorded before, too."""
    title = "Too many effects"
    found = machine("record", "--run", "search", program="search")
    assert_shown(title, found, 0)
    machine.configure(title)
    assert "effects:" not in machine("record", program="search").text
    assert "effects" not in replay(machine, "search", program="search").text


def test_the_port_is_in_use(machine: Machine) -> None:
    """`serve` names it; port 0 is a free one, as the page says."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        found = machine("serve", "--listen", f"127.0.0.1:{number}")
    text = found.text.replace(f"port {number}", "port 9101")
    assert_shown("The port is in use", found._replace(text=text), 2)


def test_exit_code_125(machine: Machine) -> None:
    """Nothing was asked, no such run, no such command."""
    machine("record", "--run", "one", program="one")
    table = dict(
        re.findall(
            r"^\| `(.+?)` \| (.+) \|$",
            PAGE.partition("## Exit code 125\n")[2].partition("\n## ")[0],
            re.MULTILINE,
        )
    )
    nothing = machine("replay", "one", "--no-sandbox", "--", "true")
    unknown = machine("replay", "nine", "--no-sandbox", "--", "true")
    missing = machine("replay", "one", "--no-sandbox", "--", "no-such-program")
    said = list(table)
    for found, words in zip((nothing, unknown, missing), said, strict=False):
        assert found.code == 125
        assert words in found.text
    for words in said[3:]:
        assert _is_said(words), words


def test_exit_code_122(machine: Machine) -> None:
    """The agent asks less than before."""
    machine("record", "--run", "two", program="two")
    found = replay(machine, "two", program="one")
    assert found.code == 122
    assert "left on the tape, never asked for" in found.text


@needs_sandbox
def test_exit_code_123(machine: Machine) -> None:
    """The command connects past the tape."""
    machine("record", "--run", "two", program="two")
    found = machine("replay", "two", program="leak")
    assert_shown("Exit code 123: something tried to leave", found, 123)


def _is_said(words: str) -> bool:
    """Say whether the product has these words."""
    found = subprocess.run(
        ["grep", "-rqF", "--include=*.py", words, "proxy", "timeline", "addons", "tape", "config"],
        cwd=ROOT,
        check=False,
    )
    return found.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        "kept waiting as recorded: its client gave up, and no pace shortens that",
        "went past the proxy, to",
        "there is no sealed recording yet to play as ",
        "local programs that ran again",
        "can never match",
        "the guard does not hold with mitmproxy",
    ],
)
def test_other_messages_are_said(words: str) -> None:
    """They are printed where it takes long to come to."""
    assert words in PAGE
    assert _is_said(words)
