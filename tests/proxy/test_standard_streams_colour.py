"""Colours and bars are for terminals that want them; elsewhere output is plain."""

import io
import os
from pathlib import Path

import pytest

from playhead.proxy.progress import ProgressBar
from playhead.proxy.standard_streams import is_terminal, wants_colour
from playhead.store import Store
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


@pytest.mark.parametrize(
    ("variables", "is_one", "colour"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),  # as no-color.org says
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_terminal_is_coloured_unless_it_does_not_want_that(
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    is_one: bool,
    colour: bool,
) -> None:
    """By two variables."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (is_terminal(terminal), wants_colour(terminal)) == (is_one, colour)


def test_what_is_no_terminal_is_plain() -> None:
    """A file, a closed one, and none at all."""
    closed = io.StringIO()
    closed.close()
    for stream in (io.StringIO(), closed, None):
        assert not wants_colour(stream)


def test_bar_is_drawn_at_a_terminal_that_can_take_it_back(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at a dumb one, and at no other stream."""
    monkeypatch.setattr("playhead.proxy.progress._AFTER_S", -1.0)
    monkeypatch.setattr("sys.stderr", terminal)
    for term, drawn in (("xterm", True), ("dumb", False)):
        monkeypatch.setenv("TERM", term)
        with ProgressBar("working") as bar:
            bar(1, 2)
        assert ("working [" in terminal.getvalue()) == drawn
        terminal.seek(0)
        terminal.truncate()


@pytest.mark.parametrize(
    "words", [("--help",), ("runs",), ("show", "a"), ("diff", "a", "b")], ids=" ".join
)
def test_output_for_a_pipe_is_plain(words: tuple[str, ...], tmp_path: Path) -> None:
    """Also where the environment has a terminal's name and sizes."""
    with Store.open(tmp_path / ".playhead") as opened:
        for name, body in (("a", b"1"), ("b", b"2")):
            record_run(opened, name, [ask(body)])
    done = playhead(*words, cwd=tmp_path, env={**os.environ, "TERM": "xterm-256color"})
    assert "\x1b" not in done.stdout + done.stderr
