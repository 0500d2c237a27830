"""An answer that is edited in a text box differs from the recorded one in what was edited alone: a text box has no CR."""

from functools import partial
from pathlib import Path

import pytest

from playhead.config import Config
from playhead.proxy.pages.run_again import MOST_EDITED, RunAgain, find_edits
from playhead.proxy.pages.store_reader import Library
from playhead.store import Store
from playhead.tape.edits.editable_text import as_typed
from playhead.tape.exchange import RequestClass, Response, Spilled
from playhead.tests.support.dialects import make_request as ask_model
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record, make_response
from playhead.tests.support.looking_back import write_store
from playhead.web.render import render

_TABLE = b"to;amount\r\nalice;1\r\n"
_JSON = b'{"amount":49.00,"to":"alice"}'
_PRETTY = b'{\r\n    "id": "re_1",\r\n    "amount": 4900.00,\r\n\t"status" : "ok"\r\n}\r\n'
_SHOWN = '{\n  "id": "re_1",\n  "amount": 4900.00,\n  "status": "ok"\n}\n'
_ROWS = b'{"a":1}\n{"a":"x"}\r\n'
_RECORDED = (
    (_TABLE, b"text/csv"),
    (_JSON, b"application/json"),
    (_PRETTY, b"application/json"),
    (_ROWS, b"application/x-ndjson"),
    (b"a\0b x\r\nc\0", b"text/plain"),
)


async def _write(store: Store) -> None:
    run = await store.runs.create("tape", mode="record", at_ns=1)
    for seq, (body, kind) in enumerate(_RECORDED, 1):
        answer = make_response(body, headers=((b"Content-Type", kind),))
        exchange = make_exchange(seq, response=answer)
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    await store.runs.seal(run, reason="it ended", at_ns=2)


@pytest.mark.parametrize(
    ("seq", "typed", "sent"),
    [
        (1, as_typed(_TABLE.decode()), _TABLE),
        (1, "to;amount\nbob;1\n", b"to;amount\r\nbob;1\r\n"),
        (1, "\ud800", b"\xed\xa0\x80"),
        (2, '{\n  "amount": 49.00,\n  "to": "alice"\n}\n', _JSON),
        (2, '{\n  "amount": 49.00,\n  "to": "bob"\n}\n', b'{"amount":49.00,"to":"bob"}'),
        (3, _SHOWN, _PRETTY),
        (3, _SHOWN.replace("ok", "no"), _PRETTY.replace(b"ok", b"no")),
        (3, _SHOWN.replace("4900.00", "1"), _PRETTY.replace(b"4900.00", b"1")),
        (4, '{"a":1}\n{"a":"yy"}\n', b'{"a":1}\n{"a":"yy"}\r\n'),
        (5, "a\ufffdb yy\nc\ufffd", b"a\0b yy\r\nc\0"),
        (3, _SHOWN.replace('  "st', '  "x": 1,\n  "st'), _PRETTY.replace(b'\t"st', b'  "x": 1,\r\n\t"st')),
    ],
)  # fmt: skip
def test_what_was_not_edited_is_as_it_was_recorded(
    tmp_path: Path, seq: int, typed: str, sent: bytes
) -> None:
    """All of it where nothing was edited; else its line ends and numbers."""
    library = Library(Config(store=write_store(tmp_path / "store", _write)))
    try:
        assert RunAgain(library, ("true",))._read("tape", seq, typed, "answer") == sent
    finally:
        library.close()


_FULL = b"x" * MOST_EDITED


@pytest.mark.parametrize(
    ("response", "found"),
    [
        (make_response(b"x" * 300_000), [("answer", 300_000, "")]),
        (make_response(_FULL[2:]), [("answer", len(_FULL) - 2, "")]),
        (make_response(_FULL), [("answer", 0, f"{len(_FULL) + 2} bytes as JSON")]),
        (make_response(b"\xff"), [("answer", 0, "no text in UTF-8")]),
        (make_response(spilled=Spilled(b"d" * 32, 9_000_000, b"m")), [("answer", 0, "9000000 bytes")]),
        (None, [("answer", 0, "no answer was recorded")]),
    ],
)  # fmt: skip
def test_what_cannot_be_edited_in_a_text_box_says_why(
    response: Response | None, found: list[tuple[str, int, str]]
) -> None:
    """Up to what one body of a request can bring back."""
    told = [
        (one.what, len(one.text or ""), one.why)
        for one in find_edits(make_exchange(response=response))
    ]
    assert [one[:2] for one in told] == [one[:2] for one in found]
    assert all(said in one[2] for one, (_, _, said) in zip(told, found, strict=True))


def test_half_a_surrogate_pair_is_not_edited() -> None:
    """A page would show an escape of it, and send that."""
    body = {"model": "m", "messages": [{"role": "system", "content": "a \ud800"}]}
    exchange = make_exchange(
        kind=RequestClass.INFERENCE,
        request=ask_model("https://api.openai.com/v1/chat/completions", body),
    )
    (told,) = [one for one in find_edits(exchange) if one.what == "system"]
    assert (told.text, "half a surrogate pair" in told.why) == (None, True)


def test_a_missing_region_says_why() -> None:
    """In one line, with the command."""
    text = render("part_again", again=[], not_again=["Not here: it is long."], step={"seq": 1})
    assert 'aria-label="Run again"' in text
    assert '<p class="soft">Not here: it is long.</p>' in text
    assert "<form" not in text


@pytest.mark.parametrize("can_run", [False, True])
def test_a_page_without_a_command_says_what_it_lacks(*, can_run: bool) -> None:
    """The right to run, or COMMAND; where the right is there, the page does not only read."""
    edit = {
        "what": "answer",
        "title": "Answer",
        "text": "a",
        "is_long": False,
        "command": "playhead branch",
    }
    given = {"again": [edit], "not_again": [], "step": {"seq": 1}, "run": "r", "may_run": False}
    text = render("part_again", **given, can_run=can_run)
    assert ("This page only reads" in text) is not can_run
    assert ("No COMMAND was given" in text) is can_run
