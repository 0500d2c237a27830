"""Lines of a server that come in many answers at once are written in their order."""

import asyncio
from types import SimpleNamespace

import pytest

from playhead.proxy.stdio import ordered_output
from playhead.proxy.stdio.ordered_output import InOrder


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is written to standard output."""
    pieces: list[bytes] = []

    def write(_: int, data: memoryview) -> int:
        pieces.append(bytes(data))
        return len(data)

    monkeypatch.setattr(ordered_output, "os", SimpleNamespace(write=write))
    return pieces


@pytest.mark.parametrize(
    ("numbers", "order"),
    [
        ([1, 2, 3], "123"),
        ([3, 1, 2], "123"),
        # an error of ours has no number, and waits for nobody
        ([2, 0, 1], "012"),
        # 2 does not come: what waits for it is let go
        ([4, 1, 3], "134"),
        # of another server with the same name
        ([1, 1, 2], "112"),
    ],
)
async def test_lines_wait_for_those_before_them(
    written: list[bytes], monkeypatch: pytest.MonkeyPatch, numbers: list[int], order: str
) -> None:
    """For a second at most."""
    monkeypatch.setattr(ordered_output, "_GAP_S", 0.05)
    output = InOrder()
    await asyncio.gather(*(output.put(number, b"%d" % number) for number in numbers))
    output.close()
    assert b"".join(written).decode() == order
