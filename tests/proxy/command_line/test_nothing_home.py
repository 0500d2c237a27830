"""Playhead sends nothing home: no command of its own accord opens a connection to another machine, or asks for a name."""

import os
from pathlib import Path

import pytest

from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead, playhead_anew

WATCHED = """
import os, sys
sys.path[:0] = []
from playhead.tests.support.namespaces import enter
enter()
print_ = open("seen", "a", buffering=1)

def watch(event, given):
    if event == "socket.connect" and isinstance(given[1], tuple):
        print(event, given[1], file=print_)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        print(event, given[-1] if event.endswith("sendto") else given[0], file=print_)

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
    ("export", "mine", "--tape", "mine.tape"),
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
    if "mine" in words:
        done = playhead("record", "--run", "mine", "-q", "--", "true", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        done = playhead("export", "mine", "--tape", "mine.tape", cwd=tmp_path)
    if "import" in words:
        (tmp_path / "mine.tape").exists() or playhead("record", "-q", "--", "true", cwd=tmp_path)
    env = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    done = playhead_anew(*words, cwd=tmp_path, env=env, first=WATCHED)
    seen = (tmp_path / "seen").read_text().splitlines()
    outside = [line for line in seen if "127.0.0.1" not in line and "localhost" not in line]
    assert outside == [], done.stderr
