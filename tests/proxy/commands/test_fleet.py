"""`playhead diff`, `cost` and the other questions about several runs: what a person reads, and what is said of bad input."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from playhead import PlayheadError
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tape.exchange import VerdictKind
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, text, user
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.replays import write_recording, write_replay
from playhead.timeline.show.fit import columns

HOSTILE = "\x1b[31mred\x1b[0m \u202ebackwards\u202c \x07 " + "x" * 10_000


def shop(answer: str = "Refunded.", *, total: str = "40.00") -> Tape:
    """A model call, a read, an effect and a last word."""
    tape = Tape("shop")
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 1}
    tape.model(anthropic([user("Refund order 7.")]), anthropic_stream(text("Yes."), usage=usage))
    tape.get("https://shop.test/orders/7", {"total": total})
    tape.post("https://shop.test/refunds", {"order": 7, "to": "ana@shop.test"})
    tape.model(
        anthropic([user("Refund order 7."), user("Done?")]),
        anthropic_stream(text(answer), usage=usage),
    )
    return tape


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with recordings that differ, and replays of one."""
    path = tmp_path_factory.mktemp("fleet") / "store"

    async def write() -> None:
        with Store.open(path) as store:
            good = await write_recording(store, "good", shop().exchanges)
            await write_run(store, "bad", shop("I did nothing.").exchanges)
            await write_run(store, "hostile", shop(HOSTILE, total=HOSTILE).exchanges)
            refused = [
                replace(one, verdict=VerdictKind.REFUSED) if one.seq == 3 else one
                for one in shop().exchanges
            ]
            await write_run(store, "refused", refused)
            await write_run(store, "silent", shop().exchanges[1:3])
            await write_replay(store, good, shop().exchanges)
            await write_replay(store, good, [shop().exchanges[at] for at in (0, 2, 1, 3)])

    asyncio.run(write())
    return path


def ask(folder: Path, *words: str) -> Result:
    """Run a command on the store."""
    arguments = [words[0], "--store", str(folder), *words[1:]]
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def page(result: Result) -> list[str]:
    """Give the lines of a page, of which none is wider than a terminal, and nothing acts on it."""
    assert result.exception is None, result.exception
    lines = result.stdout.splitlines()
    assert all(columns(line) <= 80 for line in lines), result.stdout
    assert all(line.isprintable() for line in lines)
    return lines


def test_two_runs_differ_and_the_command_says_where(folder: Path) -> None:
    """The first divergence is told with its place and both values, and the command ends with 1."""
    result = ask(folder, "diff", "good", "bad")
    lines = page(result)
    assert result.return_value == 1
    assert "first divergence: answered otherwise, A 4, B 4" in lines
    assert "      A Refunded." in lines
    told = json.loads(ask(folder, "diff", "--json", "good", "bad").stdout)
    assert told["divergence"]["first"]["seq"] == 4
    assert [one["root"] for one in told["differences"]] == [True]


def test_a_run_and_its_replay_do_not_differ(folder: Path) -> None:
    """What the tape answered is the same."""
    result = ask(folder, "diff", "good", "good@1")
    assert result.return_value == 0
    assert "no divergence" in page(result)
    assert "no divergence" in page(ask(folder, "diff", "good", "good"))


def test_hostile_text_is_text(folder: Path) -> None:
    """Nothing of a recorded text acts on the terminal, however long it is."""
    page(ask(folder, "diff", "good", "hostile"))
    page(ask(folder, "cost", "hostile"))


def test_money_and_tokens_are_summed_beside_what_was_saved(folder: Path) -> None:
    """What was sent is spent, what replays were served is saved, and what was refused here is neither."""
    pytest.importorskip("genai_prices")
    told = json.loads(ask(folder, "cost", "--json", "good").stdout)
    assert (told["sent"], told["answered_from_tape"], told["saved"]["replays"]) == (4, 8, 2)
    assert told["spent"]["input_tokens"] == 2000
    assert told["saved"]["input_tokens"] == 4000
    assert float(told["saved"]["usd"]) == pytest.approx(2 * float(told["spent"]["usd"]))
    refused = json.loads(ask(folder, "cost", "--json", "refused", "good@1").stdout)
    assert (refused["sent"], refused["refused"], refused["answered_from_tape"]) == (3, 1, 4)
    for by in ("model", "lane", "step", "day", "run"):
        assert "spent" in "\n".join(page(ask(folder, "cost", "good", "--by", by)))


def test_similar_runs_are_ranked_with_their_outcomes(folder: Path) -> None:
    """The nearest first; `--ok` leaves out what nobody calls good."""
    lines = page(ask(folder, "similar", "good"))
    assert lines[0] == "LIKE OUTCOME  BEGAN            RUN"
    assert lines[1].endswith("refused")
    assert lines[1].startswith("1.00 unknown ")
    assert page(ask(folder, "similar", "good", "--ok")) == [
        "no other recording asked a model and ended well"
    ]
    ask(folder, "label", "bad", "ok")
    told = json.loads(ask(folder, "similar", "good", "--ok", "--json").stdout)
    assert [(one["run"], one["outcome"], one["by"]) for one in told] == [("bad", "ok", "label")]


def test_runs_are_found_by_what_was_said_in_them(folder: Path) -> None:
    """With the seqs and the text around the first place; 1 where there is none."""
    lines = page(ask(folder, "runs", "--grep", "i did nothing"))
    assert lines[0].endswith("bad: 4")
    assert lines[1] == "  I did nothing."
    page(ask(folder, "runs", "--grep", "red"))
    none = ask(folder, "runs", "--grep", "nowhere")
    assert (none.return_value, none.stdout) == (1, "found in none of 7 runs\n")
    assert ask(folder, "runs", "--trace", "0" * 32, "--json").stdout == "[]\n"


def test_destinations_are_listed_with_personal_data(folder: Path) -> None:
    """What agents sent, and where; a recording without a log of its requests has sent nothing that is known."""
    assert page(ask(folder, "destinations"))[0].startswith("HOST")
    told = json.loads(ask(folder, "destinations", "--json").stdout)
    assert {one["host"]: one["personal_data"] for one in told} == {
        "api.anthropic.com": {},
        "shop.test": {"email": 1},
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("runs", "--grep", "("), "--grep: '(' is no regular expression"),
        (("runs", "--trace", "12"), "--trace: '12' is no trace"),
        (("runs", "--trace", "0" * 32, "--grep", "x"), "--grep or --trace, one of the two"),
        (("runs", "--since", "x"), "--since: 'x' is no time"),
        (("destinations", "--since", "x"), "--since: 'x' is no time"),
        *(
            ((*words, "--since", "1d"), "none of 7 runs went on since ")
            for words in (
                *(("destinations",), ("cost",), ("policy", "--with", "/dev/null")),
                ("history", "https://shop.test/orders/7"),
            )
        ),
        *(
            ((*words, "--since", "30"), "--since: '30' has no unit: expected 30d or 12h")
            for words in (("runs",), ("cost",), ("destinations",), ("history", "https://a.test/"))
        ),
        (("policy", "--since", "x", "--with", "x.yaml"), "--since: 'x' is no time"),
        (("policy", "--since", "1d", "--with", "x.yaml", "good"), "not both"),
        (("similar", "goof"), "unknown run 'goof'"),
        (("similar", "silent"), "asked no model that is known"),
        (("diff", "good", "goof"), "unknown run 'goof'"),
        (("cost",), "expected runs, or --since TIME"),
        (("cost", "good", "--since", "3d"), "expected runs, or --since TIME"),
        (("cost", "--since", "soon"), "'soon' is no time: expected 30d or 12h"),
        (("cost", "goof"), "unknown run 'goof'"),
    ],
)
def test_bad_input_is_told_what_would_be_right(
    folder: Path, words: tuple[str, ...], told: str
) -> None:
    """A command says what it expected, and never a traceback."""
    problem = ask(folder, *words).exception
    assert isinstance(problem, PlayheadError | click.UsageError)
    assert told in str(problem)


@pytest.mark.parametrize("more", [(), ("--tree",), ("--grep", "x"), ("--trace", "0" * 32)])
def test_a_time_without_runs_is_not_told_as_a_store_without(
    folder: Path, more: tuple[str, ...]
) -> None:
    """How many there are, and when the newest ended."""
    told = ask(folder, "runs", "--since", "2999-01-01", *more).stdout
    assert re.fullmatch(r"none of 7 runs went on since 2.*; the newest ended .*\n", told)
    assert ask(folder, "runs", "--since", "2999-01-01", "--json").stdout == "[]\n"
