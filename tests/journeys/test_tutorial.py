"""docs/tutorial.md, typed in by a newcomer: every command is run, and prints what the page shows."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import playhead as package
from playhead.proxy.sandbox.preflight import works
from playhead.tests.support import prepared
from playhead.tests.support.process import playhead
from playhead.tests.support.refunds import STORY, run_fakes

PAGE = (Path(package.__file__).parent / "docs" / "tutorial.md").read_text("utf-8")
SERVICES = {"fake_provider": "9001", "fake_payments": "9002"}
EXIT_CODES = {"agent_fixed": 121, "branch": 0}
"""Of commands with such a word, the last that applies; of all others 0."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\b\d+(?:\.\d+)? ?m?s\b")


class Typed(NamedTuple):
    """A command of the page, and the lines below it."""

    command: str
    shown: list[str]


def _typed() -> Iterator[Typed]:
    """Give the commands in their order; a fence without one goes on with the output before it."""
    found: list[Typed] = []
    for kind, text in _FENCE.findall(PAGE):
        lines = text.splitlines()
        if lines[0].startswith("$ "):
            found.append(Typed(lines[0].removeprefix("$ "), lines[1:]))
        elif not kind and not lines[0].startswith("python "):
            found[-1].shown.extend(["...", *lines])
    yield from found


def _words(line: str) -> str:
    """Give a line without what differs from run to run: times, and the blanks that their width decides."""
    return " ".join(_TIME.sub("TIME", line).split())


def _missing(shown: list[str], printed: str) -> list[str]:
    """Give the first line that is not printed where the page shows it, with the lines there; `...` stands for any lines."""
    lines = [_words(line) for line in printed.splitlines()]
    at, gap = 0, True
    for line in map(_words, shown):
        if line == "...":
            gap = True
            continue
        found = lines.index(line, at) if line in lines[at:] else -1
        if found < 0 or (found > at and not gap):
            return [line, "found:", *lines[at : at + 3]]
        at, gap = found + 1, False
    return []


def test_every_command_of_the_tutorial_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word by word but for ports and times; the services are stopped and started where the page says so."""
    commands = list(_typed())
    assert [typed.command.split()[1] for typed in commands[1:]] == [
        *("record", "show", "show", "replay", "blame", "replay", "branch"),
    ]
    (answers,) = [text for kind, text in _FENCE.findall(PAGE) if kind == "yaml"]
    for name, port in SERVICES.items():
        assert f"python -m {STORY}.{name} --port {port} &\n" in PAGE
    monkeypatch.delenv("REFUND_TIMEOUT_S", raising=False)
    ports: dict[str, str] = {}

    def here(text: str) -> str:
        return re.sub(r"(?<=127\.0\.0\.1:)900[12]", lambda found: ports[found[0]], text)

    def there(text: str) -> str:
        for shown, real in ports.items():
            text = text.replace(f"127.0.0.1:{real}", f"127.0.0.1:{shown}")
        return text

    environment: dict[str, str] = {}

    def run(typed: Typed) -> None:
        words = shlex.split(here(typed.command))
        if words[0] == "export":
            for word in words[1:]:
                name, _, value = word.partition("=")
                environment[name] = value
            return
        assert words.pop(0) == "playhead"
        command = [sys.executable if word == "python" else word for word in words]
        if words[0] in ("replay", "branch") and not works():
            command.insert(2, "--no-sandbox")
        done = playhead(*command, cwd=tmp_path, env=environment)
        printed = there(done.stdout + done.stderr).replace(sys.executable, "python")
        codes = [code for word, code in EXIT_CODES.items() if word in typed.command]
        assert done.returncode == (codes[-1] if codes else 0), printed
        assert _missing(typed.shown, printed) == [], printed

    with run_fakes("2.5") as fakes:
        ports |= {
            shown: url.rpartition(":")[2]
            for shown, (_, url) in zip(SERVICES.values(), fakes, strict=True)
        }
        for typed in commands[:4]:
            run(typed)
    for typed in commands[4:7]:
        run(typed)
    (tmp_path / "answers.yaml").write_text(here(answers))
    again = prepared.start(
        [sys.executable, "-m", f"{STORY}.fake_provider", "--port", ports["9001"]],
        imports=["aiohttp.web"],
        stdout=-1,
        text=True,
    )
    try:
        assert again.stdout is not None
        assert again.stdout.readline().startswith("ready")
        run(commands[7])
    finally:
        again.kill()
        again.communicate()


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [
        (["a", "b"], "a\nb\n", ""),
        (["a", "...", "c"], "a\nb\nc\n", ""),
        (["a", "c"], "a\nb\nc\n", "c"),
        (["  4  87ms"], "4 1.5s", ""),
        (["b", "a"], "a\nb\n", "a"),
        (["x"], "a\n", "x"),
    ],
)
def test_a_line_that_is_not_printed_is_noticed(
    shown: list[str], printed: str, missing: str
) -> None:
    """Between `...` lines stand one below the other."""
    assert _missing(shown, printed)[:1] == ([missing] if missing else [])
