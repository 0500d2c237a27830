"""The store as pages read it: it is closed once nobody reads it any more, and nobody is waited for."""

import threading
from pathlib import Path

from playhead.config import Config
from playhead.proxy.pages.library import Library
from playhead.tests.web.cases.refund_store import write_refund_store


def test_what_is_still_computed_keeps_nobody_waiting(tmp_path: Path) -> None:
    """As the receipt of a long run: the store stays open, and whoever asked is told."""
    library = Library(Config(store=write_refund_store(tmp_path / "store")))
    begun, over = threading.Event(), threading.Event()

    def compute() -> None:
        begun.set()
        over.wait(60)

    library._submit(compute)
    assert begun.wait(60)
    assert library.close() is False
    over.set()
    assert library.close() is True


def test_a_store_that_nobody_reads_is_closed(tmp_path: Path) -> None:
    """At once."""
    assert Library(Config(store=write_refund_store(tmp_path / "store"))).close() is True
