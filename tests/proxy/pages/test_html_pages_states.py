"""The page of a run opens in whatever state the run is, also with nothing in it: a replay of an agent that died at once is what one looks at."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from playhead.config import Config
from playhead.proxy.control.http.error_body import ControlError
from playhead.proxy.pages.application import _Routes
from playhead.proxy.pages.request_and_reply import Asked, read_query
from playhead.proxy.pages.run_again import RunAgain
from playhead.proxy.pages.sessions import Rights
from playhead.proxy.pages.store_reader import Library
from playhead.store import RunInfo, RunStatus, Store
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.tests.support.looking_back import write_store
from playhead.timeline.formats.tape_file import export_tape, import_tape
from playhead.web.single_file_page import make_file

_AT_NS = 1_700_000_000_000_000_000
_HELD = ("nothing", "gaps", "intent", "exchange")
"""What is in a run."""
_ENDS = ("open", "sealed", "recovered", "stopped")
_SORTS = ("recording", "playback", "branch")
_STATES = tuple(itertools.product(_SORTS, _HELD, _ENDS))
_PARTS = ("step", "lines", "effects", "receipt", "cache", "files", "summary")
_DATA = ("", "/steps", "/lines", "/strip?width=100", "/place?at=0.5")


async def _write(store: Store) -> None:
    played = await store.runs.create("played", mode="record", at_ns=_AT_NS)
    await _save(store, played)
    played = await store.runs.seal(played, reason="it ended", at_ns=_AT_NS + 1)
    for number, state in enumerate(_STATES):
        await _make(store, played, number, *state)
    data: list[bytes] = []
    export_tape(store, store.runs.get("recording-nothing-sealed"), data.append, lambda *_: None)
    (imported,) = import_tape(store, lambda: data, 1 << 20, lambda *_: None)
    assert imported.id == "recording-nothing-sealed~2"


async def _save(store: Store, run: RunInfo) -> None:
    exchange = make_exchange()
    store.events.append(run.number, make_intent(exchange))
    await store.exchanges.save(run.number, partial(make_record, exchange))


async def _make(store: Store, tape: RunInfo, at: int, sort: str, held: str, end: str) -> None:
    mode, parent = ("record", None) if sort == "recording" else ("playback", tape)
    run = await store.runs.create(
        "-".join((sort, held, end)), mode=mode, at_ns=_AT_NS, parent=parent
    )

    def tell(kind: EventKind, **data: Any) -> None:
        store.events.append(run.number, Event(kind, _AT_NS + at, data))

    if sort == "branch":
        tell(
            EventKind.NOTED,
            branch={"at": 1, "changes": (), "live": (), "routes": (), "answers": ()},
        )
    if held == "gaps":
        tell(
            EventKind.GAP,
            since_ns=1,
            until_ns=2,
            reason="the disk was full",
            exchanges=1,
            effects=0,
            records=1,
        )
        tell(EventKind.EGRESS, target="198.51.100.7:53", by="kernel", reason="no network")
    elif held == "intent":
        store.events.append(run.number, make_intent(make_exchange()))
    elif held == "exchange":
        await _save(store, run)
    if end == "stopped":
        tell(EventKind.STOPPED, by="ann", pid=7, reason="enough", at_ns=_AT_NS)
    if end in ("sealed", "stopped"):
        await store.runs.seal(run, reason="the command ended with 1", at_ns=_AT_NS + at)
    elif end == "recovered":
        died = {"unfinished": (1,) if held == "intent" else ()}
        store.runs._database.writer.call(
            lambda txn: store.runs.end(txn, run, RunStatus.RECOVERED, "it died", _AT_NS + at, died)
        )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = Library(Config(store=write_store(tmp_path_factory.mktemp("states") / "s", _write)))
    yield library
    library.close()


@pytest.fixture(scope="module")
def names(library: Library) -> list[str]:
    names = [str(run.id) for run in library.store.runs.all()]
    assert len(names) == len(_STATES) + 2
    return names


@pytest.mark.parametrize(
    "path",
    [
        "/runs/{run}",
        *(f"/parts/runs/{{run}}/{part}" for part in _PARTS),
        *(f"/data/runs/{{run}}{rest}" for rest in _DATA),
    ],
)
def test_each_address_of_a_run_answers_in_each_state(
    library: Library, names: list[str], path: str
) -> None:
    """What is not there is said, and not failed at."""
    routes = _Routes(library, RunAgain(library, ()))
    for run in names:
        whole, _, query = path.replace("{run}", run).partition("?")
        handler, parameters, _ = routes.find("GET", whole)
        asked = Asked("GET", whole, parameters, read_query(query), Rights.READ)
        reply = handler(asked)
        assert reply.status == 200, run


def test_a_step_of_a_run_without_one_is_not_there(library: Library, names: list[str]) -> None:
    """It is no error of ours."""
    routes = _Routes(library, RunAgain(library, ()))
    for run in names:
        if "-nothing-" not in run and "-gaps-" not in run:
            continue
        for path in (f"/runs/{run}", f"/data/runs/{run}/steps/1", f"/parts/runs/{run}/raw"):
            handler, parameters, _ = routes.find("GET", path)
            query = {} if path.endswith("raw") else {"seq": "1"}
            with pytest.raises(ControlError) as caught:
                handler(Asked("GET", path, parameters, query, Rights.READ))
            assert caught.value.status == 404


def test_a_file_of_each_run_is_made(library: Library, names: list[str]) -> None:
    """Of those that have not ended, too."""
    for run in names:
        file = make_file(library.store, library.store.runs.get(run), str, None, lambda *_: None)
        assert file.before, run
