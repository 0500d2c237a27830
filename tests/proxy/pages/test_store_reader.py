"""The store as pages read it: it is closed once nobody reads it any more, and nobody is waited for."""

import threading
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.pages import store_reader as library_module
from playhead.proxy.pages.store_reader import Library, Waited
from playhead.tests.support.process import wait_until
from playhead.tests.web.cases.refund_store import RUN, write_refund_store


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


def test_what_is_read_meanwhile_stands_still_for_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that are under way; it goes on behind the last one."""
    monkeypatch.setattr(library_module, "_GIVE_WAY_S", 60.0)
    waited, went_on = Waited(), threading.Event()

    def read() -> None:
        waited.give_way()
        went_on.set()

    reading = threading.Thread(target=read)
    with waited:
        with waited:
            reading.start()
        assert not went_on.wait(0.05)
    assert went_on.wait(60)
    reading.join()


def test_many_requests_do_not_keep_it_from_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on after a moment, however many there are."""
    monkeypatch.setattr(library_module, "_GIVE_WAY_S", 0.0)
    waited = Waited()
    with waited:
        waited.give_way()


def test_the_facts_of_a_long_run_come_from_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those that this one would have computed."""
    library = Library(Config(store=write_refund_store(tmp_path / "store")))
    info = library.store.runs.get(RUN)
    here = library.find_facts(info)
    assert here is not None
    library._facts.clear()
    monkeypatch.setattr(library_module, "is_quick", lambda _: False)
    assert library.find_facts(info) is None
    wait_until(lambda: library.find_facts(info) is not None, timeout_s=60)
    assert library.find_facts(info) == here
    assert library.close() is True


def test_facts_that_are_computed_keep_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their process ends with the pages."""
    library = Library(Config(store=write_refund_store(tmp_path / "store")))
    monkeypatch.setattr(library_module, "is_quick", lambda _: False)
    library.find_facts(library.store.runs.get(RUN))
    wait_until(lambda: bool(library._computing), timeout_s=60)
    assert library.close() is True
    assert not library._computing


def test_the_seqs_of_a_run_that_has_ended_are_listed_once(tmp_path: Path) -> None:
    """Of a long run that takes longer than all the rest of a step."""
    library = Library(Config(store=write_refund_store(tmp_path / "store")))
    run = library.open_run(RUN)
    assert run.exchanges is run.exchanges
    assert run.exchanges.seqs == list(run.index.seqs)
    assert library.close() is True
