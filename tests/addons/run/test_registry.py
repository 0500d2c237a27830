"""Who belongs to which run: the rules, with stand-ins for the processes of clients."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from mitmproxy.connection import Client, ConnectionState

from playhead.addons.run import registry as module
from playhead.addons.run import run_state as open_run_module
from playhead.addons.run.exchange_parts.phases import Held
from playhead.addons.run.lifecycle import client_process_groups
from playhead.addons.run.lifecycle.client_process_groups import Processes
from playhead.addons.run.registry import Rejected, RunRegistry, name_after
from playhead.addons.run.run_state import OpenRun, Stopped
from playhead.config import Config, Mode, Runs
from playhead.store import RunStatus, Store
from playhead.tape.exchange import NO_TEXT, Seq
from playhead.tape.redaction.redactor import Redactor


class Seen(NamedTuple):
    """A process group as it is seen at a connection."""

    pgid: int
    started: float
    command: str = "agent"
    pid: int = 7


class OpenRuns:
    """Open runs in a store, with clients and processes that a test makes up."""

    def __init__(self, store: Store, config: Config) -> None:
        self.store = store
        self.groups: dict[int, Seen] = {}
        """By the client's port."""
        self.ended: set[int] = set()
        """Groups of which nobody is left."""
        self.registry = RunRegistry(
            store,
            config,
            lambda now: Redactor(b"key", now.redact),
            Processes(
                lambda peer, _: self.groups.get(peer[1]), lambda pgid, _: pgid not in self.ended
            ),
        )
        self._ports = iter(range(40000, 60000))

    def client(self, group: Seen | None = None, address: str = "127.0.0.1") -> Client:
        """A new connection; of a process that cannot be seen where there is no group."""
        port = next(self._ports)
        if group is not None:
            self.groups[port] = group
        return Client(
            peername=(address, port),
            sockname=("127.0.0.1", 8080),
            timestamp_start=1.0,
            state=ConnectionState.OPEN,
        )

    async def assign(self, client: Client, name: str | None = None) -> OpenRun:
        """Have a client let in."""
        found = await self.registry.assign(client, (name, "x") if name else None)
        assert isinstance(found, OpenRun), found
        return found

    async def join(self, group: Seen | None, name: str | None = None) -> OpenRun:
        """Have a new connection let in."""
        return await self.assign(self.client(group), name)

    def change(self, mode: Mode) -> None:
        """Change the word in the file."""
        self.registry.config = dataclasses.replace(self.registry.config, mode=mode)

    def begin(self, open_run: OpenRun) -> Any:
        """Put a request on its way."""
        pending: Any = SimplePending(open_run.next_seq())
        open_run.begin(pending)
        return pending

    def status(self, open_run: OpenRun) -> RunStatus:
        """Look up whether a run is open."""
        assert open_run.info is not None
        return self.store.runs.reload(open_run.info).status


class SimplePending:
    """The part of a request that an open run reads."""

    held = Held()
    is_overdue = False

    def __init__(self, seq: Seq) -> None:
        self.seq = seq


CONFIG = Config(mode=Mode.RECORD, runs=Runs(grace_s=5.0))
ONE, TWO = Seen(100, 1.0), Seen(200, 2.0)


@pytest_asyncio.fixture
async def open_runs(tmp_path: Path) -> AsyncIterator[OpenRuns]:
    """An empty open_runs."""
    with Store.open(tmp_path / "store") as store:
        made = OpenRuns(store, CONFIG)
        made.registry.hooks.on_unfinished = _finish_all
        yield made
        await made.registry.close("the test ended", 0.0)


async def _finish_all(pending: Any) -> None:
    del pending


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (ONE, ONE, True),
        (ONE, TWO, False),
        # The leader ended before its group: still the group it was.
        (ONE, Seen(100, 0.0), True),
        (Seen(100, 0.0), Seen(100, 0.0), True),
        # A number given out again: another group, whoever led the first.
        (ONE, Seen(100, 9.0), False),
        (Seen(100, 0.0), Seen(100, 9.0), False),
        # What cannot be seen goes by its address.
        (None, None, True),
        (ONE, None, False),
    ],
)
async def test_a_group_is_known_by_its_number_and_its_leaders_start(
    open_runs: OpenRuns, first: Seen | None, second: Seen | None, same: bool
) -> None:
    """Children and survivors of a group are in its run; nobody else is."""
    opened = await open_runs.join(first)
    assert (await open_runs.join(second) is opened) is same


async def test_addresses_are_runs_where_processes_cannot_be_seen(open_runs: OpenRuns) -> None:
    """One run an address, and a name that can stand in credentials."""
    runs = [
        await open_runs.assign(open_runs.client(None, address))
        for address in ("10.0.0.1", "10.0.0.2", "fe80::1", "10.0.0.1")
    ]
    assert [runs.index(run) for run in runs] == [0, 1, 2, 0]
    assert runs[2].info is not None
    assert runs[2].info.id.startswith("fe80-1-")


async def test_many_at_once_open_one_run(open_runs: OpenRuns) -> None:
    """First connections that come together share the run that the first of them opens."""
    groups = [Seen(100 + number % 3, 1.0) for number in range(30)]
    named = await asyncio.gather(*(open_runs.join(group, "mine") for group in groups))
    alone = await asyncio.gather(*(open_runs.join(group) for group in groups))
    assert len(set(map(id, named))) == 1
    assert len(set(map(id, alone))) == 3
    assert len(open_runs.store.runs.all()) == 4


async def test_a_name_goes_before_the_group(open_runs: OpenRuns) -> None:
    """A group with a run of its own opens another with a name, in every mode."""
    nameless = await open_runs.join(ONE)
    named = await open_runs.join(ONE, "mine")
    assert named is not nameless
    for open_run in (nameless, named):
        task = open_runs.registry.end(open_run, "enough")
        assert task is not None
        await task
    for mode in (Mode.PLAYBACK, Mode.PASSTHROUGH):
        open_runs.change(mode)
        group = Seen(300, 3.0) if mode is Mode.PLAYBACK else Seen(400, 4.0)
        runs = [await open_runs.join(group, name) for name in (None, "mine", None, "mine")]
        assert (runs[0] is runs[2], runs[1] is runs[3], runs[0] is runs[1]) == (True, True, False)
        assert {run.mode for run in runs} == {mode}


async def test_once_the_mode_has_changed_nobody_joins_a_named_run(open_runs: OpenRuns) -> None:
    """Its own groups stay; another is refused while they live, and plays the tape when they have gone."""
    recording = await open_runs.join(ONE, "mine")
    open_runs.change(Mode.PLAYBACK)
    assert await open_runs.join(ONE, "mine") is recording
    refused = await open_runs.join(TWO, "mine")
    assert "still being recorded" in refused.lifetime.problem
    open_runs.ended.add(ONE.pgid)
    playing = await open_runs.join(Seen(300, 3.0), "mine")
    assert playing.tape is not None
    assert playing.tape.id == "mine"
    assert open_runs.status(recording) is RunStatus.SEALED


async def test_who_cannot_be_seen_may_be_one_of_a_run(open_runs: OpenRuns) -> None:
    """With clients on other machines a named run is theirs until its grace is over."""
    recording = await open_runs.join(None, "mine")
    open_runs.change(Mode.PLAYBACK)
    assert await open_runs.join(None, "mine") is recording
    assert await open_runs.join(ONE, "mine") is not recording


async def test_clients_that_have_gone_say_nothing_about_who_can_be_seen(
    open_runs: OpenRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short connection whose process is gone before it is looked for does not keep the run open."""
    monkeypatch.setattr(client_process_groups, "_SECOND_LOOK_S", 0.0)
    recording = await open_runs.join(ONE, "mine")
    gone, there = open_runs.client(None), open_runs.client(TWO)
    gone.state = ConnectionState.CLOSED
    for client in (gone, there):
        assert await open_runs.assign(client, "mine") is recording
    assert open_runs.registry._groups.looking is not None
    await open_runs.registry._groups.looking
    assert recording.members.groups_known
    assert recording.members.groups == {ONE[:2], TWO[:2]}
    assert await open_runs.join(None, "mine") is recording
    await open_runs.registry._groups.looking
    assert not recording.members.groups_known


async def test_runs_end_with_their_groups(open_runs: OpenRuns) -> None:
    """A nameless run when its group has ended; a named one at once only if the mode is another."""
    nameless, named = await open_runs.join(ONE), await open_runs.join(TWO, "mine")
    open_runs.ended |= {ONE.pgid, TWO.pgid}
    await open_runs.registry.tick()
    assert [open_run.lifetime.ending for open_run in (nameless, named)] == [True, False]
    open_runs.change(Mode.PLAYBACK)
    await open_runs.registry.tick()
    assert named.lifetime.ending


class Later:
    """A clock that goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        clock = SimpleNamespace(
            monotonic=lambda: self.now,
            time_ns=time.time_ns,
            strftime=time.strftime,
            localtime=time.localtime,
        )
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(open_run_module, "time", clock)


async def test_a_named_recording_ends_with_all_processes_of_its_name(
    open_runs: OpenRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its grace is over, and nobody is connected; the next of that name begins another run."""
    later = Later(monkeypatch)
    clients = [open_runs.client(group) for group in (ONE, TWO)]
    for client in clients:
        named = await open_runs.assign(client, "mine")
    unseen = await open_runs.join(None, "unseen")
    looking = open_runs.registry._groups.looking
    assert looking is not None
    await looking
    later.now += 60
    for gone in (ONE, TWO):
        assert not named.lifetime.ending
        open_runs.ended.add(gone.pgid)
        await open_runs.registry.tick()
    assert not named.lifetime.ending
    pending = open_runs.begin(named)
    for client in clients:
        open_runs.registry.leave(client)
    await open_runs.registry.tick()
    named.finish(pending)
    await open_runs.registry.tick()
    assert not named.lifetime.ending
    later.now += 6
    await open_runs.registry.tick()
    assert (named.lifetime.ending, unseen.lifetime.ending) == (True, False)
    again = await open_runs.join(Seen(300, 3.0), "mine")
    assert again.info is not None
    assert again.info.id == "mine~2"


async def test_a_stopped_run_does_not_end_with_its_processes(
    open_runs: OpenRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is started again is to get no further."""
    later, client = Later(monkeypatch), open_runs.client(ONE)
    named = await open_runs.assign(client, "mine")
    open_runs.registry.leave(client)
    named.lifetime.stopped = Stopped("ann", 0, NO_TEXT, 1)
    open_runs.ended.add(ONE.pgid)
    later.now += 60
    await open_runs.registry.tick()
    assert not named.lifetime.ending


class Ended:
    """How a process ends."""

    def __init__(self, *, well: bool) -> None:
        self.well = well
        self.closed = False

    def is_well(self) -> bool:
        return self.well

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("codes", "ends"),
    [
        ((True, True), True),
        # The leader of a group may end with 0 although its agent was killed, and the other way round.
        ((True, False), False),
        ((False, True), False),
        ((True, None), False),
    ],
)
async def test_a_run_that_may_be_gone_on_with_ends_if_its_processes_ended_well(
    open_runs: OpenRuns,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    codes: tuple[bool | None, bool | None],
    ends: bool,
) -> None:
    """Else it stays open, which is said once, and what is started again goes on with it, which is said, too."""
    registry, later = open_runs.registry, Later(monkeypatch)
    registry.config = dataclasses.replace(CONFIG, runs=Runs(grace_s=5.0, resume="auto"))
    made = {
        pid: None if well is None else Ended(well=well)
        for pid, well in zip((7, ONE.pgid), codes, strict=True)
    }
    registry._groups._processes = dataclasses.replace(
        registry._groups._processes, follow=lambda pid: made.get(pid) or None
    )
    client = open_runs.client(ONE)
    named = await open_runs.assign(client, "mine")
    registry.leave(client)
    open_runs.ended.add(ONE.pgid)
    later.now += 60
    for _ in range(2):
        await registry.tick()
    assert named.lifetime.ending is ends
    assert all(one is None or one.closed is ends for one in made.values())
    assert caplog.text.count("run mine stays open: its processes have ended") == int(not ends)
    again = await open_runs.join(TWO, "mine")
    assert (again is named) is not ends
    if not ends:
        assert registry._groups.looking is not None
        await registry._groups.looking
    goes_on = "run mine goes on with another process (agent, pid 7)"
    assert (goes_on in caplog.text) is not ends


async def test_that_all_have_ended_well_is_noted_before_the_run_ends(
    open_runs: OpenRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and once more after whoever came meanwhile; never of one that is stopped, or while a client is there."""
    registry, noted = open_runs.registry, list[Any]()
    registry.config = dataclasses.replace(CONFIG, runs=Runs(grace_s=5.0, resume="auto"))
    code = Ended(well=True)
    registry._groups._processes = dataclasses.replace(
        registry._groups._processes, follow=lambda _pid: code
    )
    client = open_runs.client(ONE)
    named = await open_runs.assign(client, "mine")
    monkeypatch.setattr(named, "note", lambda _kind, **data: noted.append(data))
    named.finish(open_runs.begin(named))
    await registry.tick()
    open_runs.ended.add(ONE.pgid)
    await registry.tick()
    assert noted == []
    registry.leave(client)
    code.well = False
    await registry.tick()
    code.well = True
    for _ in range(2):
        await registry.tick()
    assert noted == [{"ended_well": 1}]
    pending = open_runs.begin(named)
    await registry.tick()
    named.finish(pending)
    for _ in range(2):
        await registry.tick()
    assert noted == [{"ended_well": 1}, {"ended_well": 2}]
    named.finish(open_runs.begin(named))
    named.lifetime.stopped = Stopped("ann", 0, NO_TEXT, 1)
    await registry.tick()
    assert len(noted) == 2
    assert not named.lifetime.ending


async def test_a_process_is_seen_before_its_client_is_answered(open_runs: OpenRuns) -> None:
    """Where it counts how it ends: once it has its answer it may leave at once."""
    registry = open_runs.registry
    registry.config = dataclasses.replace(CONFIG, runs=Runs(resume="auto"))
    registry._groups._processes = dataclasses.replace(
        registry._groups._processes, follow=lambda _pid: Ended(well=True)
    )
    named = await open_runs.join(ONE, "mine")
    client = open_runs.client(TWO)
    assert await open_runs.assign(client, "mine") is named
    client.state = ConnectionState.CLOSED
    assert registry._groups.looking is not None
    await registry._groups.looking
    assert (named.members.missed, named.members.groups) == (False, {ONE[:2], TWO[:2]})


def _give(ended: Ended, _pid: int) -> Ended:
    return ended


async def test_not_more_processes_are_followed_than_there_is_room_for(
    open_runs: OpenRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that ended well make room; else nobody knows how all have ended."""
    registry = open_runs.registry
    registry.config = dataclasses.replace(CONFIG, runs=Runs(resume="auto"))
    monkeypatch.setattr(client_process_groups, "_MOST_FOLLOWED", 4)
    processes = registry._groups._processes
    for name, well in (("well", True), ("not", False)):
        ended = Ended(well=well)
        registry._groups._processes = dataclasses.replace(processes, follow=partial(_give, ended))
        for number in range(4):
            named = await open_runs.join(Seen(1000 + number, 1.0, pid=2000 + number), name)
            if registry._groups.looking is not None:
                await registry._groups.looking
        assert named.members.missed is not well
        assert len(named.members.exit_codes) <= 4


async def test_a_run_is_not_idle_while_it_waits_for_an_answer(
    open_runs: OpenRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grace begins with the end of its last request, not with the beginning."""
    later = Later(monkeypatch)
    open_run = await open_runs.join(ONE)
    pending = open_runs.begin(open_run)
    open_runs.change(Mode.PLAYBACK)
    later.now += 60
    await open_runs.registry.tick()
    open_run.finish(pending)
    await open_runs.registry.tick()
    assert not open_run.lifetime.ending
    later.now += 6
    await open_runs.registry.tick()
    assert open_run.lifetime.ending


async def test_a_tape_that_is_being_sealed_keeps_nobody_else_waiting(open_runs: OpenRuns) -> None:
    """A playback waits for its own tape; another name is let in meanwhile."""
    slow, other = await open_runs.join(ONE, "slow"), await open_runs.join(TWO, "other")
    pending = open_runs.begin(slow)
    open_runs.ended |= {ONE.pgid, TWO.pgid}
    open_runs.change(Mode.PLAYBACK)
    waiting = asyncio.ensure_future(open_runs.join(Seen(300, 3.0), "slow"))
    playing = await asyncio.wait_for(open_runs.join(Seen(400, 4.0), "other"), 5)
    assert playing.tape is not None
    assert open_runs.status(other) is RunStatus.SEALED
    assert not waiting.done()
    slow.finish(pending)
    played = await asyncio.wait_for(waiting, 5)
    assert played.tape is not None
    assert played.tape.id == "slow"


async def test_closing_waits_no_longer_than_it_is_told(open_runs: OpenRuns) -> None:
    """What is still on its way is given up; the run is sealed and lists it; nobody is let in after."""
    busy = await open_runs.join(ONE)
    open_runs.begin(busy)
    open_runs.begin(busy)
    await asyncio.wait_for(open_runs.registry.close("enough", 0.05), 3)
    assert open_runs.status(busy) is RunStatus.SEALED
    assert busy.info is not None
    assert open_runs.store.events.read(busy.info)[-1].data["unfinished"] == (1, 2)
    late = await open_runs.registry.assign(open_runs.client(TWO), None)
    assert late == Rejected("the proxy is stopping", 503)
    assert len(open_runs.store.runs.all()) == 1


async def test_a_connection_is_in_one_run_for_life(open_runs: OpenRuns) -> None:
    """Other credentials are refused on it, whatever they look like; its own are not."""
    client = open_runs.client(None, "mine")
    first = await open_runs.assign(client)
    for name in ("mine", "other", "None"):
        assert isinstance(await open_runs.registry.assign(client, (name, "x")), Rejected)
    assert await open_runs.assign(client) is first
    named = open_runs.client(ONE)
    second = await open_runs.assign(named, "mine")
    assert await open_runs.assign(named, "mine") is second
    assert await open_runs.assign(named) is second
    assert isinstance(await open_runs.registry.assign(named, ("other", "x")), Rejected)
    open_runs.registry.leave(named)
    assert open_runs.registry.of(named) is None
    assert not second.clients


async def test_a_client_that_left_while_its_run_was_opened_is_not_kept(open_runs: OpenRuns) -> None:
    """It leaves only once, and that was before it belonged to anything; what it sent before belongs to the run."""
    client = open_runs.client(ONE)
    client.timestamp_end = 2.0
    open_run = await open_runs.assign(client)
    assert not open_run.clients
    assert open_runs.registry.of(client) is open_run
    assert not open_runs.registry._by_client


@pytest.mark.parametrize(
    ("tokens", "credentials", "reason"),
    [
        ({}, None, None),
        ({}, ("any", ""), None),
        ({}, ("", "x"), "is no run name"),
        ({}, ("a\x00b", "x"), "is no run name"),
        ({}, ("x" * 201, "x"), "is no run name"),
        ({"a": "1", "b-*": "2:3", "*": "4"}, None, "credentials are needed"),
        ({"a": "1", "b-*": "2:3"}, ("a", "1"), None),
        ({"a": "1", "b-*": "2:3"}, ("a", "2:3"), "wrong token for run 'a'"),
        ({"a": "1", "b-*": "2:3"}, ("b-7", "2:3"), None),
        ({"a": "1", "b-*": "2:3"}, ("b-7", "2"), "wrong token for run 'b-7'"),
        ({"a": "1", "b-*": "2:3"}, ("c", "1"), "wrong token for run 'c'"),
        ({"a": "1", "*": "4"}, ("a", "4"), None),
        ({"a": "ü"}, ("a", "ü"), None),
    ],
)
async def test_a_token_is_asked_for_where_there_are_any(
    open_runs: OpenRuns,
    tokens: dict[str, str],
    credentials: tuple[str, str] | None,
    reason: str | None,
) -> None:
    """An empty list accepts any token; names may hold `*`; a name has to be one."""
    open_runs.registry.config = dataclasses.replace(CONFIG, runs=Runs(tokens=tokens))
    found = await open_runs.registry.assign(open_runs.client(ONE), credentials)
    if reason is None:
        assert isinstance(found, OpenRun)
    else:
        assert isinstance(found, Rejected)
        assert found.status == 407
        assert reason in found.reason


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("python", "python-20"),
        ("my agent.sh", "my-agent.sh-20"),
        ("::1", "1-20"),
        ("a:b@c~1", "a-b-c-1-20"),
        ("..", "run-20"),
        ("", "run-20"),
        ("\udcff\n", "run-20"),
        ("x" * 300, "x" * 60 + "-20"),
    ],
)
def test_a_name_that_nobody_gave_can_stand_anywhere(word: str, expected: str) -> None:
    """On command lines and in credentials."""
    assert name_after(word, 1_700_000_000.0).startswith(expected)
