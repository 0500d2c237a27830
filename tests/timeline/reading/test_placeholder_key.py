"""A run says with which key its placeholders were made."""

from pathlib import Path

from playhead.store import Store
from playhead.timeline.reading.placeholder_key import find_key


async def test_the_key_of_a_run_is_found_where_it_was_said(tmp_path: Path) -> None:
    """Runs of before, and playbacks, say none."""
    with Store.open(tmp_path) as store:
        for name, said in (("a", "0123456789abcdef"), ("b", "")):
            run = await store.runs.create(name, mode="record", at_ns=1, placeholders=said)
            assert find_key(store, run) == said
