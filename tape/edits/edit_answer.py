"""Another answer in the place of a recorded one: its body from a person, its head from the recording.

The body of a stream may be given as the one JSON value that it comes to: then it is taken apart again (`split_answer_into_stream.py`).
"""

import json
from collections.abc import Iterator
from contextlib import suppress

from ...config import Answer
from ..contracts.check import show_path
from ..dialects import InferenceResponse, Other, ToolCall, find_dialect, read_response
from ..dialects.common.untrusted_json import Json, find_json
from ..dialects.framing.split_stream import Framing, find_framing, read_pieces
from ..dialects.reader import read_tree
from ..exchange import Exchange, HttpRequest, HttpResponse, RequestClass
from ..policy.branch import HYPOTHETICAL
from ..records.content_coding import read_codings, undo_coding
from ..stubs.synthesize import UNTRUE
from .editable_text import as_typed, indent_json, restore_layout, restore_lines
from .find_json_error import find_text, find_unreadable, parse_json
from .split_answer_into_stream import settle_arguments, stream_again

MAX_BYTES = 8 << 20
"""Of an answer that is given."""
_CODING = b"content-encoding"
_JSON = (("content-type", "application/json"),)
_NOTHING = -1


def read_plain_answer(recorded: Exchange) -> bytes:
    """Give what is edited of a recorded answer: its JSON, indented; of a stream the JSON that it comes to; else its body."""
    response = recorded.response
    if response is None:
        return b""
    tree = read_tree(recorded.request, response)
    if tree is None or (_is_stream(response) and not _can_stream(recorded.request)):
        return _plain(response)
    if _is_stream(response):
        text = json.dumps(tree, indent=2, ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass") + b"\n"
    try:
        return indent_json(_plain(response).decode()).encode() + b"\n"
    except UnicodeDecodeError:
        return _plain(response)


def read_recorded_answer(recorded: Exchange) -> bytes:
    """Give the body of a recorded answer as it was answered, without its content coding: what an answer is of which nothing was edited."""
    return _plain(recorded.response) if recorded.response is not None else b""


def restore_answer(recorded: Exchange, edited: str) -> bytes:
    """Give the body that an edited text says: what was not edited is as it was recorded, with its line ends and white space.

    edited: what `read_plain_answer` gave, as a text box had it in the end.
    Raises: ValueError, where what is recorded is no text.
    """
    shown, body = read_plain_answer(recorded).decode("utf-8"), read_recorded_answer(recorded)
    if as_typed(shown) == as_typed(edited):
        return body
    data = edited.encode("utf-8", "surrogatepass")
    with suppress(UnicodeDecodeError):
        plain = body.decode("utf-8")
        if shown != plain and find_json(body) is not None and find_json(data) is not None:
            return restore_layout(plain, shown, edited).encode("utf-8", "surrogatepass")
    return restore_lines(shown, edited).encode("utf-8", "surrogatepass")


def make_answer(body: bytes) -> Answer:
    """Give an answer with this body to a request that is not on the tape."""
    return _answer(200, _JSON if find_json(body) is not None else (), body)


def edit_answer(recorded: Exchange, body: bytes) -> Answer:
    """Give the answer with this body in the place of the one that was recorded.

    Raises: ValueError, whose text begins with the JSON path at which it cannot be read.
    """
    if len(body) > MAX_BYTES:
        raise ValueError(f"$: the answer has {len(body)} bytes; expected at most {MAX_BYTES}")
    request, response = recorded.request, recorded.response
    if response is None or response.spilled is not None:
        return make_answer(body)
    if response.status in (204, 205, 304) and body.strip():
        raise ValueError(f"$: the recorded answer has status {response.status}, which has no body")
    fields = tuple(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in response.headers
        if name.lower() not in UNTRUE and name.lower() != _CODING and value.isascii()
    )
    body = _check(
        request, response, body, is_model=recorded.request_class is RequestClass.INFERENCE
    )
    return _answer(response.status, fields, body)


def _answer(status: int, fields: tuple[tuple[str, str], ...], body: bytes) -> Answer:
    length = (("content-length", str(len(body))),) if status not in (204, 304) else ()
    return Answer(status, (*fields, *length), body, HYPOTHETICAL)


def _check(request: HttpRequest, response: HttpResponse, body: bytes, *, is_model: bool) -> bytes:
    """Give the body as it is sent, once it is known that it can be read. Raises: ValueError."""
    is_stream = _is_stream(response)
    if not is_stream:
        if find_json(_plain(response)) is None:
            return body  # which was no JSON, and may be anything
        now = parse_json(body, "the answer")
        if is_model:
            _require_readable(request, response, find_json(_plain(response)), now)
        return body
    kind = response.header(b"content-type") or b""
    lines = find_framing(kind, _plain(response)) is Framing.LINES and find_json(body) is None
    if body.lstrip()[:1] == b"{" and not lines:
        now = parse_json(body, "the answer")
        was = read_tree(request, response)
        settle_arguments(was, now)
        _require_readable(request, response, was, now)
        return stream_again(request, now)
    if is_model:
        _require_stream(request, response, kind, body)
    return body


def _require_readable(request: HttpRequest, response: HttpResponse, was: Json, now: Json) -> None:
    def weigh(tree: Json) -> int:
        data = json.dumps(tree).encode("utf-8", "surrogatepass")
        return _weigh(read_response(request, _with_body(response, data, b"application/json")))

    if find_dialect(request) is None or weigh(was) <= 0:
        return  # nobody reads what was recorded, either
    found = find_unreadable(was, now, weigh)
    if found is not None:
        raise ValueError(f"{show_path(found[0])}: {found[1]}")
    data = json.dumps(now).encode("utf-8", "surrogatepass")
    answer = read_response(request, _with_body(response, data, b"application/json"))
    for call in _calls(answer):
        if call.arguments is None and call.text:
            place = show_path(find_text(now, call.text) or ())
            raise ValueError(f"{place}: the arguments of {call.name!r} are no JSON")


def _require_stream(request: HttpRequest, response: HttpResponse, kind: bytes, body: bytes) -> None:
    framing = find_framing(kind, body)
    for number, piece in enumerate(read_pieces(framing, body)):
        data = piece.data.strip()
        if data and data != b"[DONE]" and not isinstance(find_json(data), dict):
            raise ValueError(f"$[{number}]: event {number} of the stream is no JSON object")
    answer = read_response(request, _with_body(response, body, kind))
    was = read_response(request, response)
    if _weigh(was) <= 0:
        return
    if _weigh(answer) <= 0:
        raise ValueError("$: no dialect can read the stream; expected events as the recorded ones")
    if answer is not None and was is not None and was.complete and not answer.complete:
        raise ValueError(
            "$: the stream does not say that it is at its end, as the recorded one does"
        )


def _weigh(answer: InferenceResponse | None) -> int:
    """Say how much of an answer can be read: what the model said, and why it stopped."""
    if answer is None:
        return _NOTHING
    if answer.error is not None:
        return 1
    parts = sum(
        1 + (isinstance(part, ToolCall) and part.arguments is not None) - isinstance(part, Other)
        for choice in answer.choices
        for part in choice.message.parts
    )
    told = sum(choice.finish_reason is not None for choice in answer.choices)
    calls = sum(bool(call.name) for call in _calls(answer))
    return parts + calls + told + bool(parts and answer.usage)


def _calls(answer: InferenceResponse | None) -> Iterator[ToolCall]:
    for choice in answer.choices if answer is not None else ():
        yield from choice.message.tool_calls


def _is_stream(response: HttpResponse) -> bool:
    framing = find_framing(response.header(b"content-type") or b"", _plain(response))
    return framing is not Framing.WHOLE


def _can_stream(request: HttpRequest) -> bool:
    try:
        stream_again(request, {})
    except ValueError:
        return False
    return True


def _plain(response: HttpResponse) -> bytes:
    coding = read_codings(response.headers)
    plain = undo_coding(response.body, coding) if coding else None
    return response.body if plain is None else plain


def _with_body(response: HttpResponse, body: bytes, kind: bytes) -> HttpResponse:
    return HttpResponse(
        response.status, b"", "HTTP/1.1", ((b"content-type", kind),), body, response.head_us
    )
