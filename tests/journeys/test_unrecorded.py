"""`playhead record` says what it has missed: nothing at all, a client that went past, one that does not trust the CA."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.tests.support.certificates import Certificates
from playhead.tests.support.counts import FULL
from playhead.tests.support.handshakes import Acceptor, answering
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead, read_json

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
AGENT = """
import os, socket, ssl, sys, time, urllib.request
def ask(context=None):
    try:
        urllib.request.urlopen(os.environ["ORIGIN"] + "/x", context=context, timeout=10).read()
    except OSError as error:
        print(error)
def distrust():
    ask(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
def past():
    peer = socket.socket(type=socket.SOCK_DGRAM)
    peer.connect(("192.0.2.1", 443))
    time.sleep(0.5)
"""
MISSED = {
    "nothing": ("pass", "nothing was recorded: the command made no request through the proxy"),
    "distrust": ("ask(); distrust()", "failed handshake to 127.0.0.1:{port}, by "),
    "past": ("ask(); past()", " went past the proxy, to udp 192.0.2.1:443"),
}


_OWN, _GOOD = ("sys.exit(3)", 3), ("pass", 2)
STRICT = {"nothing": (_GOOD, _OWN), "distrust": (_OWN, _GOOD), "past": (_OWN, _GOOD)}
"""How a command ends, and its exit code then; the last is tried each day."""


@pytest.fixture(scope="module")
def origin(certificates: Certificates) -> Iterator[Acceptor]:
    """Answer over TLS."""
    with Acceptor(answering(certificates, ANSWER)) as made:
        yield made


def agent(code: str) -> list[str]:
    """A program as a command line."""
    return ["--", sys.executable, "-S", "-c", AGENT + code]


@pytest.mark.parametrize("name", MISSED)
def test_a_recording_says_what_it_missed(
    name: str, origin: Acceptor, certificates: Certificates, tmp_path: Path
) -> None:
    """On its own line, with a remedy among the warnings; an error under --strict alone, after the command's own."""
    if name == "past":
        need("a route off this machine")
    code, said = MISSED[name]
    said = said.format(port=origin.port)
    flags = ["--store", str(tmp_path / "store"), "--upstream-ca", str(certificates.root)]
    env = {**os.environ, "ORIGIN": origin.url}
    done = playhead("record", "--run", "tape", *flags, *agent(code), env=env)
    assert done.returncode == 0, done.stderr
    assert "NOT RECORDED: " in done.stderr
    assert said in done.stderr
    receipt = read_json("receipt", "tape", "--store", tmp_path / "store")
    assert any(said in text for text in receipt["unrecorded"])
    assert any(said in text and "--capture" in text for text in receipt["warnings"])
    for end, expected in STRICT[name] if FULL else STRICT[name][-1:]:
        strict = playhead("record", "--strict", *flags, *agent(f"{code}; {end}"), env=env)
        assert strict.returncode == expected


def test_a_whole_recording_is_no_error(
    origin: Acceptor, certificates: Certificates, tmp_path: Path
) -> None:
    """Nothing is warned of; the key of the configuration is the flag."""
    (tmp_path / "playhead.yaml").write_text("runs: {strict: true}\n")
    flags = ["--store", str(tmp_path / "store"), "--upstream-ca", str(certificates.root)]
    where = [*flags, "-c", str(tmp_path / "playhead.yaml")]
    env = {**os.environ, "ORIGIN": origin.url}
    done = playhead("record", "--run", "tape", *where, *agent("ask()"), env=env)
    assert done.returncode == 0, done.stderr
    assert "NOT RECORDED" not in done.stderr
    assert read_json("receipt", "tape", "--store", tmp_path / "store")["unrecorded"] == []
    done = playhead("record", *where, *agent("pass"), env=env)
    assert done.returncode == 2, done.stderr


def test_a_client_that_distrusts_again_is_faithful(
    origin: Acceptor, certificates: Certificates, tmp_path: Path
) -> None:
    """As often as it did while it was recorded, in the sandbox too; once more is a divergence."""
    flags = ["--store", str(tmp_path / "store")]
    env = {**os.environ, "ORIGIN": origin.url}
    trust = ["--upstream-ca", str(certificates.root)]
    code = "ask(); distrust()"
    playhead("record", "--run", "tape", *flags, *trust, *agent(code), env=env)
    same = playhead("replay", "tape", *flags, *agent(code), env=env)
    assert same.returncode == 0, same.stderr
    more = playhead("replay", "tape", *flags, *agent(f"{code}; distrust()"), env=env)
    assert more.returncode in (121, 123), more.stderr
    assert "failed handshake to 127.0.0.1" in more.stderr
    assert "2 in this run, 1 on the tape" in more.stderr
