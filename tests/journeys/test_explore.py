"""A run that went well is explored: the double refund is found in it, made small, kept, and given again."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from playhead.store import Store
from playhead.tests.support import queue_agent
from playhead.tests.support.counts import FULL
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead, read_json
from playhead.tests.support.queue_agent import Services
from playhead.tests.support.refund_agent import CHAT
from playhead.tests.support.refund_service import AGENT, serve
from playhead.tests.support.refunds import STORY, run_fakes
from playhead.tests.support.walking_agent import say
from playhead.timeline.cost.ledger import read_ledger
from playhead.timeline.destinations.destinations import Destinations
from playhead.timeline.history.collect_exchanges import Collector
from playhead.timeline.state.calls_before import Exchanges

pytestmark = pytest.mark.timeout(600)

SEEDS = 200
KINDS = () if FULL else ("--fault", "late", "--fault", "throttle")
AGAIN = 10 if FULL else 2
"""How often what was kept is given again."""
LATE, PATIENCE_S = ("--late-by", "8s"), "2.5"
"""Well after the agent has given up, which waits longer than a busy machine takes."""


class Demo(NamedTuple):
    """The agent of the demo, a folder with a store, and a run that went well."""

    folder: Path
    variables: dict[str, str]

    def run(self, *words: str, module: str = "agent") -> "CompletedProcess[str]":
        """Run a command of ours with the agent."""
        agent = (sys.executable, "-m", f"{STORY}.{module}")
        told = (*words[:1], "--store", "store", *words[1:])
        return playhead(*told, "--", *agent, cwd=self.folder, env=self.variables, timeout_s=600)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, "CompletedProcess[str]"]:
    """What is found in it, while the provider is there and the payment API is not."""
    folder = tmp_path_factory.mktemp("explore")
    with run_fakes("0") as ((_, provider), (payments, url)):
        variables = {
            "OPENAI_BASE_URL": f"{provider}/v1",
            "OPENAI_API_KEY": "sk-test-this-is-no-secret",
            "PAYMENTS_URL": url,
            "REFUND_TIMEOUT_S": PATIENCE_S,
        }
        demo = Demo(folder, variables)
        done = demo.run("record", "--run", "well", "-q")
        assert done.returncode == 0, done.stderr
        payments.kill()
        live = ("--live", "inference", "--reason", "a test", "--yes")
        words = (
            "explore",
            "well",
            "--no-sandbox",
            *LATE,
            *KINDS,
            *live,
            "--seeds",
            str(SEEDS),
            "--json",
        )
        return demo, demo.run(*words)


def _effects(demo: Demo, run: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_json("effects", run, "--store", demo.folder / "store")
    return rows


def test_the_double_refund_is_found(found: tuple[Demo, "CompletedProcess[str]"]) -> None:
    """Within 200 seeds, from a run in which it did not happen; one fault is enough for it."""
    demo, done = found
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["found"]["seed"] <= SEEDS
    (fault,) = told["found"]["faults"]
    assert fault["kind"] in ("late", "slow")
    assert told["found"]["broken"][0].startswith("duplicate effect: POST ")
    assert "never: an effect that is done twice" in done.stderr
    run = read_json("receipt", told["found"]["run"], "--store", demo.folder / "store")
    assert run["branch"]["faults"] == [f"{fault['kind']} answer to exchange 4"]
    recorded = read_json("receipt", "well", "--store", demo.folder / "store")
    assert len(recorded["effects"]) == 1


def test_the_kept_tape_gives_it_again(found: tuple[Demo, "CompletedProcess[str]"]) -> None:
    """Ten times of ten, with nobody there: neither the model nor the payment API."""
    demo, done = found
    kept = json.loads(done.stdout)["found"]["tape"]
    assert kept.startswith("well-seed-")
    for _ in range(AGAIN):
        again = demo.run("replay", kept, "--no-sandbox", "--json")
        receipt = json.loads(again.stderr)
        assert again.returncode == 0, again.stderr
        assert receipt["faithful"] is True
        notes = [row["note"] for row in receipt["effects"]]
        assert len(notes) == 2
        assert notes[1].startswith("possible duplicate of seq")


def test_the_kept_tape_is_no_recording_of_what_was_sent(
    found: tuple[Demo, "CompletedProcess[str]"],
) -> None:
    """None of its refunds was made: it does not count, and stands for no run that was recorded."""
    demo, done = found
    kept = json.loads(done.stdout)["found"]["tape"]
    rows = [(row["by"], row["answered_by"]) for row in _effects(demo, kept)]
    assert rows == [("explored", "kept by explore, never sent")] * 2
    assert [row["by"] for row in _effects(demo, "well")] == ["upstream"]
    url = f"{demo.variables['PAYMENTS_URL']}/v1/refunds"
    with Store.open(demo.folder / "store", readonly=True) as store:
        run = store.runs.get(kept)
        latest = store.runs.find_latest()
        assert latest is not None
        assert latest.id == "well"
        assert list(read_ledger(Exchanges(store, run))) == []
        told = Destinations()
        told.add(store, run)
        assert told.all() == []
        collector = Collector(url)
        assert list(collector.of_store(store, run, named=False)) == []
    said = read_json("similar", "well", "--ok", "--store", demo.folder / "store")
    assert kept not in json.dumps(said)


def test_the_kept_tape_has_the_faults_of_its_schedule(
    found: tuple[Demo, "CompletedProcess[str]"],
) -> None:
    """Its late answer came when the schedule had it come, so that an agent with more patience is given on both what it is given on one."""
    demo, done = found
    told = json.loads(done.stdout)["found"]
    (fault,) = told["faults"]
    late_s = 8.0 if fault["kind"] == "late" else 8.0 / 5
    with Store.open(demo.folder / "store", readonly=True) as store:
        run = store.runs.get(told["tape"])
        exchanges = Exchanges(store, run)
        kept = [one for one in map(exchanges.find, exchanges.seqs) if one is not None]
    late = next(one for one in kept if one.gone is not None and not one.gone.head)
    assert late.gone is not None
    assert late.response is not None
    assert late.gone.at_us < late_s * 1e6 <= late.response.head_us < (late_s + 1) * 1e6
    assert late.end_us >= late.response.head_us


def test_a_fixed_agent_does_otherwise(found: tuple[Demo, "CompletedProcess[str]"]) -> None:
    """On the kept tape it asks for refunds instead of making another."""
    demo, done = found
    kept = json.loads(done.stdout)["found"]["tape"]
    again = demo.run("replay", kept, "--no-sandbox", "--json", module="agent_fixed")
    assert again.returncode == 121
    receipt = json.loads(again.stderr)
    asked = [row["method"] for row in receipt["divergences"] if "/v1/refunds" in row["url"]]
    assert asked[:1] == ["GET"]


# ---- another agent, with nothing live ------------------------------------------------------------------


class World(NamedTuple):
    """A shop with a model, and a store with a tape of an agent."""

    shop: Origin
    folder: Path

    def explore(self, *words: str) -> "CompletedProcess[str]":
        """Explore it."""
        told = ("--store", "store", "--no-sandbox", *words)
        command = (sys.executable, *AGENT, self.shop.url)
        return playhead("explore", "tape", *told, "--", *command, cwd=self.folder, timeout_s=300)


class Asking(NamedTuple):
    """A model that answers whatever it is asked, and a store with a tape of an agent that asks it."""

    model: Origin
    folder: Path

    @property
    def agent(self) -> tuple[str, ...]:
        """The words of its command."""
        return ("--", sys.executable, "-c", _ASKING, self.model.url)

    def explore(self, *words: str, script: str = "") -> tuple[dict[str, Any], str]:
        """Explore it with the model live; give what is told, and said.

        script: a file with the agent, in the place of its words.
        """
        self.model.requests.clear()
        live = ("--live", "inference", "--reason", "r", "--yes", "--fault", "throttle")
        told = ("--store", "store", "--no-sandbox", "--seeds", "8", "--json", *live, *words)
        agent = ("--", sys.executable, script, self.model.url) if script else self.agent
        done = playhead("explore", "tape", *told, *agent, cwd=self.folder, timeout_s=100)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One recording for all that follows."""
    folder = tmp_path_factory.mktemp("explore")
    with Origin({"/{tail:.*}": serve}) as shop:
        agent = (sys.executable, *AGENT, shop.url)
        told = ("--store", folder / "store", "--run", "tape", "-q")
        done = playhead("record", *told, "--", *agent, cwd=folder)
        assert done.returncode == 0, done.stderr
        shop.requests.clear()
        yield World(shop, folder)


def test_a_schedule_that_is_never_met_is_no_test(asking: "Asking") -> None:
    """An agent that ends early does not come to the fault; nothing is said to have been refused."""
    (asking.folder / "late.yaml").write_text("run: tape\nfaults: [{seq: 4, kind: throttle}]\n")
    words = ("--store", "store", "--no-sandbox", "--schedule", "late.yaml", "--yes")
    agent = list(asking.agent)
    agent[3] = agent[3].replace("range(1, 5)", "range(1, 2)").partition('send_by_urllib("POST"')[0]
    done = playhead("explore", "tape", *words, *agent, cwd=asking.folder, timeout_s=100)
    assert done.returncode == 125, done.stderr
    assert "nothing was tested" in done.stdout
    assert "did not come to its faults" in done.stdout
    assert "was refused" not in done.stdout + done.stderr


def test_the_same_seeds_give_the_same_schedules(world: World) -> None:
    """And nothing leaves."""
    words = ("--seeds", "6", "--fault", "throttle", "--fault", "cut", "--parallel", "2")
    first, second = world.explore(*words), world.explore(*words)
    assert first.returncode == second.returncode == 0, first.stderr
    assert first.stdout == second.stdout

    def schedules(said: str) -> set[str]:
        return {line.rsplit(",", 1)[0] for line in said.splitlines() if line.startswith("  seed ")}

    assert schedules(first.stderr) == schedules(second.stderr) != set()
    assert world.shop.requests == []


def test_a_check_is_an_invariant(world: World) -> None:
    """Here: the agent ends well. What breaks that is kept with its file, which gives it again."""
    words = ("--check", 'sh -c "exit $PLAYHEAD_EXIT"', "--fault", "cut", "--json")
    done = world.explore(*words)
    told = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert told["found"]["broken"] == ["the check ended with 1"]
    again = world.explore("--schedule", told["found"]["file"], "--json", *words[:2])
    assert again.returncode == 1
    assert json.loads(again.stdout)["found"]["faults"] == told["found"]["faults"]


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("test $PLAYHEAD_EXIT = 0 || exit 125", "the check ended with 125"),
        (
            "test $PLAYHEAD_EXIT = 0 || ! mkdir made-$PLAYHEAD_RUN",
            "the check ended with 0 and 1 on one run",
        ),
    ],
)
def test_a_check_without_a_result_is_no_green(world: World, check: str, why: str) -> None:
    """Such a schedule is untested, as a run of a bisection is unknown; nobody says that nothing was broken."""
    (world.folder / "cut.yaml").write_text("run: tape\nfaults: [{seq: 2, kind: cut, share: 3}]\n")
    words = ("--check", f"sh -c '{check}'", "--schedule", "cut.yaml")
    done = world.explore(*words)
    assert done.returncode == 125, done.stderr
    assert f"of its answer: {why}, " in done.stderr
    assert f"1 of them tell nothing: {why}" in done.stdout
    for made in world.folder.glob("made-*"):
        made.rmdir()
    told = json.loads(world.explore(*words, "--json").stdout)
    assert (told["untested"], told["found"]) == (1, None)


def test_a_check_without_a_result_is_no_start(world: World) -> None:
    """What is not known of the run without faults cannot be laid to one."""
    done = world.explore("--check", "sh -c 'exit 125'")
    assert done.returncode == 2, done.stderr
    assert "it is unknown whether 'tape' breaks the rule without any fault: the check ended with 125" in done.stderr  # fmt: skip


def test_what_an_agent_does_not_ask_again_is_told(world: World) -> None:
    """It goes on with what its tape does not hold; that breaks nothing, and tells nothing."""
    (world.folder / "throttle.yaml").write_text("run: tape\nfaults: [{seq: 2, kind: throttle}]\n")
    done = world.explore("--schedule", "throttle.yaml", "--json")
    assert done.returncode == 125, done.stderr
    assert json.loads(done.stdout)["untested"] == 1
    assert world.shop.requests == []


@pytest.mark.parametrize(
    ("way", "kind", "says"),
    [
        ("queue", "duplicate", "duplicate effect: POST "),
        ("race", "reorder", "the check ended with 3"),
    ],
)
def test_agents_that_do_what_comes(tmp_path: Path, way: str, kind: str, says: str) -> None:
    """A queue that delivers twice, and answers that change places; the kept tape gives both again."""
    with Origin({"/{tail:.*}": Services().serve}) as origin:
        agent = ("--", sys.executable, "-m", queue_agent.__name__, origin.url, way)
        done = playhead("record", "--store", "store", "--run", "r", "-q", *agent, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        origin.requests.clear()
        check = ("--check", 'sh -c "exit $PLAYHEAD_EXIT"')
        words = ("r", "--store", "store", "--no-sandbox", "--fault", kind, *check)
        done = playhead("explore", *words, "--json", *agent, cwd=tmp_path, timeout_s=120)
        assert done.returncode == 1, done.stderr
        found = json.loads(done.stdout)["found"]
        assert found["broken"][0].startswith(says)
        assert [one["kind"] for one in found["faults"]] == [kind]
        told = ("--store", "store", "--no-sandbox", "--json")
        again = playhead("replay", found["tape"], *told, *agent, cwd=tmp_path)
        receipt = json.loads(again.stderr)
        assert receipt["faithful"] is True, again.stderr
        assert again.returncode == (3 if way == "race" else 0)
        assert origin.requests == []


def test_what_the_run_does_without_faults_is_not_looked_for(world: World) -> None:
    """A check that fails at once has nothing to do with faults."""
    done = world.explore("--check", "false")
    assert done.returncode == 2
    assert "breaks the rule without any fault" in done.stderr


def test_a_run_that_tells_nothing_says_why(world: World) -> None:
    """In the words of its receipt, as no experiment has the flags of a branch."""
    told = ("--store", "store", "--no-sandbox", "--", sys.executable, "-c", "pass")
    done = playhead("explore", "tape", *told, cwd=world.folder, timeout_s=100)
    assert done.returncode == 2, done.stderr
    assert "without any fault: nothing was tested: the agent made no request" in done.stderr


def test_a_live_model_is_all_that_is_asked(world: World) -> None:
    """Counted at the shop."""
    world.shop.requests.clear()
    live = ("--live", "inference", "--reason", "r", "--yes", "--max-calls", "30")
    done = world.explore(*live, "--fault", "cut", "--seeds", "8")
    assert done.returncode in (0, 1), done.stderr
    assert set(world.shop.requests) <= {f"POST {CHAT}"}


_ASKING = """
import sys
from playhead.tests.support.refund_agent import CHAT, send_by_urllib
from playhead.tests.support.walking_agent import step
found = [send_by_urllib("GET", f"{sys.argv[1]}/items/{n}", None)[0] for n in range(1, 5)]
send_by_urllib("POST", sys.argv[1] + CHAT, step(1, str(found)))
"""
"""Asks a model about what it has found, so that each answer that failed makes another question."""


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """One recording for all that follows."""
    folder = tmp_path_factory.mktemp("asking")

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(say("well") if request.method == "POST" else {"n": request.path})

    with Origin({"/{tail:.*}": answer}) as model:
        made = Asking(model, folder)
        done = playhead(
            "record", "--store", "store", "--run", "tape", "-q", *made.agent, cwd=folder
        )
        assert done.returncode == 0, done.stderr
        yield made


def test_no_seed_is_passed_over_where_runs_wait_for_a_cap(asking: Asking) -> None:
    """One run at a time may make all the calls; the next one is begun once it has ended."""
    few, many = (asking.explore("--anew", "--max-calls", calls)[0] for calls in ("10", "300"))
    assert few["stopped"] is None, few
    assert few["schedules"] == many["schedules"] > 1


def test_the_same_command_goes_on_behind_a_cap(asking: Asking) -> None:
    """What broke nothing is not run again, and what it used counts; what is found is what one call finds."""
    first, _ = asking.explore("--anew", "--max-calls", "2", "--parallel", "1")
    assert first["stopped"].startswith("a cap was reached: spent 2 calls"), first
    assert len(asking.model.requests) == 2
    second, said = asking.explore("--max-calls", "300")
    assert "goes on with an earlier call" in said
    whole, said = asking.explore("--max-calls", "300")
    assert "goes on with an earlier call" not in said
    for key in ("seeds", "schedules", "untested", "stopped", "calls"):
        assert second[key] == whole[key], key
    assert len(asking.model.requests) == whole["calls"] == second["calls"]
    assert second["calls"] > 2


def test_what_another_agent_or_configuration_did_does_not_count(asking: Asking) -> None:
    """It begins again, with the run without faults, and says why."""
    (asking.folder / "agent.py").write_text(_ASKING)
    words = ("--max-calls", "2", "--parallel", "1")
    first, _ = asking.explore("--anew", *words, script="agent.py")
    assert first["stopped"].startswith("a cap was reached: spent 2 calls"), first
    (asking.folder / "agent.py").write_text(_ASKING + "# edited")
    (asking.folder / "c.yaml").write_text("fault_seed: 3")
    words = ("--max-calls", "300", "--config", "c.yaml")
    second, said = asking.explore(*words, script="agent.py")
    why = "  3 earlier runs do not count: agent.py and fault_seed of the configuration changed"
    assert why in said.splitlines()
    assert second["calls"] == len(asking.model.requests) + 2
    whole, _ = asking.explore(*words, script="agent.py")
    assert second["calls"] == whole["calls"] + 2
