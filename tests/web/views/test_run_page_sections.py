"""The parts of a run's page: what of two values is marked, and what is said of the working folder."""

from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tape.folders.manifest import Entry, Kind, Manifest, find_step
from playhead.web.views.run_page_sections import Split, split_values, view_files


@pytest.mark.parametrize(
    ("one", "other", "split"),
    [
        # numbers
        ("4900", "1900", ("", "4900", "1900", "")),
        ("200", "500", ("", "200", "500", "")),
        ("49.00", "49.10", ("", "49.00", "49.10", "")),
        ("1,200", "1,300", ("", "1,200", "1,300", "")),
        ("-5", "-15", ("", "-5", "-15", "")),
        ("5", "-5", ("", "5", "-5", "")),
        ('{"a": 10}', '{"a": 100}', ('{"a": ', "10", "100", "}")),
        # names and words
        ("ch_1007", "ch_1008", ("", "ch_1007", "ch_1008", "")),
        ("refund charge", "refund change", ("refund ", "charge", "change", "")),
        ("pay 5 now", "pay 7 now", ("pay ", "5", "7", " now")),
        # longer than any word
        ("A" * 300, "A" * 299 + "B", ("A" * 200, "A", "B", "")),
        # one is the beginning of the other
        ("yes", "yes please", ("yes", "", " please", "")),
        ("yes", "yesterday", ("", "yes", "yesterday", "")),
        ("same", "same", ("same", "", "", "")),
        ("", "new", ("", "", "new", "")),
    ],
)
def test_whole_numbers_and_words_are_marked(
    one: str, other: str, split: tuple[str, str, str, str]
) -> None:
    """Whoever reads, hears or copies the two marks has both values."""
    assert split_values(one, other) == Split(*split)


async def test_a_folder_that_was_listed_in_part_is_not_told_as_whole(tmp_path: Path) -> None:
    """What seems to be gone because it was not listed is no change, and the page names what is not known."""
    file, folder = Entry(Kind.FILE, 0o644, 1, digest=b"d" * 32), Entry(Kind.FOLDER, 0o755)
    start = Manifest(b"/w", {b"d": folder, b"d/x": file, b"y": file})
    cut = Manifest(
        b"/w", {b"d": folder}, seq=1, omitted=1, unlisted=frozenset([b"d"]), cut_by="it is large"
    )
    with Store.open(tmp_path) as store:
        info = await store.runs.create("r", mode="record", at_ns=1)
        store.folders.save(info.number, start)
        store.folders.save_step(info.number, 1, find_step(start, cut), [])
        told = view_files(store, info)
    assert told is not None
    assert told["cut"] == "d/ is not listed, because it is large"
    assert told["rows"][0]["counts"] == [("deleted", 1)]
