"""The programs that a command runs, and the profiles that ask for one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.config.profiles.client_profile_file import ProfileFile
from playhead.config.profiles.command_programs import find_program, find_programs
from playhead.config.profiles.shipped_profiles import find_profiles
from playhead.proxy.run import launcher

PROFILE = """profile: mine
version: 1
client: Mine
recognise: {user_agent: [openai], process: [My-Agent, other]}
places:
  - match: POST *://*/*chat/completions
    json: $.id
    regex: '^id-([0-9a-f]{8})$'
    reason: new in each run
    client_version: 1
    recordings: [a, b]
"""
OWN = Config(profiles=(ProfileFile("mine.yaml", PROFILE),))

PROGRAMS = [
    (["my-agent", "--prompt", "run codex"], "my-agent"),
    (["/opt/bin/My-Agent"], "my-agent"),
    (["python3.13", "-u", "src/my-agent.py", "--fast"], "my-agent"),
    (["python", "-m", "my-agent"], "my-agent"),
    (["uv", "run", "my-agent"], "my-agent"),
    (["npx", "-y", "@scope/my-agent@1.2.3"], "my-agent"),
    (["env", "HOME=/tmp/x", "my-agent"], "my-agent"),
    (["sh", "-c", "cd /srv && exec my-agent --go"], "cd"),
    (["node", "C:\\tools\\my-agent.mjs"], "my-agent"),
    (["sh", "-c", "my-agent 'it"], "my-agent"),
]


@pytest.mark.parametrize(("command", "likely"), PROGRAMS, ids=str)
def test_a_program_is_found_by_its_name(command: list[str], likely: str) -> None:
    """Alone, behind an interpreter, in a script for a shell; without folder, version and extension."""
    assert "my-agent" in find_programs(command)
    assert find_program(command) == likely


@pytest.mark.parametrize("command", [[], [""], ["codex", "my-agent"], ["./run.sh"], ["sh"]])
def test_another_program_is_not_it(command: list[str]) -> None:
    """What a program is told is no program; what a script starts is not seen."""
    assert "my-agent" not in find_programs(command)


@pytest.mark.parametrize(
    ("command", "known"),
    [(["my-agent"], True), (["sh", "-c", "other"], True), (["codex", "exec"], False)],
)
def test_a_profile_that_asks_for_a_process_is_for_that_command(
    command: list[str], known: bool
) -> None:
    """Of another command it leaves nothing out; those that ask for none stay as they are."""
    config = launcher.for_command(OWN, command)
    names = [one.name for one in find_profiles(config.profiles_off, config.profiles)]
    assert ("mine" in names) is known
    assert names[:2] == ["browser-use", "claude-code"]
    assert launcher.for_command(Config(store=Path("x")), command) == Config(store=Path("x"))


@pytest.mark.parametrize("start", [launcher.record, launcher.replay])
def test_what_starts_a_command_asks_for_its_profiles(
    start: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both modes, so that a tape has the index that its replay looks for."""
    used: list[Config] = []
    monkeypatch.setattr(launcher, "_launch", lambda config, _: used.append(config))
    for command in (["my-agent"], ["codex"]):
        start(OWN, "a-run", command, launcher.Output())
    assert [one.profiles for one in used] == [OWN.profiles, ()]
