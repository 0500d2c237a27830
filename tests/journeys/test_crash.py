"""An error of our own in the middle of an exchange: kept as what it is, and a reset for the client.

The engine is made to crash by the test. Other connections go on.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.run.pending_exchange import PendingExchange
from playhead.config import Config, Mode
from playhead.proxy.engine.http.playback_stream import PlayingStream
from playhead.proxy.engine.http.recording_stream import RecordingStream
from playhead.tape.exchange import Ending, FaultKind, Phase, VerdictKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.deck import Deck
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import open_tunnel, post, read_to_end

_BODY = bytes(200_000)
"""More than is read at once."""
_TEXT = "internal error: ZeroDivisionError: by the test"


async def _answer(conversation: Conversation) -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    await conversation.say(head % len(_BODY) + _BODY)
    conversation.over = True


@pytest.fixture
def origin(certificates: Certificates) -> Iterator[RawOrigin]:
    """Answer with more than is read at once."""
    with RawOrigin(_answer, certificates) as made:
        yield made


@pytest.fixture
def deck(tmp_path: Path, certificates: Certificates) -> Iterator[Deck]:
    """Record and play."""
    with Deck(
        Config(mode=Mode.RECORD, store=tmp_path / "store", upstream_ca=certificates.root)
    ) as made:
        yield made


def _ask(deck: Deck, run: str, url: str) -> tuple[bytes, Ending]:
    with open_tunnel(deck.running.url_for(run), url, deck.running.ca) as tunnel:
        post(tunnel, url, b"{}")
        return read_to_end(tunnel)


def _crash_in(monkeypatch: pytest.MonkeyPatch, kind: type[Any], method: str, after: int) -> None:
    """Have a method crash on its pending exchanges with `/crash` in their path, once `after` pieces have come."""
    sound = getattr(kind, method)

    def crash(self: Any, *rest: Any) -> Any:
        pending = self if kind is PendingExchange else self._pending
        if pending.flow.request.path == "/crash" and pending.answer.taken >= after:
            raise ZeroDivisionError("by the test")
        return sound(self, *rest)

    monkeypatch.setattr(kind, method, crash)


@pytest.mark.parametrize("where", ["head", "body"])
def test_a_crash_while_recording_is_a_fault_of_ours_and_not_a_client_that_left(
    where: str, deck: Deck, origin: RawOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had come is kept; the client is reset, then and on replay."""
    if where == "head":
        _crash_in(monkeypatch, RecordingStream, "start_response_stream", 0)
    else:
        _crash_in(monkeypatch, PendingExchange, "take", 1)
    _, how = _ask(deck, "crashed", f"{origin.url}/crash")
    fine, _ = _ask(deck, "crashed", f"{origin.url}/fine")
    deck.end("crashed")

    crashed, other = deck.tape("crashed")
    assert (how, crashed.gone, crashed.fault and crashed.fault.text) == (Ending.RST, None, _TEXT)
    assert crashed.fault is not None
    phase = Phase.HEAD if where == "head" else Phase.BODY
    assert (crashed.fault.kind, crashed.fault.phase) == (FaultKind.UNKNOWN, phase)
    assert crashed.fault.ending is Ending.RST
    if where == "body":
        assert crashed.response is not None
        assert 0 < len(crashed.response.body) < len(_BODY)
        assert not crashed.response.complete
    assert other.response is not None
    assert other.response.body == _BODY
    assert fine.endswith(_BODY)
    receipt = deck.receipt("crashed")
    assert f"a client's connection was reset: {_TEXT}" in receipt.warnings
    assert [row["text"] for row in receipt.faults] == [_TEXT]

    monkeypatch.undo()
    origin.stop()
    deck.play()
    assert _ask(deck, "crashed", f"{origin.url}/crash")[1] is Ending.RST


def test_a_crash_while_playing_is_no_faithful_replay(
    deck: Deck, origin: RawOrigin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that was cut counts as refused, and the effect as no repeat of itself."""
    for path in ("crash", "fine"):
        _ask(deck, "cut", f"{origin.url}/{path}")
    deck.end("cut")
    origin.stop()
    deck.play()
    _crash_in(monkeypatch, PlayingStream, "_play_step", 0)
    _, how = _ask(deck, "cut", f"{origin.url}/crash")
    fine, _ = _ask(deck, "cut", f"{origin.url}/fine")
    deck.end("cut@1")

    assert how is Ending.RST
    assert fine.endswith(_BODY)
    receipt = deck.receipt("cut@1")
    assert (receipt.requests, receipt.counts[VerdictKind.REFUSED.value]) == (2, 1)
    assert [row["reason"] for row in receipt.refused] == [_TEXT]
    effects = [(effect.answered_by, effect.outcome, effect.note) for effect in receipt.effects]
    assert effects[0] == ("refused", _TEXT, "")
    assert effects[1][0] == "tape seq 2"
    assert receipt.faithful is False
