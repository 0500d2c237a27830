"""What a process of ours makes with its first request: where they are forked this is imported, and it is made once."""

import gc
import os
from pathlib import Path

import playhead.proxy.run.early
import playhead.proxy.run.launcher
from playhead.config import Config
from playhead.config.profiles.shipped_profiles import shipped_profiles
from playhead.proxy.run import tampering
from playhead.proxy.sandbox.filesystem import named_pipes
from playhead.proxy.sandbox.filesystem.playhead_startup_paths import find_startup_places
from playhead.tape.classify.by_method_and_url import classify
from playhead.tape.redaction.redactor import Redactor

# Every pattern of the shipped rules is compiled.
classify("POST", "https", "host.test", 443, "/path", Config().classes)
# The search of secrets is compiled: every proxy would do so at its start, for half of the CPU of a short replay.
Redactor.prepare()
# The profiles of clients are read: every command that runs another one would read them.
shipped_profiles()

# What the libraries of this process need is read: it is the same in all that are forked.
find_startup_places(os.environ)

# As in tests: see conftest.py. What is forked lives for a second.
gc.set_threshold(50_000, 20, 100)

_SEARCH_S, _AGAIN_S = 0.01, 0.01


class _BriefSearch:
    """A search for named pipes that is over once it has begun."""

    def __init__(self, where: named_pipes.Where, most_s: float) -> None:
        self.where = where
        most_s = _SEARCH_S if most_s == named_pipes.MOST_S else most_s
        pipes, left = named_pipes.search(
            where.roots,
            where.closed,
            far=where.far,
            most_entries=named_pipes._most_entries(most_s),
            most_s=most_s,
        )
        self._found = named_pipes.cut(pipes, [*where.elsewhere, *left])

    def result(self) -> named_pipes.Found:
        return self._found

    def close(self) -> None:
        pass


# What is near is looked at first. In a home folder the search would take all of its time, and an interpreter of its own,
# in each of some hundred replays; what is forked is so with reduced counts alone.
playhead.proxy.run.early.Search = _BriefSearch  # type: ignore[assignment, attr-defined]  # imported there, not exported
named_pipes.MOST_AGAIN_S = _AGAIN_S


_look = tampering._look


def _state(path: Path | str) -> tuple[int, ...]:
    found = os.stat(path)
    times = found.st_mtime_ns, found.st_ctime_ns
    return found.st_dev, found.st_ino, found.st_size, found.st_nlink, *times


# Each run hashes Playhead's own thousand files before its command and after it. Here they are hashed once, and again
# where anything about one of them is other than it was then.
_HASHED = {path: (_state(path), _look(path, content=True)) for path in tampering._package_files()}


def _look_again(path: Path | str, *, content: bool) -> tampering._Place | None:
    known = _HASHED.get(path) if content and isinstance(path, str) else None
    if known is not None:
        try:
            if known[0] == _state(path):
                return known[1]
        except OSError:
            pass
    return _look(path, content=content)


tampering._look = _look_again
