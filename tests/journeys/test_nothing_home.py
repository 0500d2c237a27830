"""Playhead sends nothing home: no command of its own accord opens a connection to another machine, or asks for a name."""

import os
from pathlib import Path

import pytest

from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead, playhead_anew

WATCHED = """
import os, sys
from playhead.tests.support.namespaces import enter
enter()
seen = open("seen", "a", buffering=1)

def watch(event, given):
    if event == "socket.connect" and isinstance(given[1], tuple):
        print(event, given[1], file=seen)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        print(event, given[-1] if event.endswith("sendto") else given[0], file=seen)

sys.addaudithook(watch)
"""
"""In a network of its own that has loopback alone, so that what is missed here fails."""
COMMANDS = (
    ("--version",),
    ("--help",),
    ("init",),
    ("env",),
    ("ca",),
    ("record", "--run", "mine", "-q", "--", "true"),
    ("replay", "--no-sandbox", "mine", "--", "true"),
    ("runs",),
    ("show", "mine"),
    ("receipt", "mine"),
    ("verify",),
    ("cost", "--since", "30d"),
    ("destinations",),
    ("export", "mine", "--tape", "again.tape"),
    ("import", "--store", "other", "mine.tape"),
    ("profiles",),
    ("gc",),
    ("completion", "bash"),
    ("ca", "rotate"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words))
def test_command_asks_for_no_name_and_connects_to_nobody(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """But to its own address on loopback."""
    need("a sandbox")
    if any("mine" in word for word in words[1:]) and words[0] != "record":
        for first in (
            ("record", "--run", "mine", "-q", "--", "true"),
            ("export", "mine", "--tape", "mine.tape"),
        ):
            assert playhead(*first, cwd=tmp_path).returncode == 0
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = playhead_anew(*words, cwd=tmp_path, env=env, first=WATCHED)
    seen = (tmp_path / "seen").read_text().splitlines()
    outside = [line for line in seen if "127.0.0.1" not in line and "localhost" not in line]
    assert outside == [], done.stderr
    assert "Traceback" not in done.stderr
