"""Find the elements of the list of messages in a request's body, without reading again what an earlier request had.

Each request of a conversation repeats it whole, so a run of 1,000 calls has hundreds of megabytes of which all but a few are
repetitions. A body is split against an earlier one: bytes that are the same are compared, and only what is new is parsed.

1. Splitting finds places; the values are those of `find_json`, with its bounds.
2. A body that is no JSON object with such a list is None: whoever asks reads it whole.
"""

import json
from dataclasses import dataclass

import msgspec

from ...tape.dialects.common.untrusted_json import MAX_JSON, Json, JsonObject, as_object, find_json

LISTS = frozenset(("messages", "input", "contents"))
PROMPTS = ("system", "instructions", "systemInstruction", "system_instruction")
"""Members that the system prompt is in."""
_MARK = 20
"""Bytes from which on a mark says something."""
_BLANK = " \t\n\r"
_scan = json.JSONDecoder().raw_decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclass(slots=True)
class Split:
    """A body, and where in it the elements are."""

    body: bytes
    key: str
    """Name of the list."""
    start: int
    """Behind its bracket."""
    places: list[tuple[int, int]]
    """Begin and end of each element, counted from `start`."""
    head: JsonObject
    """What comes before the list."""
    tail: JsonObject
    """What comes behind it."""
    end: int
    """Of the list: its closing bracket."""
    same: int = 0
    """How many elements, from the first, are those of the earlier body."""

    def element(self, number: int) -> Json:
        """Read an element."""
        return find_json(self.slice(number))

    def slice(self, number: int) -> bytes:
        """Give the bytes of an element."""
        begin, end = self.places[number]
        return self.body[self.start + begin : self.start + end]


def split_body(body: bytes, before: Split | None = None) -> Split | None:
    """Split a body; None where it has no list of messages.

    before: an earlier body that it may repeat.
    """
    if not body.startswith(b"{") or len(body) > MAX_JSON:
        return None
    try:
        if before is None:
            return _split_whole(body)
        # Places in it are those of the bytes, whatever the text is in.
        return _split(body, body.decode("latin-1"), before)
    except (ValueError, IndexError, StopIteration, RecursionError, msgspec.MsgspecError):
        return None


def _split_whole(body: bytes) -> Split | None:
    """Split a body that is not compared: its values are skipped, which is faster than to read them."""
    members = _members(body)
    key = next(
        (name for name in members if name in LISTS and bytes(members[name])[:1] == b"["), None
    )
    if key is None:
        return None
    listed = bytes(members[key])
    begin, start = _find_member(body, key, listed)
    places, at = list[tuple[int, int]](), 1
    for element in _elements(listed):
        while listed[at] in b" \t\r\n,":
            at += 1
        places.append((at - 1, at - 1 + len(element)))
        at += len(element)
    head = as_object(find_json(body[:begin].rstrip().removesuffix(b",") + b"}"))
    end = start + len(listed) - 2
    return Split(body, key, start, places, head, _read_tail(body, end, None), end)


def find_marks(split: Split) -> list[bytes]:
    """Give bytes that another request of the same conversation, or of the same agent, most likely has, too."""
    try:
        members = _members(split.body)
    except msgspec.MsgspecError:
        return []
    marks = [bytes(members[name]) for name in PROMPTS if name in members]
    marks += [split.slice(0)] if split.places else []
    return [mark for mark in marks if len(mark) >= _MARK]


def _find_member(body: bytes, key: str, value: bytes) -> tuple[int, int]:
    """Find where a member of an object begins, and the place behind the bracket of its list."""
    name, at = f'"{key}"'.encode(), 0
    while True:
        at = body.index(value, at)
        begin = body.rfind(name, 0, at)
        if begin >= 0 and body[begin + len(name) : at].strip() == b":":
            return begin, at + 1
        at += 1


def _split(body: bytes, text: str, before: Split | None) -> Split | None:
    if before is not None and body.startswith(before.body[: before.start]):
        key, start, head = before.key, before.start, before.head
    else:
        found = _find_list(text)
        if found is None:
            return None
        key, begin, start = found
        head = as_object(find_json(body[:begin].rstrip().removesuffix(b",") + b"}"))
        if before is not None and before.key != key:
            before = None
    same = _count_same(body, start, before)
    places = before.places[:same] if before is not None else []
    at = start + places[-1][1] if places else start
    end = _scan_rest(text, at, start, places)
    tail = _read_tail(body, end, before)
    return Split(body, key, start, places, head, tail, end, same)


def _find_list(text: str) -> tuple[str, int, int] | None:
    """Find the list: its name, where its name begins, and the place behind its bracket."""
    at = _skip(text, 1)
    while text[at] == '"':
        begin = at
        key, at = _scan(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            return None
        at = _skip(text, at + 1)
        if key in LISTS and text[at] == "[":
            return key, begin, at + 1
        _, at = _scan(text, at)
        at = _skip(text, at)
        if text[at] != ",":
            return None
        at = _skip(text, at + 1)
    return None


def _count_same(body: bytes, start: int, before: Split | None) -> int:
    """Count the elements that are those of an earlier body, byte by byte."""
    if before is None:
        return 0
    held = before.body

    def same(count: int) -> bool:
        if not count:
            return True
        end = before.places[count - 1][1]
        return body.startswith(held[before.start : before.start + end], start)

    # The newest may have changed, as where a cache marker moves; most have not.
    high, step = len(before.places), 1
    while high and not same(high):
        high, missed, step = max(0, high - step), high, step * 2
        if same(high):
            while missed - high > 1:
                middle = (high + missed) // 2
                high, missed = (middle, missed) if same(middle) else (high, middle)
            break
    while high and body[start + before.places[high - 1][1]] not in b",] \t\r\n":
        high -= 1
    return high


def _scan_rest(text: str, at: int, start: int, places: list[tuple[int, int]]) -> int:
    """Note the elements from a place on; give the place of the closing bracket."""
    at = _skip(text, at)
    first = not places
    while text[at] != "]":
        if not first:
            if text[at] != ",":
                raise ValueError("no list")
            at = _skip(text, at + 1)
        first = False
        _, end = _scan(text, at)
        places.append((at - start, end - start))
        at = _skip(text, end)
    return at


def _read_tail(body: bytes, end: int, before: Split | None) -> JsonObject:
    if before is not None and body[end:] == before.body[before.end :]:
        return before.tail
    return as_object(find_json(b"{" + body[end + 1 :].lstrip().removeprefix(b",")))


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at
