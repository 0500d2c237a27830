"""A run that crashed is resumed: its tape answers up to the crash, nothing of that is sent again, and behind it the upstream does."""

import asyncio
import base64
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.run.lifecycle.client_process_groups import Processes
from playhead.config import Classes, Config, EffectRule, Gate, Mode, Runs, parse_match
from playhead.store import RunInfo, RunStatus, Store, StoreError
from playhead.tape.exchange import RunId
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import NOBODY, Running, running_engine
from playhead.tests.support.full_disk import until
from playhead.tests.support.process import Serve, playhead
from playhead.tests.support.resume_cases import DESERTED, SITUATIONS, Situation
from playhead.tests.support.resume_world import (
    SECRET,
    TELEMETRY,
    Asked,
    Client,
    Said,
    Upstream,
    ask_all,
    read_asks,
    read_log,
)
from playhead.timeline import Receipt, build, exit_code, render_receipt
from playhead.timeline.checks.integrity import verify_run
from playhead.timeline.lookup.crashed_runs import find_crashed
from playhead.timeline.receipts.exchange_rows import rows

YES = ApprovalDecision(Ruling.APPROVED, "ann", "command")
NO = ApprovalDecision(Ruling.DENIED, "ann", "command", "it has happened")
_RULINGS = {"approved": YES, "denied": NO}
_LONG_S = 30.0
_MORE = {
    **dict.fromkeys(("unknown", "again", "told"), "m1 e1?"),
    "part": "m1 e1? e2?",
    **{"keyed": "m1 k1?", "fresh": "m1 n1?", "tape": "m1 e1 m2", "at-once": "m1 r1? r2 e1"},
    **dict.fromkeys(("gated", "once", "named", "other", "changed"), "m1 e1"),
    **dict.fromkeys(("restarted-7-8", "restarted-7-7", "restarted-0-0"), "m1 e1"),
    **{"secret": "s1", "twice": "m1 e1 m2", "early": "m1 e1? m2"},
}
"""Further runs that crashed, with their logs."""
_CONFIGURATION = """
classes:
  telemetry: ["POST {url}/{path}/*"]
"""


@dataclass
class World:
    """An upstream, and a store with a crashed run for each situation."""

    upstream: Upstream
    config: Config
    flags: tuple[str | Path, ...]
    """Of `playhead serve`."""


def name_of(situation: Situation) -> str:
    return situation.name.replace(" ", "-")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[World]:
    """All situations are recorded by one proxy, which is killed."""
    folder = tmp_path_factory.mktemp("resume")
    with Upstream(certificates) as upstream:
        file = folder / "playhead.yaml"
        file.write_text(_CONFIGURATION.format(url=upstream.url, path=TELEMETRY))
        config = Config(
            store=folder / "store",
            mode=Mode.PLAYBACK,
            upstream_ca=certificates.root,
            classes=Classes(telemetry=(parse_match(f"POST {upstream.url}/{TELEMETRY}/*"),)),
        )
        flags = ("-c", file, "--store", config.store, "--upstream-ca", certificates.root)
        with Serve("--listen", "127.0.0.1:0", *flags) as proxy:
            logs = {name_of(situation): situation.log for situation in SITUATIONS} | _MORE
            for name, log in logs.items():
                client = Client(proxy.address, name, find_ca(config), upstream.url)
                ask_all(client, upstream, read_log(log))
            for name, log, _ in DESERTED:
                client = Client(
                    proxy.address, name.replace(" ", "-"), find_ca(config), upstream.url
                )
                ask_all(client, upstream, read_log(log))
                wait_for_outcomes(config.store, name.replace(" ", "-"), len(log.split()))
            proxy.stop(signal.SIGKILL)
        yield World(upstream, config, flags)


def wait_for_outcomes(store: Path, name: str, count: int) -> None:
    """Wait until the log of a run has so many outcomes."""

    def have_come() -> bool:
        with Store.open(store, readonly=True) as opened:
            events = opened.events.all(opened.runs.get(name))
            return sum(event.kind is EventKind.OUTCOME for event in events) >= count

    assert until(have_come)


def find_ca(config: Config) -> Path:
    """Give the CA's public certificate."""
    return next(config.public_ca_dir.glob("*.pem"))


@dataclass
class Resumed:
    """A run that is being resumed in the test's own process."""

    world: World
    running: Running
    client: Client

    async def ask(self, name: str) -> Said:
        return await asyncio.to_thread(self.client.ask, name)

    async def ask_held(self, name: str, ruling: ApprovalDecision) -> tuple[Said, str]:
        """Ask for something that a gate holds, and rule on it; give the answer, and why it was held."""
        approvals = self.running.registry.approvals
        asking = asyncio.create_task(self.ask(name))
        async with asyncio.timeout(_LONG_S):
            while not len(approvals) and not asking.done():  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.002)
        assert not asking.done(), f"{name} is not held: {asking.result()}"
        (held,) = approvals.listed()
        approvals.decide(held.name, held.digest, ruling)
        return await asking, held.reason

    async def end(self) -> tuple[RunInfo, Receipt]:
        (open_run,) = self.running.registry.open
        assert open_run.info is not None
        name = open_run.info.id
        await self.running.end(name)
        info = self.running.store.runs.get(RunId(name))
        return info, build(self.running.store, info)


@asynccontextmanager
async def resumed(world: World, name: str, **changes: Any) -> AsyncIterator[Resumed]:
    """Resume a run."""
    world.upstream.fate = ""
    world.upstream.sent.clear()
    config = replace(world.config, **changes)
    async with running_engine(config) as running:
        running.registry.resumes = True
        address = str(running.address)
        yield Resumed(world, running, Client(address, name, running.ca, world.upstream.url))


@pytest.mark.parametrize("situation", SITUATIONS, ids=name_of)
async def test_each_answer_comes_from_where_it_must(world: World, situation: Situation) -> None:
    """The upstream counts: what the tape has is not sent again, and what is behind it once."""
    expected: Counter[str] = Counter()
    came: list[str] = []
    async with resumed(world, name_of(situation)) as agent:
        for name, where in read_asks(situation.asks):
            if where in _RULINGS:
                said, why = await agent.ask_held(name, _RULINGS[where])
                assert "without an outcome" in why or "a retry of exchange" in why
            else:
                said = await agent.ask(name)
            expected[name] += where in ("live", "approved")
            refused = where in ("denied", "refused")
            assert (said.status == 424) is refused, (name, where, said)
            came.append(where)
        assert world.upstream.sent == +expected
        if not agent.running.registry.open:
            return
        info, receipt = await agent.end()
        assert info.status is RunStatus.SEALED
        listed = [row["verdict"] for row in rows(agent.running.store, info)]
    verdicts = {"tape": "served", "live": "live", "approved": "live", "gone": "discarded"}
    assert listed == [verdicts.get(where, "refused") for where in came]
    assert exit_code(receipt) == situation.exit_code, render_receipt(receipt)


@pytest.mark.parametrize(("name", "log", "asks"), DESERTED, ids=[case[0] for case in DESERTED])
async def test_an_agent_that_died_first_has_not_given_up(
    world: World, name: str, log: str, asks: str
) -> None:
    """It is answered, by the tape where that has an answer and else by the upstream, and not kept waiting."""
    async with resumed(world, name.replace(" ", "-")) as agent:
        for asked, where in read_asks(asks):
            said = await agent.ask(asked)
            assert (said.status, world.upstream.sent[asked]) == (200, int(where == "live")), asked
        _, receipt = await agent.end()
    assert (exit_code(receipt), receipt.unused) == (0, [])


async def test_a_gate_shows_the_idempotency_key(world: World) -> None:
    """And whether the effect was sent with that one: only then may its server know it again."""
    keyed, fresh = "keyed", "fresh"
    async with resumed(world, keyed) as agent:
        await agent.ask("m1")
        said, why = await agent.ask_held("k1", NO)
    assert (said.status, world.upstream.sent["k1"]) == (424, 0)
    assert f"{keyed} sent it as seq 2, and it may have happened" in why
    assert ", with the idempotency key it was sent with: " in why
    assert why.endswith("; idempotency-key: key-of-k1")
    async with resumed(world, fresh) as agent:
        await agent.ask("m1")
        _, why = await agent.ask_held("n1", NO)
    assert "NOT with the idempotency key it was sent with" in why


async def test_who_asks_again_for_what_is_held_is_held_too(world: World) -> None:
    """A client that gave up while nobody had decided, and its retry: one effect, decided on once."""
    async with resumed(world, "again") as agent:
        await agent.ask("m1")
        assert (await asyncio.to_thread(agent.client.ask, "e1", 0.3)).status == 0
        assert not world.upstream.sent
        approvals = agent.running.registry.approvals
        async with asyncio.timeout(_LONG_S):
            while len(approvals):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.002)
        said, _ = await agent.ask_held("e1", YES)
        assert (said.status, world.upstream.sent) == (200, Counter(e1=1))


async def test_the_receipt_says_what_was_resumed_and_what_became_of_it(world: World) -> None:
    """From where each answer came, which effects were executed, and on whose word an unknown one was."""
    async with resumed(world, "told") as agent:
        await agent.ask("m1")
        await agent.ask_held("e1", YES)
        await agent.ask("e2")
        info, receipt = await agent.end()
        assert info.parent == "told"
        assert verify_run(agent.running.store, info).problems == ()
    told = receipt.to_json()["resume"]
    assert (told["of"], told["reached"], told["served"]) == (info.parent, 2, 1)
    assert told["effects_executed"] == 2
    (row,) = told["unknown"]
    assert (row["seq"], row["became"], row["asked_as"]) == (2, "approved", 2)
    assert (receipt.faithful, receipt.unused) == (None, [])
    text = render_receipt(receipt)
    assert f"resumed: {info.parent}" in text
    assert "effects, executed behind the crash point:" in text
    assert "came to the crash point with seq 2: 1 from the tape, 2 effects executed" in text
    assert [one.answered_by for one in receipt.effects] == ["upstream, behind the crash point"] * 2


async def test_the_receipt_of_a_run_that_stops_at_a_gate_says_what_was_approved(
    world: World,
) -> None:
    """It has not come to the crash point, and yet something was sent."""
    async with resumed(world, "part") as agent:
        await agent.ask("m1")
        await agent.ask_held("e1", YES)
        _, receipt = await agent.end()
    assert (receipt.resume.reached, exit_code(receipt)) == (None, 125)
    text = render_receipt(receipt)
    assert "CRASH POINT, and sent only what was approved at a gate: 1 from the tape" in text
    assert "so nothing but what was approved at a gate was sent" in text
    assert "so nothing was sent" not in text


async def test_a_resumed_run_is_a_tape(world: World) -> None:
    """It is replayed as any recording, both parts of it, and nothing is sent."""
    async with resumed(world, "tape") as agent:
        for name in ("m1", "e1", "m2", "e2"):
            assert (await agent.ask(name)).status == 200
        info, _ = await agent.end()
        world.upstream.sent.clear()
        agent.running.registry.resumes = False
        again = Client(str(agent.running.address), info.id, agent.running.ca, world.upstream.url)
        for name in ("m1", "e1", "m2", "e2"):
            assert (await asyncio.to_thread(again.ask, name)).status == 200
        _, receipt = await agent.end()
        # The order counts behind the crash point, too.
        for name in ("m1", "e1", "e2", "m2"):
            assert (await asyncio.to_thread(again.ask, name)).status == 200
        _, reordered = await agent.end()
    assert not world.upstream.sent
    assert (receipt.parent, receipt.faithful) == (info.id, True), render_receipt(receipt)
    assert (reordered.parent, reordered.faithful) == (info.id, False)
    assert "reordered" in render_receipt(reordered)


async def test_what_runs_at_once_waits_for_the_rest_of_the_prefix(world: World) -> None:
    """One path of an agent is at the crash point before the other: it goes on once that is there, too."""
    async with resumed(world, "at-once") as agent:
        await agent.ask("m1")
        early = asyncio.create_task(agent.ask("r1"))
        assert (await agent.ask("r2")).status == 200
        await asyncio.sleep(0)
        assert (early.done(), world.upstream.sent) == (False, Counter())
        assert (await agent.ask("e1")).status == 200
        assert (await early).status == 200
        assert world.upstream.sent == {"r1": 1}


async def test_a_gate_on_duplicates_knows_what_the_crashed_run_has_sent(world: World) -> None:
    """An effect of the tape asked for once more is held, as in one run that did not crash."""
    rule = EffectRule(parse_match(f"POST {world.upstream.url}/effects/*"), gate=Gate("duplicates"))
    async with resumed(world, "gated", effects=(rule,)) as agent:
        await agent.ask("m1")
        assert (await agent.ask("e1")).status == 200
        _, why = await agent.ask_held("e1", NO)
        assert "may repeat the effect of exchange 2" in why
        assert not world.upstream.sent


# ---- resumed more than once ----------------------------------------------------------------------------


def kill_while_resumed(world: World, name: str, log: str) -> None:
    """Have a run be resumed by a proxy that is killed: as `runs.resume: auto` does."""
    file = world.config.store.parent / "auto.yaml"
    text = (world.config.store.parent / "playhead.yaml").read_text()
    file.write_text(f"{text}runs: {{resume: auto}}\n")
    flags = [
        file if word == world.config.store.parent / "playhead.yaml" else word
        for word in world.flags
    ]
    with Serve("--listen", "127.0.0.1:0", *flags) as proxy:
        client = Client(proxy.address, name, find_ca(world.config), world.upstream.url)
        ask_all(client, world.upstream, read_log(log))
        proxy.stop(signal.SIGKILL)


async def test_what_a_resume_has_sent_is_on_the_tape_of_the_next(world: World) -> None:
    """The proxy is killed twice: nothing is sent again of either, and what was unknown stays so until somebody decides."""
    kill_while_resumed(world, "twice", "m1 e1 m2 e2 e3?")
    assert world.upstream.sent["e2"] == 1
    async with resumed(world, "twice") as agent:
        for name in ("m1", "e1", "m2", "e2"):
            assert (await agent.ask(name)).status == 200
        assert not world.upstream.sent
        said, why = await agent.ask_held("e3", YES)
        assert "twice@1 sent it as seq 5" in why
        assert (said.status, world.upstream.sent) == (200, Counter(e3=1))
        info, receipt = await agent.end()
    assert (info.id, info.parent) == ("twice@2", "twice@1")
    assert (receipt.resume.served, exit_code(receipt)) == (4, 0)


async def test_a_resume_that_crashed_in_its_prefix_has_sent_nothing(world: World) -> None:
    """The first run is resumed, as if that had not been."""
    kill_while_resumed(world, "early", "m1")
    async with resumed(world, "early") as agent:
        assert agent.running.registry.resumes
        for name in ("m1", "m2"):
            assert (await agent.ask(name)).status == 200
        await agent.ask_held("e1", YES)
        info, _ = await agent.end()
    assert info.parent == "early"


async def test_one_that_was_resumed_to_its_end_or_is_being_resumed_is_not_resumed_again(
    world: World,
) -> None:
    """What the other has sent would be sent again."""
    async with resumed(world, "once") as agent:
        await agent.ask("m1")
        beside = find_error(agent.running.store, "once")
        assert "is being resumed as 'once@1', which goes on" in str(beside)
        await agent.ask("e1")
        await agent.ask("e2")
        await agent.end()
        assert "was resumed as 'once@1', which has ended" in str(
            find_error(agent.running.store, "once")
        )
        said = await agent.ask("m1")
        assert said.status in (0, 424, 502)
    assert world.upstream.sent == {"e2": 1}


def find_error(store: Store, name: str) -> StoreError:
    with pytest.raises(StoreError) as refused:
        find_crashed(store, name)
    return refused.value


# ---- in `playhead serve` -------------------------------------------------------------------------------


@asynccontextmanager
async def serving(
    world: World, name: str, resume: str, processes: Processes = NOBODY
) -> AsyncIterator[Resumed]:
    """Record under a name, as a process does that is started again."""
    runs = Runs(resume=resume)
    config = replace(world.config, mode=Mode.RECORD, runs=runs)
    world.upstream.fate = ""
    world.upstream.sent.clear()
    async with running_engine(config, processes=processes) as running:
        address = str(running.address)
        yield Resumed(world, running, Client(address, name, running.ca, world.upstream.url))


async def test_a_name_that_crashed_begins_a_new_run_unless_it_is_to_be_resumed(
    world: World,
) -> None:
    """The default is as it was; with `auto` the last crashed run of the name goes on; one that ended does not."""
    async with serving(world, "named", "off") as agent:
        for name in ("m1", "e1"):
            await agent.ask(name)
        info, _ = await agent.end()
        assert (info.id, info.parent, world.upstream.sent["e1"]) == ("named~2", None, 1)
    async with serving(world, "other", "auto") as agent:
        for name in ("m1", "e1", "e2"):
            assert (await agent.ask(name)).status == 200
        info, _ = await agent.end()
        assert (info.id, info.parent, world.upstream.sent) == ("other@1", "other", Counter(e2=1))
        assert (await agent.ask("m1")).status == 200
        info, _ = await agent.end()
        assert (info.id, info.parent) == ("other~2", None)


async def test_a_restarted_process_that_asks_for_something_else_sends_nothing(world: World) -> None:
    """It is told why."""
    async with serving(world, "changed", "auto") as agent:
        said = await agent.ask("e9")
        assert (said.status, world.upstream.sent) == (424, Counter())
        assert b"sends nothing before exchange 1 has been asked for again" in said.body
        assert (await agent.ask("m1")).status == 424
        _, receipt = await agent.end()
    assert exit_code(receipt) == 121


@dataclass(frozen=True)
class Seen:
    """A client process."""

    pid: int
    pgid: int = 5
    started: float = 1.0
    command: str = "agent"


PROCESSES = pytest.mark.parametrize(
    ("pids", "held"),
    [((7, 8), ("m1", "e1", "e2")), ((7, 7), ()), ((0, 0), ("e1", "e2"))],
    ids=["another process", "the same process", "a process that cannot be seen"],
)
"""Who asks first, and who asks again; what is held of that."""


@PROCESSES
@pytest.mark.parametrize("has_crashed", [True, False])
async def test_what_is_started_again_does_nothing_once_more(
    world: World, pids: tuple[int, int], held: tuple[str, ...], has_crashed: bool
) -> None:
    """A supervisor starts the agent alone again: what has an outcome is held, be it of the tape or not, and what is new is sent."""
    now = iter(pids)
    pid = next(now)
    seen = Processes(
        lambda _peer, _local: Seen(pid) if pid else None,
        lambda _pgid, _started: True,
    )
    name = f"{'restarted' if has_crashed else 'begun'}-{pids[0]}-{pids[1]}"
    async with serving(world, name, "auto", seen) as agent:
        for asked in ("m1", "e1", "e2"):
            assert (await agent.ask(asked)).status == 200
        assert world.upstream.sent["e2"] == 1
        world.upstream.sent.clear()
        pid = next(now)
        for asked in ("m1", "e1", "e2", "e3"):
            if asked in held:
                said, why = await agent.ask_held(asked, NO)
                run = f"{name}@1" if has_crashed else name
                assert f"of {run} before, by another process" in why
                assert said.status == 424
            else:
                assert (await agent.ask(asked)).status == 200
    assert set(world.upstream.sent) == {"m1", "e1", "e2", "e3"} - set(held)


async def test_what_is_started_again_by_the_name_of_the_configuration_is_held(world: World) -> None:
    """Requests without credentials belong to one run, too, where that has a name."""
    pid = 7
    seen = Processes(lambda _peer, _local: Seen(pid), lambda _pgid, _started: True)
    async with serving(world, "", "auto", seen) as agent:
        agent.running.change(runs=Runs(resume="auto", default="given"))
        agent.client.forget_run()
        assert (await agent.ask("e1")).status == 200
        pid = 8
        said, why = await agent.ask_held("e1", YES)
        assert ("of given before" in why, said.status) == (True, 200)
        assert world.upstream.sent == {"e1": 2}


async def test_what_could_not_be_sent_may_be_asked_for_by_another_process(world: World) -> None:
    """An agent that died of an upstream that cannot be reached does nothing twice; with `off` nobody is held."""
    pid = 7
    seen = Processes(lambda _peer, _local: Seen(pid), lambda _pgid, _started: True)
    async with serving(world, "unreached", "auto", seen) as agent:
        nowhere = Client(
            str(agent.running.address), "unreached", agent.running.ca, "https://127.0.0.1:1"
        )
        for asked in ("m1", "e1"):
            assert (await asyncio.to_thread(nowhere.ask, asked)).status in (0, 502)
        pid = 8
        for asked in ("m1", "e1"):
            assert (await asyncio.to_thread(nowhere.ask, asked)).status in (0, 502)
        assert not len(agent.running.registry.approvals)
    async with serving(world, "unheld", "off", seen) as agent:
        for pid in (7, 8):  # noqa: B007  # seen by the closure
            assert (await agent.ask("e1")).status == 200


async def test_nothing_is_done_with_a_placeholder(world: World) -> None:
    """The tape has no secret that an answer gave: what carries its placeholder is refused, and not sent as it is."""
    async with resumed(world, "secret") as agent:
        token = json.loads((await agent.ask("s1")).body)["access_token"]
        assert token != SECRET
        fields = {"authorization": f"Bearer {token}"}
        asked = Asked("POST", "/effects/e1", b'{"do": "e1"}', fields)
        said = await asyncio.to_thread(agent.client.send, asked)
        assert (said.status, world.upstream.sent) == (424, Counter())
        assert b"the placeholder of a secret that the answer of tape seq 1 had" in said.body
        asked = Asked("POST", "/effects/e2", json.dumps({"key": token}).encode(), {})
        assert (await asyncio.to_thread(agent.client.send, asked)).status == 424
        basic = base64.b64encode(f"user:{token}".encode()).decode()
        asked = Asked("POST", "/effects/e1", b"{}", {"authorization": f"Basic {basic}"})
        assert (await asyncio.to_thread(agent.client.send, asked)).status == 424
        assert (await agent.ask("e3")).status == 200


def test_an_archived_run_comes_back_before_it_is_resumed(
    world: World, tmp_path: Path, certificates: Certificates
) -> None:
    """Else nothing of its prefix were known, and all of it would be sent again."""
    store, file = tmp_path / "store", tmp_path / "playhead.yaml"
    file.write_text(
        f"retention: {{archive: {tmp_path / 'archive'}}}\nstore: {store}\nruns: {{resume: auto}}\n"
    )
    flags = ("-c", file, "--upstream-ca", certificates.root, "--listen", "127.0.0.1:0")
    ca = replace(world.config, store=store)
    world.upstream.fate = ""
    with Serve(*flags) as proxy:
        client = Client(proxy.address, "away", find_ca(ca), world.upstream.url)
        ask_all(client, world.upstream, read_log("m1 e1 m2"))
        proxy.stop(signal.SIGKILL)
    Store.open(store).close()  # which recovers it
    done = playhead("archive", "-c", file, "away")
    assert done.returncode == 0, done.stderr
    world.upstream.sent.clear()
    with Serve(*flags) as proxy:
        client = Client(proxy.address, "away", find_ca(ca), world.upstream.url)
        said = [client.ask(name).status for name in ("m1", "e1", "e2")]
    assert (said, world.upstream.sent) == ([200, 200, 424], {})
