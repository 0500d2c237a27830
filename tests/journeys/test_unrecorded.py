"""`playhead record` says what it has missed: nothing at all, a client that went past, one that does not trust the CA."""

import os
import socket
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


_IGNORES = """
import http.client
peer = http.client.HTTPConnection("127.0.0.1", int(os.environ["PORT"]), timeout=10)
peer.request("GET", "/x")
peer.getresponse().read()
"""


def answer(accepted: socket.socket) -> None:
    """Answer one request, without TLS."""
    accepted.recv(10_000)
    accepted.sendall(ANSWER)


@pytest.mark.parametrize("flag", ["--capture", "--sandbox=notify"])
def test_the_advice_for_a_client_that_reads_no_variables_works(flag: str, tmp_path: Path) -> None:
    """Its port is named with the line of the configuration; with that line the same command is recorded."""
    need("private mounts" if flag == "--capture" else "root")
    with Acceptor(answer) as origin:
        env = {**os.environ, "PORT": str(origin.port)}
        flags = ["--store", str(tmp_path / "store"), flag]
        done = playhead("record", "--run", "first", *flags, *agent(_IGNORES), env=env)
        port = f"127.0.0.1:{origin.port}"
        assert f"tried to connect past the proxy, to {port}" in done.stderr
        (warning, *_) = read_json("receipt", "first", "--store", tmp_path / "store")["warnings"]
        line = warning.partition("add `")[2].partition("`")[0]
        (tmp_path / "playhead.yaml").write_text(f"{line}\n")
        flags += ["-c", str(tmp_path / "playhead.yaml")]
        done = playhead("record", "--run", "then", *flags, *agent(_IGNORES), env=env)
    assert "sealed: 1 exchange recorded" in done.stderr


def test_a_command_that_failed_is_told_so_first(tmp_path: Path) -> None:
    """Not of proxies: it has not come to its first request."""
    flags = ["--store", str(tmp_path / "store")]
    done = playhead("record", *flags, *agent("sys.exit(3)"))
    assert done.returncode == 3
    told = [line for line in done.stderr.splitlines() if line.startswith("NOT RECORDED")]
    assert told == [
        "NOT RECORDED: nothing was recorded: the command failed by itself, with 3, before any request through the proxy"
    ]
    assert "--sandbox" not in done.stderr


def test_a_client_that_distrusts_is_told_the_same_on_replay(
    origin: Acceptor, certificates: Certificates, tmp_path: Path
) -> None:
    """It came to the proxy: neither is it said that it made no request there."""
    flags = ["--store", str(tmp_path / "store"), "--upstream-ca", str(certificates.root)]
    env = {**os.environ, "ORIGIN": origin.url}
    done = [
        playhead(*words, *flags, *agent("distrust()"), env=env)
        for words in (["record", "--run", "tape"], ["replay", "tape"])
    ]
    assert [one.returncode for one in done] == [0, 125]
    for one in done:
        assert "have it load the file that SSL_CERT_FILE names" in one.stderr
        assert "made no request" not in one.stderr
        assert "`playhead env`" not in one.stderr
