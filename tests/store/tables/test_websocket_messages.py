"""The messages of WebSockets."""

from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tape.exchange import Message, MessageKind


@pytest.mark.parametrize("seqs", [[], [1], [2, 7, 300]])
async def test_the_exchanges_with_messages_are_listed(tmp_path: Path, seqs: list[int]) -> None:
    """Those of the run alone, each once."""
    with Store.open(tmp_path / "store") as store:
        runs = [await store.runs.create(name, mode="record", at_ns=1) for name in "abc"]
        for run, held in zip(runs, ([1, 2], seqs, [3]), strict=True):
            for seq in held:
                for number in range(3):
                    message = Message(number, from_client=True, kind=MessageKind.TEXT, data=b"x")
                    store.messages.append(run.number, seq, number, message)
        await store.runs.seal(runs[0], reason="ended", at_ns=2)
        assert store.messages.seqs(runs[1]) == seqs
