"""Heads are compiled once for a process, whichever thread asks first."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from playhead.tape.redaction.finding.finder import Finder
from playhead.tape.redaction.finding.pattern_prefilter import Head, Hits


class _Empty:
    """Finds nothing."""

    def find(self, _data: bytes, _most: int = 0) -> Hits | None:
        return None


class _Kept:
    """Keeps nothing, and says when a second thread asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.asked = threading.Semaphore(0)

    def alone(self) -> threading.Lock:
        self.asked.release()
        return self._lock

    def find(self, _name: str) -> bytes | None:
        return None

    def keep(self, _name: str, _compiled: bytes) -> None:
        return None


def test_a_text_that_comes_while_the_heads_are_compiled_waits_for_them() -> None:
    """Compiled twice they would cost a quarter of a second of CPU more."""
    kept = _Kept()
    compiled: list[int] = []

    def engine(heads: Sequence[Head], _kept: Any = None) -> _Empty:
        compiled.append(len(heads))
        if len(compiled) == 1:
            for _ in range(2):  # this thread, and the other one
                assert kept.asked.acquire(timeout=30)
        return _Empty()

    finder = Finder(engine)
    finder.use_kept(kept)
    with ThreadPoolExecutor(2) as threads:
        first, second = (threads.submit(finder.look, b"text") for _ in range(2))
        assert first.result() is second.result() is None
    assert len(compiled) == 1


def test_a_text_that_comes_before_the_heads_are_prepared_uses_what_was_kept() -> None:
    """Whoever is first loads what another process has compiled."""
    given: list[Any] = []

    def engine(_heads: Sequence[Head], kept: Any = None) -> _Empty:
        given.append(kept)
        return _Empty()

    finder, kept = Finder(engine), _Kept()
    finder.use_kept(kept)
    finder.look(b"text")
    finder.prepare()
    assert given == [kept, kept]  # all heads, and those for a text read backwards
