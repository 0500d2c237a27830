"""What a run is billed for that its exchanges do not show."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from playhead.store import RunStatus
from playhead.tape.exchange import RequestClass, Seq, Spilled, VerdictKind
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import Tape, chat, chat_answer, said
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.cost.ledger import NOT_STATED, Entry, may_lack_calls, read_ledger
from playhead.timeline.cost.render import bill_json, render_bill, show_money
from playhead.timeline.cost.sums import Bill
from playhead.timeline.reading.request_fate import Fate
from playhead.timeline.state.calls_before import NO_OUTCOME
from playhead.timeline.steps import StepKind, Tracer


class _Crashed(InMemory):
    """A run with a log."""

    log: tuple[Event, ...] = ()

    def events(self) -> Iterator[Event]:
        """Give its events."""
        return iter(self.log)


def _event(seq: int, of: RequestClass, kind: EventKind = EventKind.INTENT) -> Event:
    data = {
        "seq": seq,
        "method": "POST",
        "url": "https://api.openai.com/v1/x",
        "request_class": of.value,
    }
    return Event(kind, seq, data)


def test_a_request_without_an_outcome_may_be_billed() -> None:
    """It was let go before the proxy died: a call of it costs what is known at least, and a refused one nothing."""
    tape = Tape("run")
    tape.model(chat([said("user", "one")]), chat_answer("one"))
    run = _Crashed(tape.exchanges)
    run.log = (
        _event(1, RequestClass.INFERENCE),
        _event(2, RequestClass.INFERENCE),
        _event(3, RequestClass.EFFECT),
        _event(4, RequestClass.INFERENCE),
        _event(4, RequestClass.INFERENCE, EventKind.VERDICT),
    )
    for lanes in (True, False):
        found = list(read_ledger(run, lanes=lanes))
        assert [(one.seq, one.fate) for one in found] == [
            (1, Fate.SENT),
            (2, Fate.SENT),
            (3, Fate.SENT),
        ]
        assert found[1] == Entry(Seq(2), 0, 2, Fate.SENT, NO_OUTCOME, at_least=True)
        assert not found[2].is_call


RECOVERED, SEALED = RunStatus.RECOVERED, RunStatus.SEALED
LIVE = {"live": [["inference", "api.openai.com", "a test"]], "routes": []}


@pytest.mark.parametrize(
    ("status", "mode", "noted", "lacks"),
    [
        (RECOVERED, "record", {}, True),
        (SEALED, "record", {}, False),
        (RECOVERED, "playback", {}, False),
        (RECOVERED, "playback", {"branch": LIVE}, True),
        (RECOVERED, "playback", {"branch": {"live": [], "routes": []}}, False),
        (RECOVERED, "playback", {"resume": {"of": "r"}}, True),
        (RECOVERED, "playback", {"rules": {"live": [["* *://a", None]]}}, True),
    ],
)
def test_a_run_that_was_cut_has_spent_at_least_what_it_has(
    status: RunStatus, mode: str, noted: dict[str, Any], *, lacks: bool
) -> None:
    """A model call that was sent just before may have left no trace; a replay that sends nothing lacks none."""
    run = _Crashed(())
    run.info = replace(run.info, status=status, mode=mode)
    run.log = (Event(EventKind.NOTED, 0, noted),)
    assert may_lack_calls(run) is lacks
    bill = Bill("run")
    bill.add("run", read_ledger(run), is_cut=may_lack_calls(run))
    assert show_money(bill.spent) == ("≥ 0.00" if lacks else "0.00")
    said = list(render_bill(bill))
    assert ("1 run cut by a crash, so that last calls may be missing" in said) is lacks
    assert [row["cut_runs"] for row in bill_json(bill)["rows"]] == [1] * lacks


OPENAI = "https://api.openai.com/v1"
TOKENS = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
MODERATION = {"model": "omni-moderation-latest", "input": "x"}


def _stream(*events: object) -> bytes:
    return "".join(f"data: {json.dumps(one)}\n\n" for one in events).encode()


@pytest.mark.parametrize(
    ("url", "sent", "answer", "model", "tokens"),
    [
        (f"{OPENAI}/responses/compact", {"model": "gpt-4o", "input": []}, {"object": "response.compaction", "output": [], "usage": TOKENS}, "gpt-4o", (100, 7)),
        (f"{OPENAI}/images/generations", {"model": "gpt-image-1"}, {"data": [], "usage": TOKENS}, "gpt-image-1", (100, 7)),
        (f"{OPENAI}/images/generations", {"model": "gpt-image-1"}, _stream({"type": "image_generation.completed", "usage": TOKENS}), "gpt-image-1", (100, 7)),
        (f"{OPENAI}/audio/transcriptions", b"--b\r\n", {"text": "hi", "usage": TOKENS}, NOT_STATED, (100, 7)),
        (f"{OPENAI}/audio/transcriptions", b"--b\r\n", {"text": "hi", "usage": {"type": "duration", "seconds": 9}}, NOT_STATED, None),
        (f"{OPENAI}/audio/speech", {"model": "tts-1", "input": "hi"}, b"\xff\xfb\x90", "tts-1", None),
        (f"{OPENAI}/images/generations", {"model": "dall-e-3"}, {"data": []}, "dall-e-3", None),
        ("https://api.voyageai.com/v1/embeddings", {"model": "voyage-3", "input": "x"}, {"data": [], "model": "voyage-3", "usage": {"total_tokens": 5}}, "voyage-3", (5, 0)),
        ("https://api.cohere.com/v2/rerank", {"model": "rerank-3"}, {"results": [], "meta": {"billed_units": {"search_units": 1}}}, "rerank-3", None),
        ("https://api.cohere.com/v2/embed", {"model": "embed-4"}, {"embeddings": {}, "meta": {"billed_units": {"input_tokens": 5}}}, "embed-4", (5, 0)),
        ("https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent", {"content": {}}, {"embedding": {}}, "gemini-embedding-001", None),
        ("http://localhost:11434/api/embed", {"model": "nomic", "input": "x"}, {"model": "nomic", "embeddings": [], "prompt_eval_count": 8}, "nomic", (8, 0)),
        # Free
        (f"{OPENAI}/moderations", MODERATION, {"results": []}, "", None),
        (f"{OPENAI}/responses/input_tokens", {"model": "gpt-4o", "input": "x"}, {"input_tokens": 9}, "", None),
        ("https://api.anthropic.com/v1/messages/count_tokens", {"model": "claude"}, {"input_tokens": 9}, "", None),
    ],
)  # fmt: skip
def test_what_asks_a_model_is_a_call_whoever_can_read_it(
    url: str, sent: object, answer: object, model: str, tokens: tuple[int, int] | None
) -> None:
    """Its tokens are those that its answer states; where it states none, it cost something all the same."""
    tape = Tape("run")
    tape.model(make_request(url, sent), make_response(answer))
    for lanes in (True, False):
        (entry,) = read_ledger(InMemory(tape.exchanges), lanes=lanes)
        assert (entry.fate, entry.model) == (Fate.SENT, model)
        assert (entry.tokens.input, entry.tokens.output) == (tokens or (0, 0))
        assert entry.at_least == (bool(model) and tokens is None)


def test_a_call_whose_body_is_a_file_is_a_call() -> None:
    """Its bodies are not read, and it was billed."""
    tape = Tape("run")
    tape.model(chat([said("user", "one")]), chat_answer("one"))
    (exchange,) = tape.exchanges
    file = Spilled(bytes(32), 9 << 20, bytes(32))
    request = replace(exchange.request, body=b"", spilled=file)
    assert exchange.response is not None
    response = replace(exchange.response, body=b"", spilled=file)
    (entry,) = read_ledger(InMemory([replace(exchange, request=request, response=response)]))
    assert (entry.model, entry.at_least) == (NOT_STATED, True)
    (entry,) = read_ledger(InMemory([replace(exchange, request=request)]))
    (whole,) = read_ledger(InMemory([exchange]))
    assert (entry.model, entry.tokens, entry.usd) == (whole.model, whole.tokens, None)


def _chat_says(usage: object, **beside: object) -> dict[str, object]:
    choice = {"index": 0, "message": said("assistant", "one"), "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage, **beside}  # fmt: skip


def _gemini_says(usage: object) -> dict[str, object]:
    content = {"role": "model", "parts": [{"text": "one"}]}
    return {"candidates": [{"content": content}], "modelVersion": "gemini-2.5-flash", "usageMetadata": usage}  # fmt: skip


def _claude_says(**usage: object) -> dict[str, object]:
    whole = {"input_tokens": 10, "output_tokens": 2, **usage}
    content = [{"type": "text", "text": "one"}]
    return {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": content, "usage": whole}  # fmt: skip


CHAT = (f"{OPENAI}/chat/completions", {"model": "gpt-4o", "messages": []})
EMBED = (f"{OPENAI}/embeddings", {"model": "text-embedding-3-small", "input": "x"})
GEMINI: tuple[str, dict[str, Any]] = (
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
    {"contents": []},
)
CLAUDE = ("https://api.anthropic.com/v1/messages", {"model": "claude-opus-4-6", "messages": [], "max_tokens": 9})  # fmt: skip
BOTH = {"prompt_tokens": 10, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("asked", "answer", "at_least"),
    [
        (CHAT, _chat_says(BOTH), False),
        (CHAT, _chat_says({**BOTH, "total_tokens": 12}), False),
        (CHAT, _chat_says({"completion_tokens": 7}), True),
        (CHAT, _chat_says({"prompt_tokens": 7}), True),
        (CHAT, _chat_says({"total_tokens": 70}), True),
        (CHAT, _chat_says({"prompt_tokens": -5, "completion_tokens": 2}), True),
        (CHAT, _chat_says({**BOTH, "completion_tokens": 2.5}), True),
        (CHAT, _chat_says({**BOTH, "total_tokens": 90}), True),  # thinking that is not listed
        (CHAT, _chat_says({**BOTH, "total_tokens": 15, "completion_tokens_details": {"reasoning_tokens": 3}}), False),
        (CHAT, _chat_says(BOTH, service_tier="default"), False),
        (CHAT, _chat_says(BOTH, service_tier="priority"), True),
        (EMBED, {"object": "list", "data": [], "model": "text-embedding-3-small", "usage": {"prompt_tokens": 7, "total_tokens": 7}}, False),
        # Zero is left out.
        (GEMINI, _gemini_says({"promptTokenCount": 10, "totalTokenCount": 10}), False),
        (GEMINI, _gemini_says({"promptTokenCount": 10}), True),
        (GEMINI, _gemini_says({"promptTokenCount": 10, "candidatesTokenCount": 2, "trafficType": "ON_DEMAND_PRIORITY"}), True),
        (CLAUDE, _claude_says(), False),
        (CLAUDE, _claude_says(speed="standard", inference_geo="global", service_tier="standard"), False),
        (CLAUDE, _claude_says(cache_read_input_tokens=90), False),
        (CLAUDE, _claude_says(service_tier="batch"), False),
        (CLAUDE, _claude_says(service_tier="priority"), True),
        (CLAUDE, _claude_says(speed="fast"), True),
        (CLAUDE, _claude_says(inference_geo="us"), True),
    ],
)  # fmt: skip
def test_what_is_stated_in_part_or_costs_more_is_no_exact_sum(
    asked: tuple[str, object], answer: object, at_least: bool
) -> None:
    """A figure that is missing may be any, and a fast answer costs more than the table says."""
    tape = Tape("run")
    tape.model(make_request(*asked), make_response(answer))
    (entry,) = read_ledger(InMemory(tape.exchanges), lanes=False)
    assert entry.at_least == at_least


def _pieces(*content: str | None) -> list[dict[str, object]]:
    return [
        {
            "object": "chat.completion.chunk",
            "model": "gpt-4o",
            "choices": [{"index": 0, "delta": delta}],
        }
        for one in content
        for delta in [{"role": "assistant", "content": one}]
    ]


_BROKEN = {"error": {"message": "server had an error", "type": "server_error"}}
RESPONSES = (f"{OPENAI}/responses", {"model": "gpt-5", "input": "x", "stream": True})
_DELTA = {
    "type": "response.output_text.delta",
    "output_index": 0,
    "content_index": 0,
    "delta": "part",
}
_FAILED = {"type": "response.failed", "response": {"id": "r", "object": "response", "status": "failed", "model": "gpt-5", "output": [], "error": {"code": "server_error", "message": "no"}, "usage": None}}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "pieces", "failed"),
    [
        (CHAT, [*_pieces("part", " two"), _BROKEN], False),
        (CHAT, [*_pieces(""), _BROKEN], True),
        (CHAT, [_BROKEN], True),
        (RESPONSES, [_DELTA, _FAILED], False),
        (RESPONSES, [_FAILED], True),
    ],
)
def test_a_stream_that_failed_after_a_part_of_the_answer_may_be_billed(
    asked: tuple[str, Any], pieces: list[Any], failed: bool
) -> None:
    """What had been said by then was made; an error alone costs nothing."""
    tape = Tape("run")
    kind = {"content-type": "text/event-stream"}
    tape.model(make_request(*asked), make_response(_stream(*pieces), 200, kind))
    (entry,) = read_ledger(InMemory(tape.exchanges), lanes=False)
    assert (entry.failed, entry.at_least) == (failed, not failed)
    (step,) = (one for one in Tracer().add(tape.exchanges[0]) if one.kind is StepKind.MODEL_CALL)
    assert step.at_least != failed


@pytest.mark.parametrize("status", [301, 307, 429, 500])
def test_what_was_sent_elsewhere_costs_nothing(status: int) -> None:
    """A redirect asks no model; where the client goes then is a call of its own."""
    tape = Tape("run")
    tape.model(make_request(*CHAT), make_response(b"", status))
    (entry,) = read_ledger(InMemory(tape.exchanges), lanes=False)
    assert (entry.failed, entry.at_least, entry.usd) == (True, False, Decimal(0))


def test_a_call_that_was_sent_elsewhere_costs_what_its_service_does() -> None:
    """There may be a gateway: a bill without it would say less than the cap has counted."""
    tape = Tape("run")
    tape.model(chat([said("user", "one")]), chat_answer("one"))
    bills = []
    for verdict in (VerdictKind.LIVE, VerdictKind.SANDBOXED):
        run = _Crashed([replace(one, verdict=verdict) for one in tape.exchanges])
        bill = Bill("model")
        bill.add("run", read_ledger(run))
        bills.append(bill)
    assert bills[0] == bills[1]
    assert (bills[1].sent, bills[1].spent.requests) == (1, 1)
