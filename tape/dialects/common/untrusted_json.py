"""Untrusted JSON: parsed once, bounded, and queried without assuming its shape.

The `as_...` functions give what was looked for or nothing, whatever stands there, so that a reader needs no
guard of its own. `find_json` gives None for what is no JSON, too large or nested too deep.
"""

import json
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec
from blake3 import blake3

from ...canonical.json import MAX_DEPTH

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None
type JsonObject = dict[str, Json]

MAX_JSON = 16 * 1024 * 1024
"""Bytes of JSON beyond which it is not read."""

_HOLDERS = (dict, list)
_NUMBERS = (int, float)
_BOM = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode
_decode_lines = msgspec.json.Decoder().decode_lines
_encode = msgspec.json.Encoder(order="sorted").encode


def find_json(data: bytes) -> Json:
    """Parse JSON; None for `null` and for whatever is none, is too large or nested too deep."""
    if not data or len(data) > MAX_JSON:
        return None
    try:
        value = cast(Json, _decode(data))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        value = _find_odd_json(data)
    except RecursionError:
        return None
    flat = data.count(b"{") + data.count(b"[") <= MAX_DEPTH or _is_flat(value)
    return value if flat else None


def find_json_lines(lines: Sequence[bytes]) -> list[Json]:
    """Parse lines of JSON, each as `find_json` does with the white space around it taken off.

    Those that are objects are parsed together: nothing but white space is between them, so none can go on in the next.
    """
    stripped = [line.strip() for line in lines]
    alike = [at for at, line in enumerate(stripped) if _is_small_object(line)]
    try:
        values = cast(list[Json], _decode_lines(b"\n".join([stripped[at] for at in alike])))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        values = []
    if len(values) != len(alike):
        return [find_json(line) for line in stripped]
    known = dict(zip(alike, values, strict=True))
    return [known[at] if at in known else find_json(line) for at, line in enumerate(stripped)]


def _is_small_object(line: bytes) -> bool:
    """Say whether a line begins and ends as an object does, and is too short to be too deep."""
    small = len(line) <= MAX_DEPTH or line.count(b"{") + line.count(b"[") <= MAX_DEPTH
    return line[:1] == b"{" and line[-1:] == b"}" and small and len(line) <= MAX_JSON


def _find_odd_json(data: bytes) -> Json:
    """Parse what msgspec does not take and clients send: half a surrogate pair, `NaN`, a byte order mark."""
    try:
        return cast(Json, json.loads(data.removeprefix(_BOM).decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError):
        return None


def _is_flat(value: Json) -> bool:
    """Say whether no value is nested deeper than `MAX_DEPTH`, level by level."""
    level = [value] if isinstance(value, _HOLDERS) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, _HOLDERS)
        ]
    return not level


def stable_hash(value: Json) -> str:
    """Give 32 hexadecimal digits over a value: BLAKE3 of its JSON with sorted keys."""
    try:
        data = _encode(value)
    except (ValueError, OverflowError, msgspec.MsgspecError):
        # Half a surrogate pair, or a number beyond 64 bits.
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return blake3(data).hexdigest(16)


def show_value(value: Json) -> str:
    """Render a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False)


def as_object(value: Json) -> JsonObject:
    """Give an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Give a list, or an empty one."""
    return value if isinstance(value, list) else []


def as_objects(value: Json) -> list[JsonObject]:
    """Give the objects of a list; a single object counts as a list of one."""
    if isinstance(value, dict):
        return [value]
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_text(value: Json) -> str | None:
    """Give a string."""
    return value if isinstance(value, str) else None


def as_texts(value: Json) -> tuple[str, ...]:
    """Give the strings of a list; a single string counts as a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in as_list(value) if isinstance(item, str))


def as_number(value: Json) -> int | float | None:
    """Give a number; true and false are none."""
    return value if isinstance(value, _NUMBERS) and not isinstance(value, bool) else None


def as_count(value: Json) -> int | None:
    """Give a whole number, also where it is written `12.0`."""
    number = as_number(value)
    if isinstance(number, float):
        return int(number) if number.is_integer() else None
    return number


def as_word(value: Json) -> str | None:
    """Give a string, or a number as one."""
    number = as_number(value)
    return as_text(value) if number is None else str(number)


def first_set(values: Iterable[Json]) -> Json:
    """Give the first value that is not null."""
    return next((value for value in values if value is not None), None)
