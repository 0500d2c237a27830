"""The agents on PATH: which they are, which version, which profile, and what to run."""

import asyncio
import os
from pathlib import Path

import pytest

from playhead.config.profiles.shipped_profiles import shipped_profiles
from playhead.proxy.doctor import agents
from playhead.proxy.doctor.agents import find_agents, render_agents
from playhead.proxy.engine.event_loop import new_event_loop

PROGRAMS = {
    "claude": "echo '2.1.197 (Claude Code)'",
    "aider": "echo aider 0.86.1; sleep 60",
    "goose": "exec sleep 60",
    "amp": "exit 1",
}


def test_agents_on_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there, one that does not say its version in time included; nothing of them is left behind."""
    for name, script in PROGRAMS.items():
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    monkeypatch.setattr(agents, "_WITHIN_S", 0.5)
    found = asyncio.run(find_agents({"PATH": "/usr/bin:/bin"}, path=str(tmp_path)))
    version = next(one.version for one in shipped_profiles() if one.name == "claude-code")
    assert [(one.agent, one.version, one.profile) for one in found] == [
        ("claude", "2.1.197", f"claude-code {version}"),
        ("aider", "0.86.1", ""),
        ("goose", "", ""),
        ("amp", "", ""),
    ]
    text = render_agents(found)
    assert "claude 2.1.197: profile claude-code" in text
    assert "goose (version unknown): no profile" in text
    assert "playhead record -- claude -p TASK" in text
    assert "--capture" in text
    assert render_agents([]) == ""


def test_the_environment_of_this_process_is_one_to_ask_with(tmp_path: Path) -> None:
    """`os.environ` is no dict, and uvloop takes nothing else."""
    file = tmp_path / "claude"
    file.write_text("#!/bin/sh\necho 2.1.197\n")
    file.chmod(0o755)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        (found,) = runner.run(find_agents(os.environ, path=str(tmp_path)))
    assert found.version == "2.1.197"
