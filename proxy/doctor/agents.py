"""Find the agents on PATH that people start by hand, with their version, and say how each is run here."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...config.profiles.shipped_profiles import shipped_profiles

_COMMANDS: tuple[tuple[str, str, str], ...] = (
    # program, profile, what it is started with
    ("claude", "claude-code", "claude -p TASK"),
    ("codex", "codex", "codex exec TASK"),
    ("gemini", "gemini-cli", "gemini -p TASK"),
    ("qwen", "qwen-code", "qwen -p TASK"),
    ("opencode", "opencode", "opencode run TASK"),
    ("aider", "aider", "aider --message TASK"),
    ("goose", "goose", "goose run -t TASK"),
    ("cursor-agent", "cursor-agent", "cursor-agent -p TASK"),
    ("copilot", "copilot", "copilot -p TASK"),
    ("amp", "amp", "amp -x TASK"),
    ("cline", "cline", "cline TASK"),
)
_WITHIN_S = 3.0
_MOST_BYTES = 4096
_VERSION = re.compile(r"\d+\.\d+[-.+\w]*")


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that is installed."""

    agent: str
    """Its program."""
    path: str
    version: str
    """As it says; empty where it does not say so in time."""
    profile: str
    """The shipped profile that knows it, with its version; empty where there is none."""
    run: str
    """What to run."""


async def find_agents(environ: Mapping[str, str], *, path: str | None = None) -> list[Agent]:
    """Find those that are on PATH, and ask each for its version, all at once.

    environ: for them.
    """
    known = {one.name: f"{one.name} {one.version}" for one in shipped_profiles()}
    found = [
        (program, place, known.get(profile, ""), words)
        for program, profile, words in _COMMANDS
        if (place := shutil.which(program, path=path)) is not None
    ]
    versions = await asyncio.gather(*(_ask_version(row[1], environ) for row in found))
    return [
        Agent(program, place, version, profile, f"playhead record -- {words}")
        for (program, place, profile, words), version in zip(found, versions, strict=True)
    ]


async def _ask_version(program: str, environ: Mapping[str, str]) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "--version",
            env=dict(environ),  # uvloop takes no other mapping
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # so that what it starts ends with it
        )
    except OSError:
        return ""
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(_WITHIN_S):
            while len(said) < _MOST_BYTES and (data := await process.stdout.read(_MOST_BYTES)):
                said += data
    except TimeoutError:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    version = _VERSION.search(said.decode(errors="replace"))
    return version[0][:40] if version is not None else ""


def render_agents(agents: Sequence[Agent]) -> str:
    """Write them for people; empty where there are none."""
    if not agents:
        return ""
    lines = ["", "agents on PATH:"]
    for one in agents:
        profile = f"profile {one.profile}" if one.profile else "no profile: works as any client"
        lines.append(f"  {one.agent} {one.version or '(version unknown)'}: {profile}; {one.run}")
    lines.append(
        "  Replay with: playhead replay RUN -- the same command. One that goes past the proxy: record --sandbox notify, or record --capture."
    )
    return "\n".join(lines)
