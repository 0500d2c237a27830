"""An agent is held at a breakpoint: what it asks is shown, and a line of standard input says what becomes of it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.tests.support import prepared
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import COMMAND, playhead, read_json
from playhead.tests.support.refund_service import AGENT, serve


class World(NamedTuple):
    """A shop, and a store with a tape of the agent."""

    shop: Origin
    store: Path


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def held(self) -> list[str]:
        """Where it was held, in order."""
        lines = self.err.splitlines()
        return [line.split()[3].rstrip(":") for line in lines if line.startswith("── held at")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One recording for all."""
    folder = tmp_path_factory.mktemp("break")
    with Origin({"/{tail:.*}": serve}) as shop:
        words = ("--store", folder / "store", "--run", "tape", "-q", "--")
        done = playhead("record", *words, sys.executable, *AGENT, shop.url)
        assert done.returncode == 0, done.stderr
        shop.requests.clear()
        yield World(shop, folder / "store")
        assert shop.requests == []  # whatever was said at a breakpoint, nothing was sent


def run(world: World, lines: str, *flags: str, command: str = "replay") -> Done:
    """Run the agent again, with these lines as standard input."""
    told = ["--store", str(world.store), "--no-sandbox", *flags]
    agent = ["--", sys.executable, *AGENT, world.shop.url]
    done = prepared.run(
        [*COMMAND, command, "tape", *told, *agent], input=lines, text=True, timeout=60
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_an_agent_goes_on_as_if_it_had_not_been_held(world: World) -> None:
    """It is shown what it asks and what it gets; the replay is faithful."""
    done = run(world, "continue\n", "--break", "effect")
    assert (done.code, done.out[:8]) == (0, "Refunded"), done.err
    assert done.held == ["effect"]
    for text in (
        f"POST {world.shop.url}/v1/refunds",
        '{"order": 7, "amount": 4900}',
        "served: on tape",
        "recorded answer, tape seq 4: 200",
        "FAITHFUL: replay of tape",
        "seq 4 was held at the breakpoint 'effect'",
    ):
        assert text in done.err, (text, done.err)


def test_it_is_gone_through_step_by_step(world: World) -> None:
    """From one request to the next; then up to the end."""
    done = run(world, "what\nstep\ns\nc\n", "--break", "2", "-q")
    assert (done.code, done.held) == (0, ["2", "step", "step"]), done.err
    assert "playhead: expected one of: step (s), continue (c)" in done.err


def test_without_lines_the_command_that_lets_it_go_is_said(world: World) -> None:
    """As in CI: each time that it is held, and the command does so."""
    told = ["--store", str(world.store), "--no-sandbox", "--break", "2", "--break", "effect", "-q"]
    words = [*COMMAND, "replay", "tape", *told, "--", sys.executable, *AGENT, world.shop.url]
    let_go = 0
    with prepared.start(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if "curl -X POST" in line:
                said = subprocess.run(
                    ["sh", "-c", line], capture_output=True, text=True, timeout=20, check=False
                )
                assert '"command": "continue"' in said.stdout, said.stderr
                let_go += 1
    assert (run.returncode, let_go) == (0, 2)


def test_it_is_given_another_answer(world: World, tmp_path: Path) -> None:
    """Which is hypothetical, so that the replay is not faithful; what follows from it is held, too."""
    file = tmp_path / "answer.json"
    file.write_text('{"order": 7, "amount": 10}')
    lines = f"answer nowhere.json\nanswer {file}\ncontinue\n"
    flags = ("--break", f"GET {world.shop.url}/orders/*", "--break", "divergence")
    done = run(world, lines, *flags)
    assert (done.code, done.held) == (121, ["GET", "divergence"]), done.err
    assert "nowhere.json cannot be read" in done.err
    assert "refused: not on the tape" in done.err
    listed = read_json("runs", "--store", world.store)
    told = read_json("receipt", "--store", world.store, listed[-1]["id"])
    assert (told["counts"]["hypothetical"], told["faithful"]) == (1, False)


def test_an_answer_in_the_place_of_a_recorded_one_is_no_divergence(
    world: World, tmp_path: Path
) -> None:
    """The agent has asked what is on the tape, and all of it."""
    file = tmp_path / "answer.json"
    file.write_text('{"id": "re_X", "status": "failed"}')
    done = run(world, f"answer {file}\ncontinue\n", "--break", "effect", "--break", "divergence")
    listed = read_json("runs", "--store", world.store)
    told = read_json("receipt", "--store", world.store, listed[-1]["id"])
    assert [row for row in told["divergences"] if row.get("seq") == 4] == []
    assert 4 not in [row["seq"] for row in told["unused"]]
    assert (told["counts"]["hypothetical"], told["faithful"]) == (1, False)
    effect = next(
        row
        for row in read_json("effects", listed[-1]["id"], "--store", world.store)
        if row["seq"] == 4
    )
    assert (effect["by"], effect["divergence"], effect["differences"]) == ("hypothetical", None, [])
    assert done.code == 121
    assert ("you answered for the tape" in done.err) is (not told["divergences"])


def test_the_recorded_answer_is_edited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the editor of whoever is asked."""
    monkeypatch.setenv("VISUAL", "sed -i s/4900/10/")
    flags = ("--at", "2", "--break", "2", "--break", "effect", "-q")
    done = run(world, "answer --edit\nc\n", *flags, command="branch")
    assert (done.code, done.held) == (121, ["2"]), (
        done.err
    )  # the model is asked anew, and that is not declared
    assert "nothing was run" not in done.err


def test_an_answer_that_cannot_be_read_lets_nothing_go(world: World, tmp_path: Path) -> None:
    """It says where, and waits for another line."""
    file = tmp_path / "answer.json"
    file.write_text('{"choices": 7}')
    done = run(world, f"answer {file}\ncontinue\n", "--break", "1", "-q")
    assert (done.code, done.held) == (0, ["1"]), done.err
    assert "$.choices: expected an array, found an integer" in done.err


def test_it_is_quit(world: World) -> None:
    """The run is stopped and its command is ended."""
    done = run(world, "quit\n", "--break", "3")
    assert (done.code, "Refunded" in done.out) == (121, False), done.err
    assert "STOPPED by breakpoint" in done.err
    assert done.held == ["3"]


def test_a_branch_is_held_too(world: World, tmp_path: Path) -> None:
    """At its point, with the answer that it gives there."""
    file = tmp_path / "answer.json"
    file.write_text('{"order": 7, "amount": 4900, "note": "x"}')
    flags = ("--at", "2", "--answer", str(file), "--break", "2", "-q")
    done = run(world, "continue\n", *flags, command="branch")
    assert done.held == ["2"]
    assert "hypothetical: in the place of the answer of tape seq 2" in done.err


def test_a_call_that_is_asked_otherwise_is_held_where_the_tape_would_answer_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the point of the branch and behind it, before it is sent; there, its recorded answer can be edited."""
    monkeypatch.setenv("VISUAL", "sed -i '$s/$/ /'")  # nothing that means anything
    (tmp_path / "system.txt").write_text("Another system prompt.")
    flags = ("--at", "3", "--system", str(tmp_path / "system.txt"), "--live", "inference")
    points = ("--break", "3", "--break", "5", "--reason", "r", "--yes")
    done = run(world, "answer --edit\nanswer --edit\n", *flags, *points, command="branch")
    assert (done.held, done.out.split(":")[0]) == (["3", "5"], "Refunded"), done.err
    assert "spent so far 0 calls" in done.err
    assert "recorded answer, tape seq 5: 200" in done.err
    assert "(in the place of tape seq 3)" in done.err


@pytest.mark.parametrize("command", ["replay", "branch"])
def test_a_breakpoint_that_was_never_met_is_named(world: World, command: str) -> None:
    """In the receipt, as text and as JSON; one that was is not."""
    flags = ("--at", "2") if command == "branch" else ()
    points = ("effect", "divergence", "GET https://nowhere.test/*", "2")
    done = run(world, "c\nc\n", *flags, *(f"--break={one}" for one in points), command=command)
    assert (done.code, done.held) == (0, ["2", "effect"]), done.err
    unmet = [
        "the breakpoint 'divergence' was never met: no request was refused or stubbed because the tape does not have it",
        "the breakpoint 'GET https://nowhere.test/*' was never met: no request came that it names",
    ]
    listed = read_json("runs", "--store", world.store)
    told = read_json("receipt", "--store", world.store, listed[-1]["id"])
    assert [text for text in told["warnings"] if "never met" in text] == unmet
    assert done.err.count("was never met") == 2


def test_what_is_no_breakpoint_is_refused(world: World) -> None:
    """Before anything runs."""
    done = run(world, "", "--break", "effects")
    assert (done.code, "is no breakpoint" in done.err) == (125, True)
    assert run(world, "", "--break", "1", "--like").code == 125
    done = run(world, "", "--break", "1", "--at", "2", "--times", "2", command="branch")
    assert (done.code, "leave out --times" in done.err) == (2, True)


@pytest.mark.parametrize(("command", "code"), [("replay", 125), ("branch", 2)])
def test_an_exchange_that_the_tape_does_not_hold_is_refused(
    world: World, command: str, code: int
) -> None:
    """Before the command is started, with the nearest that there is."""
    flags = ("--at", "2") if command == "branch" else ()
    done = run(world, "", "--break", "77", *flags, command=command)
    assert (done.code, done.out) == (code, ""), done.err
    assert "run 'tape' holds no exchange 77: it has 1 to 5, and the nearest is 5" in done.err
