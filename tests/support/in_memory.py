"""The exchanges of a run without a store, for whoever reads them by seq."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from playhead.store import RunInfo
from playhead.tape.exchange import Exchange, Message, RunId
from playhead.tape.records.events import Event
from playhead.timeline.state.calls_before import Exchanges


class InMemory(Exchanges):
    """Exchanges that are given, in order of their seqs."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        name: str = "run",
        messages: Mapping[int, Sequence[Message]] | None = None,
    ) -> None:
        info = RunInfo(1, RunId(name), "record", 1)
        super().__init__(cast("Any", None), info)
        self._held = {one.seq: one for one in exchanges}
        self._messages = messages or {}
        self.__dict__["seqs"] = sorted(self._held)

    def find(self, seq: int) -> Exchange | None:
        """Find an exchange by its seq."""
        return self._held.get(seq)  # type: ignore[call-overload, no-any-return]  # a Seq is a number

    def find_some(self, seqs: list[int], marks: list[bytes] | None) -> Iterator[Exchange]:
        """Give some exchanges; the marks tell only which need not be read."""
        found = (self.find(seq) for seq in seqs)
        yield from (one for one in found if one is not None)

    def messages(self, exchange: Exchange) -> Iterator[Message]:
        """Give the messages of a WebSocket."""
        return iter(self._messages.get(exchange.seq, ()))

    def websockets(self) -> Iterator[Exchange]:
        """Give the WebSockets."""
        return (one for one in self._held.values() if one.seq in self._messages)

    def events(self) -> Iterator[Event]:
        """Give no events."""
        return iter(())
