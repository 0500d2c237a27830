"""`playhead env`: where the proxy is, as whom, and for whom it is written."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.proxy.errors import EngineError


def env(*words: str | Path) -> str:
    command = ["env", *map(str, words)]
    done = CliRunner().invoke(cli, command, standalone_mode=False, catch_exceptions=False)
    return done.stdout


def value(text: str, name: str) -> str:
    found = re.search(rf"^(?:export )?{name}=(.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "words", "expected"),
    [
        ("", (), "http://127.0.0.1:8080"),
        ("listen: 127.0.0.1:9999", (), "http://127.0.0.1:9999"),
        ("", ("--run", "a run"), "http://a%20run:any@127.0.0.1:8080"),
        ("", ("--run", "a", "--token", "t"), "http://a:t@127.0.0.1:8080"),
        ("", ("--proxy", "proxy.internal:1"), "http://proxy.internal:1"),
        ("runs: {tokens: {'a*': one, b: two}}", ("--run", "ax"), "http://ax:one@127.0.0.1:8080"),
        ("runs: {tokens: {b: two}}", ("--run", "c", "--token", "x"), "http://c:x@127.0.0.1:8080"),
    ],
)
def test_address_is_that_of_the_run(
    folder: Path, file: str, words: tuple[str, ...], expected: str
) -> None:
    """Out of the file where it says, and out of the flags before."""
    (folder / "playhead.yaml").write_text(file or "{}")
    text = env(*words)
    assert value(text, "HTTPS_PROXY") == value(text, "wss_proxy") == expected


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        ("", ("--format", "csh"), "none of sh, fish, dotenv, docker, github"),
        ("", ("--format", "docker"), "needs --seen-at"),
        ("", ("--seen-at", "ca"), "not absolute"),
        ("", ("--proxy", "nowhere"), "--proxy 'nowhere' is no listen address"),
        ("listen: 127.0.0.1:0", (), "port 0"),
        ("", ("--token", "t"), "name it with --run"),
        ("", ("--run", "a:b"), "no run name"),
        ("", ("--run", "latest"), "'latest' is reserved"),
        ("", ("--run", "a~2"), "'a~2' is reserved"),
        ("runs: {tokens: {b: two}}", (), "name the run with --run"),
        ("runs: {tokens: {b: two}}", ("--run", "c"), "has none for run 'c'"),
    ],
)
def test_what_cannot_be_meant_is_said(
    folder: Path, file: str, words: tuple[str, ...], said: str
) -> None:
    """In one sentence, before anything is made."""
    (folder / "playhead.yaml").write_text(file or "{}")
    with pytest.raises(click.UsageError) as caught:
        env(*words)
    assert said in caught.value.message
    assert not (folder / ".playhead").exists()


def test_container_is_told_nothing_of_this_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file system is another, and what the person set is not for it."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dmine=1")
    text = env("--format", "docker", "--seen-at", "/ca", "--proxy", "host.docker.internal:8080")
    assert "mine" not in text
    assert str(folder) not in text
    assert value(text, "SSL_CERT_FILE") == "/ca/playhead-ca-bundle.pem"
    assert value(text, "WGETRC") == "/ca/playhead-wgetrc-ca"
    assert (folder / ".playhead/ca/playhead-wgetrc-ca").exists()


def test_value_that_a_form_cannot_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's own, which is to be kept."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dpath=\\")
    with pytest.raises(EngineError, match="JAVA_TOOL_OPTIONS cannot be written"):
        env("--format", "dotenv")
    assert "-Dpath=" in env("--format", "github")


@pytest.mark.parametrize(
    ("name", "said"),
    [("nosuch", "--run: no store at"), ("latest", "--run: no store at")],
)
def test_a_tape_that_is_not_there_is_warned_of(
    folder: Path, name: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """In playback the name is that of a tape, which may be recorded later: the variables are printed all the same."""
    (folder / "playhead.yaml").write_text("mode: playback")
    done = CliRunner().invoke(cli, ["env", "--run", name], catch_exceptions=False)
    assert f"{name}:any@" in done.stdout
    assert said in done.stderr
    assert "so its requests are refused" in done.stderr


@pytest.mark.parametrize(
    ("file", "words", "is_said"),
    [
        ("{}", ("--format", "docker"), True),
        ("{}", ("--format", "dotenv"), True),
        ("listen: localhost:9", (), True),
        ("{}", ("--format", "docker", "--proxy", "host.docker.internal:8080"), False),
        ("{}", ("--format", "docker", "--proxy", "127.0.0.1:8080"), False),
        ("{listen: '10.0.0.7:8080', runs: {tokens: {a: one}}}", ("--run", "a"), False),
    ],
)
def test_loopback_of_a_container_is_said_to_be_the_container(
    folder: Path, file: str, words: tuple[str, ...], is_said: bool
) -> None:
    """Unless it was named: a container may share the network of the machine, or of a pod."""
    (folder / "playhead.yaml").write_text(file)
    command = ["env", *words, "--seen-at", "/ca"]
    done = CliRunner().invoke(cli, command, standalone_mode=False, catch_exceptions=False)
    assert ("is the container itself, not this machine" in done.stderr) is is_said
    assert value(done.stdout, "HTTPS_PROXY")


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine that somebody holds, and nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "is_said"),
    [
        ((), True),
        (("--run", "a"), True),
        (("--format", "fish"), True),
        (("--format", "dotenv"), True),
        (("--format", "github"), True),
        (("--proxy", "127.0.0.1:PORT"), False),
        (("--seen-at", "/ca"), False),
        (("--format", "docker", "--seen-at", "/ca", "--proxy", "127.0.0.1:PORT"), False),
    ],
)
def test_that_nothing_listens_yet_is_noted_beside_the_variables(
    folder: Path, port: int, words: tuple[str, ...], is_said: bool
) -> None:
    """Only of this machine, and with what to start; a shell evaluates the same as ever."""
    (folder / "my config.yaml").write_text(f"listen: 127.0.0.1:{port}")
    given = [word.replace("PORT", str(port)) for word in words]
    command = ["env", "-c", "my config.yaml", *given]
    done = CliRunner().invoke(cli, command, standalone_mode=False, catch_exceptions=False)
    note = (
        f"playhead: nothing listens on 127.0.0.1:{port} yet; before the agent, start:"
        " playhead serve -c 'my config.yaml'\n"
    )
    assert (note in done.stderr) is is_said
    assert ("nothing listens" in done.stderr) is is_said
    assert "nothing listens" not in done.stdout
    assert done.return_value == 0


def test_nothing_is_noted_where_somebody_listens(folder: Path) -> None:
    """As `serve` does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        (folder / "playhead.yaml").write_text(f"listen: 127.0.0.1:{server.getsockname()[1]}")
        done = CliRunner().invoke(cli, ["env"], standalone_mode=False, catch_exceptions=False)
    assert done.stderr == ""
    assert value(done.stdout, "HTTPS_PROXY")
