"""A bad run is bisected against a good one: the answer that was planted is named, or nothing is."""

import asyncio
import json
import math
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from playhead.config import Config, Mode
from playhead.store import RunInfo, Store
from playhead.tape.canonical.canonical_request import rules_of
from playhead.tape.exchange import Exchange, RunId, Seq
from playhead.tape.policy.branch import Branch
from playhead.tape.splicing.bisect_answers import Search, Standing
from playhead.tape.splicing.pairs import Pairing, pair_recordings
from playhead.tape.splicing.splice import Splice
from playhead.tests.support import planted_agent
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.tests.support.planted_agent import BAD, KINDS, World
from playhead.tests.support.process import playhead, read_json
from playhead.tests.support.refund_agent import CHAT, send_by_urllib
from playhead.timeline import build

FAULTS = 200 if FULL else 9
"""Planted, over all kinds."""
MOST_STEPS = 40


class Planted(NamedTuple):
    """A fault in a run of so many steps."""

    kind: str
    steps: int
    fault: int


def _plant() -> list[Planted]:
    drawn = random.Random(23)
    found = []
    for number in range(FAULTS):
        steps = drawn.randint(2, MOST_STEPS if FULL or number < 3 else 8)
        found.append(Planted(KINDS[number % len(KINDS)], steps, drawn.randint(1, steps)))
    return found


class Shop(NamedTuple):
    """The services, and what they answer."""

    origin: Origin
    world: World

    def ask(self, proxy: str, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Ask by way of a proxy. Blocking."""
        return send_by_urllib(method, self.origin.url + path, body, proxy=proxy)

    def run(self, proxy: str, case: Planted) -> int:
        """Run the agent; give its exit code. Blocking."""
        return planted_agent.run(partial(self.ask, proxy), case.kind, case.steps)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """One for all that follows."""
    world = World()
    with Origin({"/{tail:.*}": world.serve}) as origin:
        yield Shop(origin, world)


async def _off_loop(work: Any, *given: Any) -> Any:
    with ThreadPoolExecutor(1) as thread:
        return await asyncio.get_running_loop().run_in_executor(thread, work, *given)


async def _record(running: Running, shop: Shop, case: Planted, name: str, *, bad: bool) -> RunInfo:
    world = shop.world
    world.kind, world.steps = case.kind, case.steps
    world.seed, world.fault = (1, case.fault) if bad else (2, 0)
    code = await _off_loop(shop.run, running.url_for(name), case)
    assert code == (BAD if bad else 0)
    await running.end(name)
    return running.store.runs.get(RunId(name))


def _pair(store: Store, bad: RunInfo, good: RunInfo) -> Pairing:
    def read(run: RunInfo, seq: Seq) -> Exchange:
        found = store.exchanges.find(run, seq)
        assert found is not None
        return found

    seqs = [Seq(seq) for seq in store.exchanges.seqs(bad)], [Seq(seq) for seq in store.exchanges.seqs(good)]  # fmt: skip
    return pair_recordings(seqs, (partial(read, bad), partial(read, good)), rules_of(Config(), thread_time))  # fmt: skip


async def _try(running: Running, shop: Shop, case: Planted, branch: Branch, name: str) -> Standing:
    """Run the agent in a branch, as `playhead bisect` does."""
    running.registry.branch = branch
    code = await _off_loop(shop.run, running.url_for(name), case)
    (open_run,) = running.registry.open
    assert open_run.info is not None
    made = open_run.info.id
    await running.end(made)
    receipt = build(running.store, running.store.runs.get(made))
    if receipt.refused or receipt.counts["stubbed"]:
        return Standing.UNKNOWN
    return Standing.BAD if code else Standing.GOOD


@pytest.mark.timeout(2400 if FULL else 120)
async def test_planted_faults_are_named(shop: Shop, tmp_path: Path) -> None:
    """In at most ceil(log2 n) runs beside the two that repeat both recordings; 99 of 100 exactly, the rest is not proved, and none is named wrongly."""
    exact, unproved, wrong = 0, list[Planted](), list[tuple[Planted, int]]()
    for number, case in enumerate(_plant()):
        config = Config(store=tmp_path / str(number), mode=Mode.RECORD)
        async with running_engine(config) as running:
            bad = await _record(running, shop, case, "bad", bad=True)
            good = await _record(running, shop, case, "good", bad=False)
            pairing = _pair(running.store, bad, good)
            running.play()
            shop.origin.requests.clear()
            search = Search(len(pairing.roots))
            at = pairing.roots[0].bad
            assert at is not None
            while (count := search.next()) is not None:
                declared = Branch(at, splice=Splice(pairing, count, "good"))
                search.tell(count, await _try(running, shop, case, declared, "bad"))
            assert shop.origin.requests == []
            answers = bad.exchanges or len(pairing.pairs)
            assert search.runs <= math.ceil(math.log2(answers)), case
            if search.found is None:
                unproved.append(case)
                continue
            named = pairing.roots[search.found - 1].bad
            assert named is not None
            asked = running.store.exchanges.find(bad, named)
            planted = _is_planted(asked, case)
            exact += planted
            if not planted:
                wrong.append((case, named))
    assert wrong == []
    assert exact >= 0.99 * FAULTS, unproved


def _is_planted(asked: Exchange | None, case: Planted) -> bool:
    """Say whether an exchange is the one into which the fault was planted."""
    assert asked is not None
    assert asked.response is not None
    if case.kind == "choice":
        return b'\\"where\\": \\"us\\"' in asked.response.body
    return asked.request.path == f"/items/{case.fault}"


# ---- the command ---------------------------------------------------------------------------------------


class Stored(NamedTuple):
    """A store with a bad and a good recording of one agent."""

    shop: Shop
    folder: Path
    case: Planted

    def words(self, *words: str) -> list[str]:
        """Give the words of a bisection."""
        agent = ("-m", planted_agent.__name__, self.shop.origin.url)
        told = ("--store", str(self.folder / "store"), "--no-sandbox", *words)
        command = (sys.executable, *agent, self.case.kind, str(self.case.steps))
        return ["bisect", "bad", "good", *told, "--", *command]


def _store(shop: Shop, folder: Path, case: Planted) -> Stored:
    made = Stored(shop, folder, case)
    for name in ("bad", "good"):
        world = shop.world
        world.kind, world.steps = case.kind, case.steps
        world.seed, world.fault = (1, case.fault) if name == "bad" else (2, 0)
        at = made.words().index("--")
        told = ("--store", folder / "store", "--run", name, "-q")
        done = playhead("record", *told, *made.words()[at:], cwd=folder)
        assert done.returncode == (BAD if name == "bad" else 0), done.stderr
    shop.origin.requests.clear()
    return made


@pytest.fixture(scope="module")
def reads(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Of an agent whose answers all differ."""
    return _store(shop, tmp_path_factory.mktemp("reads"), Planted("reads", 4, 3))


def test_the_command_names_the_answer_and_the_runs_that_prove_it(reads: Stored) -> None:
    """With what to look at; and nothing is sent."""
    done = playhead(*reads.words(), cwd=reads.folder, timeout_s=120)
    assert done.returncode == 0, done.stderr
    assert (
        "share 4 questions; 4 of these were answered otherwise: 2 runs that repeat both recordings, at most 2"
        in done.stderr
    )
    assert "nothing leaves" in done.stderr
    url = f"{reads.shop.origin.url}/items/3"
    said = done.stdout.splitlines()
    assert said[0] == f"the answer to exchange 3 turns 'bad' bad: GET {url}"
    assert said[1].startswith("  bad with 2 answers of 'good':  bad@")
    assert said[2].startswith("  good with 3 answers of 'good': bad@")
    assert "  playhead show bad 3" in said
    assert reads.shop.origin.requests == []
    pair = [line.split()[-1] for line in said[1:3]]
    branch = read_json("receipt", pair[0], "--store", reads.folder / "store")["branch"]
    assert branch["spliced"] == ["good", 2]
    assert [row["in_place_of"] for row in branch["hypothetical"]] == [1, 2]
    different = playhead("diff", *pair, "--store", reads.folder / "store")
    assert different.returncode == 1, different.stdout


def test_what_a_check_says_counts(reads: Stored) -> None:
    """It finds the exit code and the receipt of each run."""
    (reads.folder / "check.sh").write_text('[ "$PLAYHEAD_EXIT" = 0 ] && [ -s "$PLAYHEAD_RECEIPT" ]')
    done = playhead(*reads.words("--check", "sh check.sh", "--json"), cwd=reads.folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["proved"]["seq"], told["proved"]["good_seq"]) == (3, 3)
    assert {one["why"] for one in told["runs"]} == {
        "the check ended with 0",
        "the check ended with 1",
    }


def test_labels_judge_where_the_agent_says_nothing(reads: Stored) -> None:
    """And nobody is at a terminal: then nothing is proved, and no guess is made."""
    for name in ("bad", "good"):
        done = playhead("label", name, name, "--store", reads.folder / "store")
        assert done.returncode == 0, done.stderr
    done = playhead(*reads.words("--label", "--json"), cwd=reads.folder)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["proved"] is None
    assert {one["standing"] for one in told["runs"]} == {"unknown"}


def test_a_check_that_says_this_and_that_proves_nothing(reads: Stored) -> None:
    """It is asked twice about each run."""
    (reads.folder / "flaky.sh").write_text("[ -e once ] && { rm once; exit 1; }; touch once")
    done = playhead(*reads.words("--check", "sh flaky.sh", "--json"), cwd=reads.folder)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["proved"] is None
    assert {one["standing"] for one in told["runs"]} == {"unknown"}
    assert told["problem"] == "without any answer of the good run it could not be tested"


def test_a_bad_end_that_no_answer_makes_is_not_proved(reads: Stored) -> None:
    """The command is bad whatever it is answered."""
    words = reads.words()
    done = playhead(*words[: words.index("--") + 1], "false", cwd=reads.folder)
    assert done.returncode == 1
    assert done.stdout.startswith("not proved: ")


def test_an_agent_that_is_bad_by_chance_is_not_proved(reads: Stored) -> None:
    """The pair is run once more, and the run that was good is bad then."""
    (reads.folder / "chance.sh").write_text(
        'echo >> runs; [ $(wc -l < runs) -lt 7 ] && exit "$PLAYHEAD_EXIT"; exit 1'
    )
    done = playhead(*reads.words("--check", "sh chance.sh", "--json"), cwd=reads.folder)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["proved"] is None
    assert "it was good once and bad another time: the result comes by chance" in told["problem"]
    assert "2 that repeat the proof" in done.stderr


_CROSS_CHECKING = """
import json, sys, urllib.request
from pathlib import Path
found = {json.load(urllib.request.urlopen(f"{sys.argv[1]}/orders/{n}"))["state"] for n in range(4)}
if len(found) > 1:
    sys.exit(4)  # half of one order and half of the other
sys.exit(3 if Path("full").exists() or "broken" in found else 0)
"""
"""Compares what it reads, so that it fails with every mixture of two recordings; and fails where its disk is full."""


class Compared(NamedTuple):
    """Two recordings of an agent that compares what it reads."""

    folder: Path
    states: dict[str, str]
    url: str

    def run(self, *words: str) -> Any:
        """Run a command with the agent."""
        told = (*words, "--store", str(self.folder / "store"))
        agent = (sys.executable, "-c", _CROSS_CHECKING, self.url)
        return playhead(*told, "--", *agent, cwd=self.folder, timeout_s=120)


@pytest.fixture
def compared(tmp_path: Path) -> Iterator[Compared]:
    """A good recording."""
    states = {"now": "paid"}

    async def serve(_: web.Request) -> web.Response:
        return web.json_response({"state": states["now"]})

    with Origin({"/{tail:.*}": serve}) as origin:
        made = Compared(tmp_path, states, origin.url)
        assert made.run("record", "--run", "good").returncode == 0
        yield made


@pytest.mark.parametrize("check", [(), ("--check", 'sh -c "exit $PLAYHEAD_EXIT"')])
def test_a_run_that_is_good_when_it_is_repeated_blames_no_answer(
    compared: Compared, check: tuple[str, ...]
) -> None:
    """What made it bad is gone, and every mixture is bad for a reason of its own."""
    compared.states["now"] = "open"
    (compared.folder / "full").touch()
    assert compared.run("record", "--run", "bad").returncode == 3
    (compared.folder / "full").unlink()
    done = compared.run("bisect", "bad", "good", "--no-sandbox", *check)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert done.stdout.startswith("not proved: the bad run is good when it is run again")


def test_a_mixture_that_fails_in_its_own_way_is_said(compared: Compared) -> None:
    """The recorded failure comes from the answers, and the pair shows another one."""
    compared.states["now"] = "broken"
    assert compared.run("record", "--run", "bad").returncode == 3
    words = ("bisect", "bad", "good", "--no-sandbox")
    done = compared.run(*words)
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = "the command ended with 4 there, and with 3 without any answer of 'good': it may be another failure"
    assert f"  {said}" in done.stdout.splitlines()
    told = json.loads(compared.run(*words, "--json").stdout)
    assert told["other_end"] == said


@pytest.fixture(scope="module")
def summary(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Of an agent that has a model judge all that it has read."""
    return _store(shop, tmp_path_factory.mktemp("summary"), Planted("summary", 3, 2))


def test_what_neither_tape_holds_is_no_guess(summary: Stored) -> None:
    """A mixture of both was never asked; so nothing is proved without the model."""
    done = playhead(*summary.words(), cwd=summary.folder)
    assert done.returncode == 1, done.stderr
    assert (
        "not proved: between 0 and 3 answers of the good run nothing could be tested" in done.stdout
    )
    assert summary.shop.origin.requests == []


def test_with_a_live_model_the_repeats_are_said_first(summary: Stored) -> None:
    """And how many calls they are; then the model is asked what neither tape holds, and nothing else."""
    summary.shop.origin.requests.clear()
    live = ("--live", "inference", "--reason", "a test", "--times", "5", "--yes")
    done = playhead(*summary.words(*live), cwd=summary.folder, timeout_s=180)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "repeats distinguish 90% bad runs from 10% with 95 % power" in done.stderr
    assert "price: one run 1 call" in done.stderr
    assert "exchange 2 turns 'bad' bad" in done.stdout
    assert set(summary.shop.origin.requests) == {f"POST {CHAT}"}
    assert len(summary.shop.origin.requests) <= 15


def test_a_cap_ends_it_with_nothing_proved(summary: Stored) -> None:
    """What was spent is said, and what is left; no call is made beyond it."""
    summary.shop.origin.requests.clear()
    live = ("--live", "inference", "--reason", "a test", "--times", "4", "--yes")
    done = playhead(*summary.words(*live, "--max-calls", "5"), cwd=summary.folder, timeout_s=180)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "not proved: a cap was reached: spent 4 calls" in done.stdout
    assert "left 1 calls" in done.stdout
    assert summary.shop.origin.requests == [f"POST {CHAT}"] * 4


@pytest.mark.parametrize("times", [1, 2, 3])
def test_repeats_that_prove_nothing_are_not_paid(summary: Stored, times: int) -> None:
    """However they ended: the least number that can prove something is said instead."""
    summary.shop.origin.requests.clear()
    live = ("--live", "inference", "--reason", "a test", "--times", str(times), "--yes")
    done = playhead(*summary.words(*live), cwd=summary.folder)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert f"--times {times} proves nothing: even if all repeats agreed" in done.stderr
    assert "--times 4 is the least that can prove one" in done.stderr
    assert summary.shop.origin.requests == []


def test_the_same_command_goes_on_behind_a_cap(summary: Stored) -> None:
    """What was run is not run again, and what it used counts; once it has come to its end, it begins anew."""
    live = ("--live", "inference", "--reason", "a test", "--times", "4", "--yes")
    spent, notes = summary.shop.origin.requests, summary.folder / "store" / "experiments"
    spent.clear()
    shown = []
    for cap in ("5 --anew", "5", "9", "100"):
        words = summary.words(*live, "--max-calls", *cap.split())
        done = playhead(*words, cwd=summary.folder, timeout_s=180)
        shown.append((done.returncode, "goes on with an earlier call" in done.stderr, len(spent)))
    assert shown == [(1, False, 4), (1, True, 4), (0, True, 8), (0, False, 16)], done.stderr
    assert "exchange 2 turns 'bad' bad" in done.stdout
    assert list(notes.iterdir()) == []


def test_a_stopped_bisection_is_begun_anew_where_that_is_wanted(summary: Stored) -> None:
    """Nothing of the earlier one counts."""
    live = ("--live", "inference", "--reason", "a test", "--times", "4", "--yes")
    spent = summary.shop.origin.requests
    spent.clear()
    words = summary.words(*live, "--max-calls", "5", "--anew")
    for count in (4, 8):
        done = playhead(*words, cwd=summary.folder, timeout_s=180)
        assert (done.returncode, len(spent)) == (1, count), done.stderr
        assert "goes on" not in done.stderr


def test_what_another_check_has_said_does_not_count(summary: Stored) -> None:
    """Runs that were judged by it are made again, and it is said why; what they used counts."""
    check = summary.folder / "check.sh"
    live = ("--live", "inference", "--reason", "a test", "--times", "4", "--yes")
    spent = summary.shop.origin.requests
    spent.clear()
    shown = []
    for text, cap in (("exit $PLAYHEAD_EXIT", "5"), ("exit 0", "100")):
        check.write_text(text)
        words = summary.words(*live, "--check", "sh check.sh", "--max-calls", cap)
        done = playhead(*words, cwd=summary.folder, timeout_s=180)
        shown.append((done.returncode, len(spent)))
    assert shown == [(1, 4), (1, 4)], done.stderr
    assert "  12 earlier runs do not count: check.sh changed" in done.stderr.splitlines()
    assert "0 runs of it are not made again, and it has used 4 calls" in done.stderr
    assert "0 of 3 answers of 'good': good, 0 of 4 runs were bad" in done.stderr
    assert "not proved" in done.stdout


_BY_TURN = """
grep -qx "$PLAYHEAD_RUN" runs || echo "$PLAYHEAD_RUN" >>runs
n=$(grep -nx "$PLAYHEAD_RUN" runs)
case " $BAD " in *" ${n%%:*} "*) exit 1;; esac
exit 0
"""
"""Has the runs with these numbers be bad, whatever they did."""


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("1 2 3 4 7 8", "4 of 6 runs were bad without any answer of the good run, and 2 with all of them: that may be chance; about "),
        ("1 2 3 4 7 8 9 10", "it is bad with all answers of the good run: none of them turns it bad"),
    ],
)  # fmt: skip
def test_the_ends_are_compared_before_anything_is_searched(
    shop: Shop, tmp_path: Path, bad: str, said: str
) -> None:
    """Also where most runs of the bad end are bad, and most of the other are good."""
    made = _store(shop, tmp_path, Planted("summary", 3, 2))
    (tmp_path / "turn.sh").write_text(f"BAD='{bad}'\n{_BY_TURN}")
    (tmp_path / "runs").touch()
    live = ("--live", "inference", "--reason", "a test", "--yes", "--times", "6")
    done = playhead(*made.words(*live, "--check", "sh turn.sh"), cwd=tmp_path, timeout_s=180)
    assert (done.returncode, len((tmp_path / "runs").read_text().split())) == (1, 12), done.stderr
    assert done.stdout.startswith(f"not proved: {said}"), done.stdout


_EVERY_THIRD = """
grep -qx "$PLAYHEAD_RUN" runs || echo "$PLAYHEAD_RUN" >>runs
n=$(grep -nx "$PLAYHEAD_RUN" runs)
[ $((${n%%:*} % 3)) = 0 ] && exit "$PLAYHEAD_EXIT"
exit 0
"""
"""Has one of three runs be as it is, and the others good."""


@pytest.mark.parametrize("times", [6, 12])
def test_an_answer_that_makes_a_run_bad_now_and_then_is_found(
    shop: Shop, tmp_path: Path, times: int
) -> None:
    """If it does so significantly more often than the other one; else it is said how many repeats that takes."""
    made = _store(shop, tmp_path, Planted("summary", 1, 1))
    (tmp_path / "third.sh").write_text(_EVERY_THIRD)
    (tmp_path / "runs").touch()
    live = ("--live", "inference", "--reason", "a test", "--yes", "--times", str(times))
    done = playhead(*made.words(*live, "--check", "sh third.sh"), cwd=tmp_path, timeout_s=180)
    assert f"0 of 1 answer of 'good': good, {times // 3} of {times} runs were bad" in done.stderr
    if times == 6:
        assert done.returncode == 1, (done.stdout, done.stderr)
        why = "not proved: 2 of 6 runs were bad without any answer of the good run, and 0 with all of them: that may be chance; about "
        assert done.stdout.startswith(why)
        assert "repeats tell such shares apart: --times " in done.stdout
    else:
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert (
            "from here on a number of answers is bad if more than 17% of its runs are"
            in done.stderr
        )
        assert "exchange 1 turns 'bad' bad" in done.stdout
