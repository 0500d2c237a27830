"""What an agent in another container is given, and what it gives back."""

import subprocess
from pathlib import Path

import pytest

from playhead.config import Config, LiveRule, Match, Mode
from playhead.proxy.docker import beside
from playhead.proxy.errors import EngineError

HARSH = "a 'quoted' \"text\" with $HOME, `date`, \\ and a\nnew line"


def _shell(line: str, name: str, **env: str) -> str:
    code = f'{line}printf %s "${name}"'
    return subprocess.run(
        ["/bin/sh", "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout


def test_a_shell_reads_what_was_written() -> None:
    """Whatever is in it."""
    assert _shell(beside._export("NAME", HARSH), "NAME") == HARSH


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
    assert _shell(beside._export(name, "/ours"), name, **{name: theirs}) == both


def _place(monkeypatch: pytest.MonkeyPatch, config: Config, *devices: str) -> None:
    monkeypatch.setattr("socket.if_nameindex", lambda: list(enumerate(("lo", *devices), 1)))
    link = Path("/link")
    beside.Beside(link, link).place(config, ["agent"], None, "http://127.0.0.1:1023")


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
    with pytest.raises(EngineError, match="a recording has to reach"):
        _place(monkeypatch, Config(mode=Mode.RECORD))
