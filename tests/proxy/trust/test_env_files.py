"""What `playhead env` writes is read back by what reads it: the shells here, .env readers, Docker, GitHub's rules."""

import http.server
import io
import json
import os
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from playhead.proxy.errors import EngineError
from playhead.proxy.trust.env_files import Form, render_env_file
from playhead.tests.support.needs import has, need

FULL = "PLAYHEAD_FULL" in os.environ
COUNT = 300 if FULL else 12
NASTY = {
    "A": "",
    "B": " two  words ",
    "C": 'it\'s "quoted" `id` $(id) $HOME ${HOME} \\n \\',
    "D": "#no comment; & | > < * ? ~ ! = {a,b} [a]",
    "E": "\ttab\nline\n\n",
    "F": "é 字 \u2028 \U0001f600",
    "G": "-n",
    "H": "~/x:~/y",
    "GIVEN_PATH": "/a:/b c:/d",
    "I": "\\'",
    "J": "<<EOF",
    "K": "\r",
}
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
telling = st.text(" \t\n\r'\"\\$`{}()#!~*?=<>;&|-ab:/%\u00e9", max_size=30)
values = st.one_of(telling, texts)
variables = st.dictionaries(st.from_regex(r"V_[A-Z]{1,5}", fullmatch=True), values, max_size=12)


def written(variables: Mapping[str, str], form: Form) -> str:
    return render_env_file(variables, [], form)


def variables_of(command: list[str], script: str) -> dict[str, str]:
    """Run a shell that does what is on its input and then tells its variables."""
    done = subprocess.run(
        command,
        input=os.fsencode(script),
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere"},
        capture_output=True,
        check=True,
        timeout=20,
    )
    assert done.stderr == b""
    rows = (os.fsdecode(row).partition("=") for row in done.stdout.split(b"\0"))
    return {name: value for name, _, value in rows}


def evaluated(shell: str) -> Callable[[Mapping[str, str]], dict[str, str]]:
    # As people do it: eval "$(playhead env)".
    program = 'script=$(cat; echo x); eval "${script%x}"; env -0'
    return lambda given: variables_of([shell, "-c", program], written(given, Form.SH))


def sourced_by_fish(given: Mapping[str, str]) -> dict[str, str]:
    program = "source; env -0"
    return variables_of(["fish", "--no-config", "-c", program], written(given, Form.FISH))


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "zsh", "ksh", "fish"])
def test_a_shell_has_each_value_as_it_was(shell: str) -> None:
    """Of the shells that are installed, whatever a value holds, bytes that are no text too."""
    need(shell)
    read = sourced_by_fish if shell == "fish" else evaluated(shell)

    @settings(max_examples=COUNT, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @example(given=NASTY | {"RAW": "\udcff\udc80"})
    @given(given=variables)
    def check(given: dict[str, str]) -> None:
        found = read(given)
        assert {name: found.get(name) for name in given} == given

    check()


@pytest.mark.parametrize("shell", ["sh", "fish"])
def test_what_would_lead_past_the_proxy_is_taken_out_of_a_shell(shell: str) -> None:
    """Also where it is not set at all."""
    need(shell)
    form = Form(shell)
    script = render_env_file({"A": "1"}, ["PIP_PROXY", "pip_proxy"], form)
    options = ["--no-config"] if shell == "fish" else []
    found = variables_of(
        [shell, *options, "-c", "PIP_PROXY=x; " * (shell == "sh") + script + "env -0"], ""
    )
    assert found["A"] == "1"
    assert "PIP_PROXY" not in found


# ---- files -------------------------------------------------------------------------------------------


def node_reads(text: str) -> dict[str, str]:
    program = "console.log(JSON.stringify(require('util').parseEnv(require('fs').readFileSync(0, 'utf8'))))"
    done = subprocess.run(
        ["node", "-e", program], input=text.encode(), capture_output=True, check=True, timeout=20
    )
    made: dict[str, str] = json.loads(done.stdout)
    return made


def kept(form: Form, given: Mapping[str, str]) -> dict[str, str]:
    """Leave out what a form refuses."""
    made = {}
    for name, value in given.items():
        try:
            written({name: value}, form)
        except EngineError:
            continue
        made[name] = value
    return made


@settings(max_examples=COUNT * 5)
@example(given=NASTY)
@given(given=variables)
def test_dotenv_file_is_read_as_it_was_meant(given: dict[str, str]) -> None:
    """By python-dotenv, with its variables in place."""
    from dotenv import dotenv_values

    given = kept(Form.DOTENV, given)
    text = written(given, Form.DOTENV)
    assert dict(dotenv_values(stream=io.StringIO(text, newline=""))) == given


@settings(max_examples=max(3, COUNT // 4), deadline=None)
@example(given=NASTY)
@given(given=variables)
def test_dotenv_readers_agree(given: dict[str, str]) -> None:
    """Node's and a shell that sources the file read the same as python-dotenv."""
    given = kept(Form.DOTENV, given)
    text = written(given, Form.DOTENV)
    found = variables_of(["sh", "-c", 'set -a; eval "$(cat; echo :)"; env -0'], text)
    assert {name: found.get(name) for name in given} == given
    if has("a node that reads .env files"):
        assert node_reads(text) == given


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (Form.DOTENV, "\\"),
        (Form.DOTENV, "${HOME}"),
        (Form.DOTENV, "'\""),
        (Form.DOTENV, "\r"),
        (Form.DOCKER, "a\nb"),
        (Form.DOCKER, "a\r"),
        (Form.DOCKER, "\udcff"),
        (Form.DOCKER, "x" * 65536),
        (Form.GITHUB, "\udcff"),
    ],
)
def test_what_a_form_cannot_hold_is_refused(form: Form, value: str) -> None:
    """By the name of the variable, and never with its value, which may be a secret."""
    with pytest.raises(EngineError, match="SOME_NAME cannot be written") as caught:
        written({"SOME_NAME": value}, form)
    assert value not in str(caught.value)
    assert "--format" in caught.value.hint


def docker_rules(text: str) -> dict[str, str]:
    """Read a file as docker/cli does (pkg/kvfile)."""
    made = {}
    for line in text.encode().split(b"\n"):
        row = line.removesuffix(b"\r").decode().lstrip()
        if row and not row.startswith("#"):
            name, equals, value = row.partition("=")
            assert equals
            assert not set(name) & set(" \t")
            made[name] = value
    return made


def github_rules(text: str) -> dict[str, str]:
    """Read a file as actions/runner does on Linux (FileCommandManager.cs)."""
    made = {}
    lines = iter(text.removesuffix("\n").split("\n") if text else ())
    for line in lines:
        if "<<" in line.partition("=")[0]:
            name, _, end = line.partition("<<")
            held = []
            while (held_line := next(lines)) != end:
                held.append(held_line)
            made[name] = "\n".join(held)
        else:
            name, equals, value = line.partition("=")
            assert equals
            made[name] = value
    return made


@pytest.mark.parametrize(
    ("form", "read"), [(Form.DOCKER, docker_rules), (Form.GITHUB, github_rules)]
)
def test_file_holds_each_value_by_the_rules_of_its_reader(
    form: Form, read: Callable[[str], dict[str, str]]
) -> None:
    """Quotes, spaces and what looks like syntax are nothing special; lines only where there are some."""

    @settings(max_examples=COUNT * 5)
    @example(given=NASTY)
    @given(given=variables)
    def check(given: dict[str, str]) -> None:
        given = kept(form, given)
        assert read(written(given, form)) == given

    check()


class Engine(socketserver.ThreadingUnixStreamServer):
    """As much of a Docker engine as it takes to be told what a container is to have."""

    daemon_threads = True
    asked: list[dict[str, list[str]]]


class Answer(http.server.BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        self._answer({})

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self._answer({"Id": "0123456789ab", "Warnings": []}, 201)

    def _answer(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Api-Version", "1.47")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def address_string(self) -> str:
        return "docker"

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    server = Engine(str(tmp_path / "docker.sock"), Answer)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_docker_hands_on_each_value(engine: Engine, tmp_path: Path) -> None:
    """The real command line, which reads the file, before an engine that only listens."""
    need("docker")
    given = kept(Form.DOCKER, NASTY)
    (tmp_path / "agent.env").write_text(written(given, Form.DOCKER), newline="")
    command = ["docker", "-H", f"unix://{tmp_path}/docker.sock", "create"]
    done = subprocess.run(
        [*command, "--env-file", str(tmp_path / "agent.env"), "image"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (asked,) = engine.asked
    found = dict(row.split("=", 1) for row in asked["Env"])
    assert found == given
    assert len(found) > 8
