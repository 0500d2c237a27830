"""The cases themselves: there are as many as the page is held to, and each stands in the store where it is looked for."""

from collections import Counter
from pathlib import Path

from playhead.store import Store
from playhead.tests.support.looking_back import ask
from playhead.tests.web.cases.hostile_store import (
    HEAVY,
    HEAVY_SEQS,
    NAMES,
    RUN,
    SEQS,
    write_hostile_store,
)
from playhead.tests.web.cases.payloads import PAYLOADS

KINDS = {"html", "svg", "css", "template", "scheme", "terminal", "unicode", "bytes", "json", "shell", "heavy"}  # fmt: skip


def test_there_are_payloads_of_every_kind() -> None:
    """No name and no marker is there twice, and a marker is in its payload unless that is compressed."""
    assert len(PAYLOADS) >= 60
    assert {one.kind for one in PAYLOADS} == KINDS
    assert [
        name for name, count in Counter(one.name for one in PAYLOADS).items() if count > 1
    ] == []
    unmarked = [
        one.name for one in PAYLOADS if not one.coding and one.marker.encode() not in one.data
    ]
    assert unmarked == []


def test_every_payload_stands_in_the_store(tmp_path: Path) -> None:
    """In a model call and in an effect, or in a body alone; the store verifies, and the terminal shows no escape."""
    folder = write_hostile_store(tmp_path / "store")
    with Store.open(folder, readonly=True) as store:
        run, heavy = store.runs.get(RUN), store.runs.get(HEAVY)
        for payload in PAYLOADS:
            if payload.is_heavy:
                made = store.exchanges.find(heavy, HEAVY_SEQS[payload.name])
                assert made is not None
                assert made.request.body == payload.data, payload.name
                continue
            for seq in SEQS[payload.name]:
                made = store.exchanges.find(run, seq)
                assert made is not None
            assert made.response is not None
            assert made.response.body == payload.data, payload.name
        assert {one.id for one in store.runs.all()} >= {*NAMES, RUN, HEAVY}
    assert len(NAMES) >= 40
    for words in (("runs",), ("effects", RUN), ("show", RUN, 1), ("note", RUN)):
        shown = ask(folder, *words)
        assert shown.exception is None, words
        assert not set(shown.output) & {
            *map(chr, range(10)),
            *map(chr, range(11, 32)),
            "\x9b",
            "\u202e",
        }, words
