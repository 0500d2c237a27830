"""Another answer in the place of a recorded one: what it keeps, and where it cannot be read."""

import json
from typing import Any

import pytest

from playhead.tape.dialects import find_dialect, read_response
from playhead.tape.dialects.reader import read_tree
from playhead.tape.edits.edit_answer import edit_answer, read_plain_answer, read_recorded_answer
from playhead.tape.edits.split_answer_into_stream import FORMATS, stream_again
from playhead.tape.exchange import Exchange, RequestClass, Response
from playhead.tests.support.dialects import (
    load_sample,
    make_request,
    make_response,
    make_stream,
    sample_names,
)
from playhead.tests.support.exchanges import make_exchange

CHAT = "https://api.openai.com/v1/chat/completions"
MESSAGES = "https://api.anthropic.com/v1/messages"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def exchange(
    answer: Response, url: str = CHAT, kind: RequestClass = RequestClass.INFERENCE
) -> Exchange:
    return make_exchange(3, kind=kind, request=make_request(url, ASKED), response=answer)


def chat(**message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "hello", **message}
    return {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
    }


RECORDED = exchange(make_response(chat()))


@pytest.mark.parametrize("name", sample_names())
def test_what_is_edited_can_be_given_back(name: str) -> None:
    """Of every sample, unchanged."""
    request, response = load_sample(name)
    recorded = make_exchange(1, kind=RequestClass.INFERENCE, request=request, response=response)
    made = edit_answer(recorded, read_plain_answer(recorded))
    assert made.status == response.status
    assert ("content-length", str(len(made.body))) in made.headers
    assert not {"content-encoding", "transfer-encoding"} & {key.lower() for key, _ in made.headers}


@pytest.mark.parametrize("name", sample_names())
def test_a_stream_that_was_taken_apart_says_the_same(name: str) -> None:
    """Put together again it is what it was; of formats that are not taken apart it says so."""
    request, response = load_sample(name)
    dialect = find_dialect(request)
    if dialect is None or dialect.name not in FORMATS:
        with pytest.raises(ValueError, match="give the stream itself"):
            stream_again(request, read_tree(request, response))
        return
    body = stream_again(request, read_tree(request, response))
    again = make_response(body, response.status, {"content-type": "text/event-stream"})
    was, now = read_response(request, response), read_response(request, again)
    assert was is not None
    assert now is not None
    assert now.complete
    assert (now.model, now.id, now.usage) == (was.model, was.id, was.usage)
    assert [one.finish for one in now.choices] == [one.finish for one in was.choices]
    for one, other in zip(was.choices, now.choices, strict=True):
        assert (other.message.text, other.message.thinking) == (
            one.message.text,
            one.message.thinking,
        )
        calls = [(call.id, call.name, call.arguments) for call in other.message.tool_calls]
        assert calls == [(call.id, call.name, call.arguments) for call in one.message.tool_calls]


def test_json_is_streamed_where_the_recorded_answer_was() -> None:
    """The client asked for events, and gets them."""
    piece = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}],
    }
    recorded = exchange(make_stream(piece, done=True))
    edited = json.loads(read_plain_answer(recorded))
    edited["choices"][0]["message"]["content"] = "bye"
    made = edit_answer(recorded, json.dumps(edited).encode())
    assert made.body.startswith(b"data: {")
    assert made.body.endswith(b"data: [DONE]\n\n")
    again = read_response(recorded.request, make_response(made.body, 200, dict(made.headers)))
    assert again is not None
    assert (again.text, again.complete) == ("bye", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "$: the answer is no JSON: line 1, column 2"),
        ("{}", "$.choices: expected an array, found nothing"),
        ('{"choices": "x"}', "$.choices: expected an array, found a string"),
        ('{"choices": [7]}', "$.choices[0]: expected an object, found an integer"),
        ('{"choices": [{"message": null}]}', "$.choices[0].message: expected an object, found null"),
        ('{"choices": [{"message": {"content": 7}}]}', "$.choices[0].message.content: expected a string, found an integer"),
        ('"hello"', "$: expected an object, found a string"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_is_refused_with_its_place(text: str, says: str) -> None:
    """Before anything runs."""
    with pytest.raises(ValueError) as told:  # noqa: PT011  # its text is what is looked at
        edit_answer(RECORDED, text.encode())
    assert str(told.value).startswith(says)


@pytest.mark.parametrize(
    "change",
    [
        {"content": "bye"},
        {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"content": ""},
        {"refusal": "no", "content": None},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_model_may_say_is_taken(change: dict[str, Any]) -> None:
    """Less than was recorded, and other things."""
    body = json.dumps(chat(**change)).encode()
    assert edit_answer(RECORDED, body).body == body


def test_a_stream_has_to_be_whole() -> None:
    """As the recorded one was."""
    begin = {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "content": []},
    }
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": "hi"},
    }
    recorded = exchange(make_stream(begin, block, {"type": "message_stop"}, named=True), MESSAGES)
    assert recorded.response is not None
    whole = recorded.response.body
    assert edit_answer(recorded, whole).body == whole
    for text, says in (
        (whole.partition(b"event: message_stop")[0], "does not say that it is at its end"),
        (
            whole.replace(b"data: {", b"data: [", 1),
            r"$[0]: event 0 of the stream is no JSON object",
        ),
    ):
        with pytest.raises(ValueError) as told:  # noqa: PT011
            edit_answer(recorded, text)
        assert says in str(told.value)


def test_other_answers_may_be_anything_that_fits_their_kind() -> None:
    """JSON stays JSON; a text may be any."""
    order = exchange(make_response({"a": 1}), "https://shop.test/orders/7", RequestClass.READ)
    assert edit_answer(order, b'["b"]').body == b'["b"]'
    with pytest.raises(ValueError, match=r"\$: the answer is no JSON"):
        edit_answer(order, b"<html>")
    page = exchange(
        make_response(b"<html>", headers={"content-type": "text/html"}), kind=RequestClass.READ
    )
    assert edit_answer(page, b"{").body == b"{"


@pytest.mark.parametrize("name", sample_names())
def test_an_answer_that_was_not_edited_is_what_was_recorded(name: str) -> None:
    """Byte for byte, whatever a person was shown of it."""
    request, response = load_sample(name)
    recorded = make_exchange(1, kind=RequestClass.INFERENCE, request=request, response=response)
    body = read_recorded_answer(recorded)
    assert edit_answer(recorded, body).body == body
    if not response.header(b"content-encoding"):
        assert body == response.body


def test_numbers_of_an_answer_are_shown_as_they_are_written() -> None:
    """And members that come twice: what is not edited stays."""
    body = b'{"amount":49.00,"to":"a","to":"b"}'
    recorded = make_exchange(
        response=make_response(body, 200, {"content-type": "application/json"})
    )
    shown = read_plain_answer(recorded).decode()
    assert shown == '{\n  "amount": 49.00,\n  "to": "a",\n  "to": "b"\n}\n'


_ARGUMENTS = '{"charge":"ch_1", "amount": 4900.00}'


def _call_in_a_stream() -> Exchange:
    started = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
    tool = {"type": "tool_use", "id": "t", "name": "refund", "input": {}}
    begun = {"type": "content_block_start", "index": 0, "content_block": tool}
    delta = {"type": "input_json_delta", "partial_json": _ARGUMENTS}
    said = {"type": "content_block_delta", "index": 0, "delta": delta}
    why = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    pieces = (started, begun, said, {"type": "content_block_stop", "index": 0}, why)
    return exchange(make_stream(*pieces, {"type": "message_stop"}), MESSAGES)


@pytest.mark.parametrize(
    ("change", "arguments"),
    [
        ({}, _ARGUMENTS),
        ({"name": "pay"}, _ARGUMENTS),
        ({"input as text": '{"charge": "ch_2"}'}, '{"charge": "ch_2"}'),
        ({"input": {"amount": 1}}, '{"amount":1}'),
        ({"input": {"charge": "ch_1", "amount": 4900}}, '{"charge":"ch_1","amount":4900}'),
        ({"input": {"a": 1}, "input as text": '{"a": 1}'}, '{"a": 1}'),
    ],
)
def test_arguments_that_were_not_edited_stay_as_they_were_written(
    change: dict[str, Any], arguments: str
) -> None:
    """They come as text, and are shown as a value, too: the one that was edited counts."""
    recorded = _call_in_a_stream()
    edited = json.loads(read_plain_answer(recorded))
    edited["content"][0] |= change
    made = edit_answer(recorded, json.dumps(edited).encode())
    assert json.dumps(arguments).encode() in made.body


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input": {"amount": 1}, "input as text": '{"amount": 2}'}, r"\$\.content\[0\]: `input`"),
        ({"input as text": '{"amount": '}, r"\$\.content\[0\].*the arguments are no JSON"),
    ],
)
def test_arguments_that_are_edited_twice_have_to_agree(change: dict[str, Any], says: str) -> None:
    """Nobody knows which is meant."""
    recorded = _call_in_a_stream()
    edited = json.loads(read_plain_answer(recorded))
    edited["content"][0] |= change
    with pytest.raises(ValueError, match=says):
        edit_answer(recorded, json.dumps(edited).encode())
