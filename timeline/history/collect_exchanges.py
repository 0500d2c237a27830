"""Find the exchanges of runs with a resource: in the store by the log, which has every URL, and in an archive by the same log."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...store import Archived, RunInfo, Store
from ...tape.exchange import Exchange, VerdictKind
from ...tape.records.events import Event, EventKind, decode_event
from ..state.calls_before import Exchanges
from .resource_state import Use, find_use, may_be_use

if TYPE_CHECKING:  # it needs pyarrow, which reading a store does not
    from ...store.archive.storage import Place

MOST_URLS = 5000
"""URLs that are remembered, to name the nearest where one was never asked for."""
_MADE = (VerdictKind.RECORDED, VerdictKind.LIVE)
"""What reached the resource; what a tape answered did not."""


class Collector:
    """Collects the exchanges with a resource, run by run."""

    def __init__(self, url: str) -> None:
        """Begin.

        url: of the resource.
        """
        self.url = url
        self.urls: dict[str, None] = {}
        """Others that were asked for."""

    def of_store(self, store: Store, info: RunInfo, *, named: bool) -> Iterator[Use]:
        """Give those of a run that the store has.

        named: whether the run was asked for by its name: then what a tape answered counts, too.
        Raises: LogCorrupt.
        """
        exchanges = Exchanges(store, info)
        logged, wanted = self._from_log(store.events.all(info))
        unlogged = [seq for seq in exchanges.seqs if seq not in logged]
        for seq in sorted({*wanted, *self._from_bytes(store, info, unlogged)}):
            exchange = exchanges.find(seq)
            if exchange is not None:
                yield from self._use(info, exchange, named=named)

    def of_archive(self, info: RunInfo, where: Archived, place: "Place") -> Iterator[Use]:
        """Give those of a run that an archive has, without restoring it.

        Raises: StoreError.
        """
        from ...store.archive.reading import BatchReader  # needs pyarrow
        from ..archiving.move_runs import find_step

        with BatchReader(place, where.batch) as batch:
            events = (decode_event(one, at) for at, one in enumerate(batch.events(where.id), 1))
            _, wanted = self._from_log(events)
        for seq in sorted(wanted):
            step = find_step(where, place, seq)
            if step is not None:
                yield from self._use(info, step.exchange, named=False)

    def _from_log(self, events: Iterable[Event]) -> tuple[set[int], set[int]]:
        """Give the seqs that a log has, and those that may have to do with the resource."""
        logged: set[int] = set()
        wanted: set[int] = set()
        for event in events:
            if event.kind not in (EventKind.INTENT, EventKind.VERDICT):
                continue
            method, url = event.data["method"], event.data["url"]
            logged.add(event.seq)
            if may_be_use(method, url, self.url):
                wanted.add(event.seq)
            self._remember(url)
        return logged, wanted

    def _from_bytes(self, store: Store, info: RunInfo, seqs: list[int]) -> Iterator[int]:
        """Find exchanges that no log tells of by their bytes."""
        host = self.url.partition("://")[2].partition("/")[0].partition(":")[0].lower().encode()
        for seq, packed in store.exchanges.raw(info, seqs):
            if host in packed.value[: packed.answer_at].lower():
                yield seq

    def _remember(self, url: str) -> None:
        if len(self.urls) < MOST_URLS:
            self.urls[url] = None

    def _use(self, info: RunInfo, exchange: Exchange, *, named: bool) -> Iterator[Use]:
        self._remember(exchange.request.url)
        if info.is_explored:
            counts = named  # it never reached the resource either
        else:
            counts = exchange.verdict in _MADE or (named and exchange.verdict is VerdictKind.SERVED)
        found = find_use(info.id, exchange, self.url) if counts else None
        if found is not None:
            yield found
