"""`playhead blame`, `cache` and `history`: bad input, hostile texts, and runs that are in an archive."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from playhead.store import Store
from playhead.tape.exchange import Gone, Repeat, RepeatKind, RequestClass, Seq
from playhead.tests.adversary.planted.bad_input import (
    BAD_INPUT,
    FORBIDDEN,
    HOSTILE,
    base,
    hostile,
    text_of_case,
)
from playhead.tests.adversary.planted.history import history
from playhead.tests.support.agent_tapes import Tape, call, chat, chat_answer, said
from playhead.tests.support.counts import FULL
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_intent, make_record, write_run
from playhead.tests.support.looking_back import ask, write_store
from playhead.tests.support.planted_runs import make_exchanges
from playhead.timeline.show.fit import columns

VERBS = ("blame", "cache", "history")
CASES = [case for case in BAD_INPUT if case["verb"] in VERBS]
TEXTS = [case for case in HOSTILE if FULL or len(text_of_case(case)) < 1000]
HISTORY = history(3)[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run of the cases, one that is open, hostile ones and those of a history."""
    folder = tmp_path_factory.mktemp("causes") / "store"

    async def write(opened: Store) -> None:
        await write_run(opened, "run", make_exchanges(base()))
        info = await opened.runs.create("open", mode="record", at_ns=1)
        for exchange in make_exchanges(base())[:4]:
            await opened.exchanges.save(info.number, partial(make_record, exchange))
        for number, case in enumerate(TEXTS):
            await write_run(opened, f"hostile-{number}", make_exchanges(hostile(case)))
        for number, run in enumerate(HISTORY["runs"]):
            await write_run(opened, f"orders-{number}", make_exchanges(run))

    return write_store(folder, write)


def told(result: Result) -> str:
    """Give all that is printed; an error of ours is one that says what to do."""
    error = result.exception
    if error is None:
        return result.output
    assert hasattr(error, "hint") or isinstance(error, click.ClickException), error
    return f"{result.output} {getattr(error, 'message', error)} {getattr(error, 'hint', '')}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"])[:60])
def test_bad_input_is_told_what_would_be_right(store: Path, case: dict[str, Any]) -> None:
    """What was expected and what was found, the range and the nearest; never a traceback."""
    names = {"{run}": "run", "{open}": "open", "{run}x": "runx"}
    result = ask(store, *(names.get(word, word) for word in case["argv"]))
    text = told(result)
    code = 0 if result.exception is None else 2
    assert case["exit"] in (None, code), text
    for words in case["must"]:
        choice = [words] if isinstance(words, str) else words
        assert any(word.replace("{run}", "run").lower() in text.lower() for word in choice), text
    assert not any(word in text for word in case["must_not"])


@pytest.mark.parametrize("number", range(len(TEXTS)), ids=lambda n: TEXTS[n]["id"])
def test_hostile_texts_are_shown_as_text(store: Path, number: int) -> None:
    """Nothing moves a cursor or turns a line round, and every line keeps 80 columns."""
    name, case = f"hostile-{number}", TEXTS[number]
    for words in (
        ("cache", name),
        ("history", "https://api.test/items", name),
        ("blame", name, "4", "$.messages[0].content[0].text"),
        ("blame", name, "4", "$.system[0].text"),
        ("blame", name, "2", "answer $.title"),
        ("blame", name, "4", "answer text"),
    ):
        result = ask(store, *words)
        text = told(result)
        assert not [char for char in FORBIDDEN if char in text], words
        assert not [word for word in case["must_not"] if word in text], words
        if result.exception is None:
            assert max(map(columns, text.splitlines())) <= 80


def double_refund() -> Tape:
    """A refund that is paid at once and answered late, and is asked for again: as the example records it."""
    tape = Tape("double refund")
    system = said("system", "You help customers of a mug shop.")
    asked = [system, said("user", "Order 1007 came broken. Pay me back the 49.00 for it.")]
    first = call("call_1", "refund", charge="ch_1007", amount=4900)
    tape.model(chat(asked, tools=("refund",)), chat_answer(None, first))
    kind = {"content-type": "application/x-www-form-urlencoded"}
    pay = make_request("https://pay.test/refunds", b"charge=ch_1007&amount=4900", kind)
    paid = {"id": "re_1", "amount": 4900, "status": "succeeded"}
    gone = Gone(1_000_000, 0, False)
    effect = RequestClass.EFFECT
    tape.add(pay, make_response(paid), effect, gone=gone, took_us=1_600_000)
    again = call("call_2", "refund", charge="ch_1007", amount=4900)
    late = said("tool", "the payment API timed out", tool_call_id="call_1")
    asked = [*asked, said("assistant", None, tool_calls=[first]), late]
    tape.model(chat(asked, tools=("refund",)), chat_answer(None, again, id="chatcmpl-2"))
    twice = Repeat(Seq(2), RepeatKind.POSSIBLE_DUPLICATE, True)
    tape.add(pay, make_response(paid | {"id": "re_2"}), effect, repeat=twice)
    return tape


def test_the_double_refund_is_three_commands_from_tape_to_cause(tmp_path: Path) -> None:
    """What may have changed the world, where the second amount came from, and the answer that nobody saw."""
    folder, tape = tmp_path / "store", double_refund()

    write_store(folder, lambda opened: write_run(opened, "refund", tape.exchanges))
    effects = told(ask(folder, "rewind", "refund", "--before-effect"))
    assert "effect 2 POST https://pay.test/refunds 200" in effects
    assert "  [client left after 1.0 s]\n" in effects
    assert "  [possible duplicate of 2]\n  before it: 3 (asked for by refund" in effects
    origin = told(ask(folder, "blame", "refund", 4, "amount"))
    assert (
        "first in 1 answer $.choices[0].message.tool_calls[0].function.arguments.amount" in origin
    )
    assert "not seen by the agent in time: 2 answer $.amount\n" in origin
    assert "  playhead show refund 2\n" in origin
    assert "perhaps: 1 request $.messages[1].content has a hundredth of it" in origin
    shown = told(ask(folder, "show", "refund", 2))
    assert "client left after 1.0 s; 200 came at " in shown
    assert '"status": "succeeded"' in shown


def test_a_history_over_all_runs(store: Path) -> None:
    """Who changed which field, and which write was made on a stale read."""
    lines = told(ask(store, "history", HISTORY["url"])).splitlines()
    assert lines[:2] == [HISTORY["url"], "3 runs, 3 reads, 3 writes"]
    assert sum(" changed by orders-" in line for line in lines) == 3  # one tells of a stale read
    assert "written on a stale read" in lines
    assert "    lost: $.status" in lines
    page = json.loads(told(ask(store, "history", HISTORY["url"], "--json")))
    assert [one["run"] for one in page["changes"]] == ["orders-0", "orders-1", "orders-2"]
    only = json.loads(told(ask(store, "history", HISTORY["url"], "orders-0", "--json")))
    assert (only["runs"], len(only["changes"])) == (["orders-0"], 1)


def test_a_history_reads_archived_runs_where_they_are(store: Path, tmp_path: Path) -> None:
    """The same as before they were archived, and they stay in the archive; blame and cache restore theirs."""
    pytest.importorskip("pyarrow")
    folder, config = tmp_path / "store", tmp_path / "playhead.yaml"
    config.write_text(
        f"store: {folder}\nretention: {{hot: 0s, archive: {tmp_path}/attic, keep: 30d}}\n"
    )

    async def write(opened: Store) -> None:
        for number, exchanges in enumerate(map(make_exchanges, HISTORY["runs"])):
            info = await opened.runs.create(f"orders-{number}", mode="record", at_ns=1)
            for exchange in exchanges:
                opened.events.append(info.number, make_intent(exchange))
                await opened.exchanges.save(info.number, partial(make_record, exchange))
            await opened.runs.seal(info, reason="enough", at_ns=9)

    write_store(folder, write)
    before = told(ask(folder, "history", HISTORY["url"]))
    names = [f"orders-{number}" for number in range(3)]
    moved = ask(folder, "archive", *names, "-c", str(config))
    assert moved.exception is None, moved.exception
    assert told(ask(folder, "history", HISTORY["url"])) == before
    with Store.open(folder, readonly=True) as opened:
        assert all(info.is_only_in_archive for info in opened.runs.all())
    assert "orders-1" in told(ask(folder, "cache", "orders-1"))
    assert "nothing before 1 has it" in told(ask(folder, "blame", "orders-2", 1, "url"))
