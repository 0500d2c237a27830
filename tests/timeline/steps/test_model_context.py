"""Contexts of model calls, read against the one before: the same as when each is read whole."""

from dataclasses import replace

import pytest

from playhead.tape.dialects import read_request, read_response
from playhead.tape.exchange import RequestClass, Seq
from playhead.tests.support.agent_tapes import TAPES, Tape, anthropic, chat, said, user
from playhead.timeline.steps.model_context import Context, read_context


@pytest.mark.parametrize("tape", [make() for make in TAPES], ids=lambda tape: tape.name)
def test_every_model_call_of_the_tapes_is_read(tape: Tape) -> None:
    """A dialect reads each model call, and each belongs to a lane or stands aside."""
    for exchange in tape.exchanges:
        if exchange.request_class is not RequestClass.INFERENCE:
            continue
        asked = read_request(exchange.request)
        assert asked is not None
        if exchange.response is not None:
            assert read_response(exchange.request, exchange.response) is not None
        placed = {seq for lane in tape.lanes for seq in lane} | set(tape.asides)
        assert exchange.seq in placed or asked.dialect == "openai-embeddings"


@pytest.mark.parametrize("tape", [make() for make in TAPES], ids=lambda tape: tape.name)
def test_a_context_read_against_another_is_the_whole_one(tape: Tape) -> None:
    """What a request shares with the one before is not read again, and nothing is lost by that."""
    before: Context | None = None
    for exchange in tape.exchanges:
        if exchange.request_class is not RequestClass.INFERENCE:
            continue
        whole = read_request(exchange.request)
        found = read_context(exchange.request, exchange.seq, before)
        assert whole is not None
        assert found is not None
        messages = [message for item in found.items for message in item.messages]
        assert (found.system or None, messages) == (whole.system or None, list(whole.messages))
        before = found


def test_what_is_new_is_given_once() -> None:
    """Also a system prompt that the conversation begins with: of the first call, and where only the prompt or all is another."""
    one = read_context(chat([said("system", "a"), said("user", "b")]), Seq(1))
    assert one is not None
    assert [item.system for item in one.new()] == ["a", None]
    for messages, new in (
        ([said("system", "z"), said("user", "b"), said("user", "c")], ["z", None]),
        ([said("system", "z"), said("user", "y")], ["z", None]),
        ([said("system", "z"), said("user", "b")], ["z"]),
        ([said("system", "a"), said("user", "b"), said("user", "c")], [None]),
        ([said("system", "z")], ["z"]),
    ):
        two = read_context(chat(messages), Seq(2), one)
        assert two is not None
        assert [item.system for item in two.new()] == new


def test_a_cache_marker_that_moves_changes_no_message() -> None:
    """Providers are told anew what to cache, and nothing that was said differs."""
    marked = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    one = anthropic([{"role": "user", "content": [marked]}])
    two = anthropic([user("one"), user("two")])
    first = read_context(one, Seq(1))
    second = read_context(two, Seq(2), first)
    assert second is not None
    assert [item.since for item in second.items] == [1, 2]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[1]", b'{"messages": [', b'{"messages": [{}, ]}', b'{"messages": 1}', b"\xff"],
)
def test_a_broken_body_is_no_context(body: bytes) -> None:
    """Also where the one before was sound."""
    sound = read_context(anthropic([user("one")]), Seq(1))
    broken = replace(anthropic([user("one")]), body=body)
    for before in (None, sound):
        assert read_context(broken, Seq(2), before) is None
