"""Find runs by what was said in them, or by a trace."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tape.exchange import Exchange, RequestClass
from playhead.tape.headers.trace_context import parse_trace
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import (
    Tape,
    call,
    chat,
    chat_answer,
    claude_code,
    parallel_calls,
    said,
)
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.replays import write_recording, write_replay
from playhead.timeline.fleet.find_runs import Found, grep_runs, trace_runs

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
FIELD = (b"traceparent", f"00-{TRACE}-00f067aa0ba902b7-01".encode())


def traced() -> list[Exchange]:
    """A run whose second and fourth requests are of a trace."""
    return [
        replace(one, request=replace(one.request, headers=(*one.request.headers, FIELD)))
        if one.seq in (2, 4)
        else one
        for one in parallel_calls().exchanges
    ]


def told(found: list[Found]) -> list[tuple[str, tuple[int, ...]]]:
    """Give what was found in words."""
    return [(one.run.id, one.seqs) for one in found]


async def test_runs_are_found_by_what_was_said(tmp_path: Path) -> None:
    """Decoded, as a person reads it: a tool call that came in pieces is found whole; a replay has what it was served."""
    with Store.open(tmp_path / "store") as store:
        tape = await write_recording(store, "code", claude_code().exchanges)
        await write_recording(store, "weather", parallel_calls().exchanges)
        await write_replay(store, tape, claude_code().exchanges[:4])
        runs = store.runs.all()
        found = list(
            grep_runs(store, runs, re.compile(r"curl -s https://shop", re.I), lambda *_: None)
        )
        assert told(found) == [("code", (3,)), ("code@1", (3,))]
        assert "curl -s https://shop.test/orders/7" in found[0].excerpt
        assert not list(grep_runs(store, runs, re.compile("nowhere"), lambda *_: None))


async def test_runs_are_found_by_what_services_were_sent_and_answered(tmp_path: Path) -> None:
    """The bodies of requests count, unpacked, and what a model was newly asked."""
    tape = Tape("shop")
    packed = gzip.compress(b'{"city": "Koeln-am-Rhein"}')
    tape.model(chat([said("user", "Where does Lindqvist live?")]), chat_answer("I look."))
    tape.get("https://shop.test/a")
    tape.exchanges[-1] = replace(
        tape.exchanges[-1], response=make_response(packed, headers={"content-encoding": "gzip"})
    )
    tape.post("https://shop.test/b", {"note": "to be delivered"}, {"number": "DE-55-77"})
    with Store.open(tmp_path / "store") as store:
        await write_recording(store, "shop", tape.exchanges)
        for text, seq in (("lindqvist", 1), ("rhein", 2), ("delivered", 3), ("de-55", 3)):
            found = grep_runs(store, store.runs.all(), re.compile(text, re.I), lambda *_: None)
            assert [one.seqs for one in found] == [(seq,)], text


_FORM = {"content-type": "application/x-www-form-urlencoded"}
_LATIN = {"content-type": "text/plain; charset=ISO-8859-1"}


@pytest.mark.parametrize(
    ("url", "fields", "sent", "text"),
    [
        ("/", {}, json.dumps({"name": "Jürgen Groß"}).encode(), "jürgen groß"),
        ("/", {}, json.dumps({"a": json.dumps({"name": "Jürgen"})}).encode(), "jürgen"),
        ("/", {}, b'{"at": "https:\\/\\/a.test\\/x"}', "https://a.test/x"),
        ("/", {}, json.dumps({"said": "\U0001f600 ok"}).encode(), "\U0001f600 ok"),
        ("/", {}, b'{"name": "J\\u00fcrg', "jürg"),  # cut
        ("/", {}, rb'{"name": "\ud83d B"}', "\ufffd b"),  # half a character
        ("/", _FORM, b"name=Anna+Lee%21&amount=1", "anna lee!"),
        ("/", _FORM, b"payload=%7B%22name%22%3A%22J%5Cu00fcrgen%22%7D", '"name":"jürgen"'),
        ("/find?name=J%C3%BCrgen+B", {}, b"", "jürgen b"),
        ("/people/J%C3%BCrgen%20B", {}, b"", "jürgen b"),
        ("/", {"content-type": "application/xml"}, b"<n>J&#252;rgen &amp; B</n>", "jürgen & b"),
        ("/", _LATIN, "Jürgen".encode("latin-1"), "jürgen"),
        ("/", {"content-type": "text/plain; charset=what"}, "Jürgen".encode(), "jürgen"),
        ("/", {}, b'{"name": "Tom &amp; J&#252;rgen"}', "tom & jürgen"),
        ("/", {}, b'{"next": "https://a.test/?q=J%C3%BCrgen%20B"}', "jürgen b"),
        # As it was sent, it is found still.
        ("/?a=1&copy=2", {}, b"", "&copy=2"),
        ("/", {}, b'{"name": "Tom &amp; J"}', "tom &amp; j"),
        ("/", {}, json.dumps({"name": "Jürgen"}).encode(), r"j\\u00fcrgen"),
        ("/find?name=J%C3%BCrgen", {}, b"", "j%c3%bcrgen"),
    ],
)
async def test_runs_are_found_by_what_a_person_reads(
    tmp_path: Path, url: str, fields: dict[str, str], sent: bytes, text: str
) -> None:
    """However a program writes a name or a blank in JSON, in a form, in a URL or in markup."""
    tape = Tape("shop")
    asked = make_request(f"https://shop.test{url}", sent, fields)
    tape.add(asked, make_response({"ok": True}), RequestClass.EFFECT)
    with Store.open(tmp_path / "store") as store:
        await write_recording(store, "shop", tape.exchanges)
        (found,) = grep_runs(store, store.runs.all(), re.compile(text, re.I), lambda *_: None)
    assert found.seqs == (1,)


@pytest.mark.parametrize(
    "text", ['hello "quoted" wörld', r"C:\tmp\x", "Tom & Jürgen", r"\"quoted\"", r"C:\\tmp"]
)
async def test_what_a_model_calls_and_is_told_is_found_without_escapes(
    tmp_path: Path, text: str
) -> None:
    """Arguments and results of tools are JSON; as they were sent, they are found still."""
    given = {"note": 'hello "quoted" wörld', "path": r"C:\tmp\x", "who": "Tom &amp; Jürgen"}
    told = json.dumps(given, ensure_ascii=False)
    result = {"role": "tool", "tool_call_id": "call_1", "content": told}
    tape = Tape("shop")
    asks = call("call_1", "note", **given)
    asked = said("user", "Go.")
    tape.model(chat([asked]), chat_answer(None, asks))
    tape.model(
        chat([asked, {"role": "assistant", "tool_calls": [asks]}, result]), chat_answer("Ok.")
    )
    tape.model(chat([said("user", told)]), chat_answer("Ok."))
    with Store.open(tmp_path / "store") as store:
        await write_recording(store, "shop", tape.exchanges)
        (found,) = grep_runs(store, store.runs.all(), re.compile(re.escape(text)), lambda *_: None)
    assert found.seqs == (1, 2, 3)


async def test_runs_are_found_by_a_trace_of_their_requests(tmp_path: Path) -> None:
    """Those whose log tells of it by that alone; where none does the requests are read."""
    with Store.open(tmp_path / "store") as store:
        await write_recording(store, "other", claude_code().exchanges)
        await write_recording(store, "old", traced())
        runs = store.runs.all()
        assert told(trace_runs(store, runs, TRACE, lambda *_: None)) == [("old", (2, 4))]
        assert told(trace_runs(store, runs, TRACE[16:], lambda *_: None)) == [("old", (2, 4))]
        assert trace_runs(store, runs, "0" * 32, lambda *_: None) == []
        new = await store.runs.create("new", mode="record", at_ns=1)
        data = {
            **dict.fromkeys(("method", "url", "request_class"), "effect"),
            "seq": 7,
            "fingerprint": b"",
            "traces": (TRACE,),
        }
        store.events.append(new.number, Event(EventKind.INTENT, 1, data))
        await store.runs.seal(new, reason="enough", at_ns=2)
        runs = store.runs.all()
        assert told(trace_runs(store, runs, TRACE, lambda *_: None)) == [("new", (7,))]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-b3-traceid", TRACE.upper()),
        ("b3", f"{TRACE.upper()}-00F067AA0BA902B7-1"),
        ("x-amzn-trace-id", f"Root=1-{TRACE[:8]}-{TRACE[8:]};Sampled=1"),
        ("x-amzn-trace-id", f"Root=1-{TRACE[:8].upper()}-{TRACE[8:].upper()}"),
    ],
)
@pytest.mark.parametrize("asked", [TRACE, TRACE.upper(), f"1-{TRACE[:8]}-{TRACE[8:]}", TRACE[16:]])
async def test_a_trace_is_found_however_its_id_is_written(
    tmp_path: Path, name: str, value: str, asked: str
) -> None:
    """In capitals, and with the hyphens of X-Ray."""
    tape = Tape("traced")
    asking = make_request("https://a.test/", b"", {name: value}, "GET")
    tape.add(asking, make_response({"ok": 1}), RequestClass.READ)
    with Store.open(tmp_path / "store") as store:
        await write_recording(store, "one", tape.exchanges)
        found = trace_runs(store, store.runs.all(), parse_trace(asked), lambda *_: None)
    assert told(found) == [("one", (1,))]
