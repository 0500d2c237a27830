"""What an agent in another container is given, and what it gives back."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from playhead.config import Config, LiveRule, Match, Mode
from playhead.proxy.commands.container_entrypoints import _import_where_missing
from playhead.proxy.docker import compose_agent as sidecar
from playhead.proxy.errors import EngineError
from playhead.proxy.operations.tape_files import export_run
from playhead.proxy.trust.ca import BUNDLE_FILE, CERTIFICATE_FILE
from playhead.store import Store
from playhead.tests.support.process import wait_until
from playhead.tests.support.recordings import ask, record_run

HARSH = "a 'quoted' \"text\" with $HOME, `date`, \\ and a\nnew line"


def _shell(line: str, name: str, **env: str) -> str:
    code = f'{line}printf %s "${name}"'
    return subprocess.run(
        ["/bin/sh", "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout


def test_a_shell_reads_what_was_written() -> None:
    """Whatever is in it."""
    assert _shell(sidecar._export("NAME", HARSH), "NAME") == HARSH


@pytest.mark.parametrize(
    ("name", "theirs", "both"),
    [
        ("PYTHONPATH", "/theirs", "/ours:/theirs"),
        ("PYTHONPATH", "", "/ours"),
        ("NODE_OPTIONS", "--theirs", "--theirs /ours"),
        ("JAVA_TOOL_OPTIONS", "", "/ours"),
    ],
)
def test_what_the_image_has_stays(name: str, theirs: str, both: str) -> None:
    """Beside ours."""
    assert _shell(sidecar._export(name, "/ours"), name, **{name: theirs}) == both


def _place(monkeypatch: pytest.MonkeyPatch, config: Config, *devices: str) -> None:
    monkeypatch.setattr(sidecar, "leading_out", lambda: list(devices))
    link = Path("/link")
    sidecar.Sidecar(link, link).place(config, ["agent"], None, "http://127.0.0.1:1023")


def test_live_rules_need_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """On network `none` they are a mistake, with a device they are not."""
    rule = LiveRule(Match("", frozenset(), "https", "api.test", None, "*"), "the test")
    config = Config(mode=Mode.PLAYBACK, live=(rule,))
    _place(monkeypatch, config, "eth0")
    with pytest.raises(EngineError, match=r"there are live rules, but .* network `none`"):
        _place(monkeypatch, config)
    _place(monkeypatch, Config(mode=Mode.PLAYBACK))


def test_a_recording_needs_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be recorded."""
    with pytest.raises(EngineError, match="a recording needs a network"):
        _place(monkeypatch, Config(mode=Mode.RECORD))


def test_only_the_run_that_is_asked_for_is_taken_in(tmp_path: Path) -> None:
    """Neither a mistyped name nor `latest` imports another tape, which would be the latest then."""
    file, config = tmp_path / "demo.tape", replace(Config(), store=tmp_path / "store")
    with Store.open(tmp_path / "made") as made:
        record_run(made, "demo", [ask()])
    export_run(replace(config, store=tmp_path / "made"), "demo", file)
    with Store.open(config.store) as store:
        record_run(store, "mine", [ask()])
    for run in ("latest", "dmeo", "mine"):
        _import_where_missing(config, run, file)
    with Store.open(config.store) as store:
        assert store.runs.find_latest() == store.runs.get("mine")
        assert store.runs.find("demo") is None
    for _ in range(2):
        _import_where_missing(config, "demo", file)
    with Store.open(config.store) as store:
        assert store.runs.find("demo") is not None
        assert store.runs.find("demo~2") is None


_COMPOSE = Path(sidecar.__file__).parents[2] / "compose.yaml"


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], subprocess.Popen[bytes]]:
    """Start a shell's code as compose.yaml starts an agent, `code` being where its exit code belongs."""
    entrypoint = yaml.safe_load(_COMPOSE.read_text())["x-agent"]["entrypoint"]
    words = [
        word.replace("$$", "$").replace("/agent/", f"{tmp_path}/agent/") for word in entrypoint
    ]

    def begin(code: str) -> subprocess.Popen[bytes]:
        agent = ["/bin/sh", "-c", code.replace("code", f"{tmp_path}/agent/code")]
        return subprocess.Popen([*words, *agent], stdin=subprocess.PIPE)

    return begin


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sidecar.SidecarSandbox]:
    """What waits for it."""
    monkeypatch.setattr(sidecar, "READY", tmp_path / "ready")
    monkeypatch.setattr(sidecar, "agent_variables", lambda *_, **__: {})
    (tmp_path / "agent").mkdir()
    for name in (BUNDLE_FILE, CERTIFICATE_FILE):
        (tmp_path / name).touch()
    made = sidecar.SidecarSandbox(tmp_path, tmp_path / "agent", tmp_path, None, "", ())
    made._lay_out()
    yield made
    os.close(made._alive)


def test_an_exit_code_that_the_agent_wrote_is_no_end(
    sandbox: sidecar.SidecarSandbox, start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """What it does afterwards is looked at, and its real code counts."""
    with start("echo 0 >code; read line; exit 7") as process:
        wait_until(lambda: sandbox._read_code() == "0", 10, 0.01)
        assert not sandbox._shell_is_gone()
        process.communicate(b"go\n", timeout=10)
    assert sandbox._wait_for_end() == "7"


def test_an_agent_that_is_killed_has_ended(
    sandbox: sidecar.SidecarSandbox, start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """With its shell, which then writes nothing."""
    assert not sandbox._shell_is_gone()
    with start("kill -9 $PPID") as process:
        process.communicate(timeout=10)
    assert sandbox._wait_for_end() == ""


def test_an_agent_that_never_starts_is_not_waited_for_forever(
    sandbox: sidecar.SidecarSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its image may have no shell; the proxy says so and ends."""
    monkeypatch.setattr(sidecar, "_AGENT_S", 0.0)
    with pytest.raises(EngineError, match="no agent came within 0 s") as told:
        sandbox._wait_for_end()
    assert "/bin/sh" in str(told.value.hint)


def test_an_agent_that_has_started_may_take_its_time(
    sandbox: sidecar.SidecarSandbox,
    start: Callable[[str], subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The deadline is for its start alone; one that was quick has been there, too."""
    assert not sandbox._shell_has_come()
    with start("read line; exit 3") as process:
        wait_until(sandbox._shell_has_come, 10, 0.01)
        process.communicate(b"go\n", timeout=10)
    monkeypatch.setattr(sidecar, "_AGENT_S", -1.0)
    assert sandbox._shell_has_come()
    assert sandbox._wait_for_end() == "3"


@pytest.mark.parametrize(
    ("written", "code"), [("0", 0), ("255", 255), ("256", 137), ("999999999", 137), ("\u0663", 137)]
)
def test_only_what_a_shell_writes_is_an_exit_code(
    sandbox: sidecar.SidecarSandbox, monkeypatch: pytest.MonkeyPatch, written: str, code: int
) -> None:
    """Anything else was written by somebody else, and nobody knows the code."""

    async def count() -> dict[str, int]:
        return {}

    monkeypatch.setattr(sandbox._link, "count", count)
    monkeypatch.setattr(sandbox, "_wait_for_end", lambda: written)
    assert asyncio.run(sandbox.wait()) == code


def test_the_search_domain_of_the_machine_reaches_no_agent() -> None:
    """Names would be asked for with it; the agent's network is that of the first container."""
    services = yaml.safe_load(_COMPOSE.read_text())["services"]
    networks = [service for name, service in services.items() if name.startswith("network-")]
    assert [service["dns_search"] for service in networks] == [["."]] * 3
