r"""Canonical JSON: two texts that mean the same have the same canonical text.

Rules:

1. Order of keys, white space and the way a character is escaped do not matter.
2. The text of a number does (`1`, `1.0` and `1e0` differ), and so does the order of a list.
3. A key that stands twice in one object matters with all its values, in their order.
4. A masked place counts by being there, not by its value.
5. What is no JSON, is no UTF-8, or is nested too deep is not ours: ValueError or RecursionError.

The form is JSON again, keys sorted, nothing but what counts in it. Most texts take the quick way: msgspec
reads and writes them, numbers with a point or an exponent as they stand. It keeps the last of two values
of one key, and writes a negative zero as 0; both are noticed by the length, or else by counting colons and
minus signs, of which text and form must hold the same number. Then, and where an escape spoils the count or
half a surrogate pair or a `NaN` is too much for it, a slower exact reader takes over; both write the same form
for the same value. Rules 3 and 4 leave `=[...]` and `*` in the form, and `*[...]` for a string of which parts are
masked, with what is left of it, and `*#[...]` for a number; no JSON text could hold these. In the exact reader's tree numbers, and the markers
for rules 3 and 4, are strings that begin with NUL; a string of the text that does so gets a marker of its own.

What else does not count in the JSON of some protocol is said by a `Reading`: it looks at the tree that is there
already, and gives further places to mask and values to put in the place of others.

Source: RFC 8259 sections 4, 6 and 7; measurements in `canonical/canonical_request.py`.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import msgspec

JsonPath = tuple[str | int | None, ...]
"""Steps from the root: a name, an index, or None for every member."""

MASKED = "\x00*"
"""Stands where a value is masked."""
_TWICE = "\x00="
"""First item of a list that holds the values of a key that stands more than once."""
_TEXT = "\x00'"
"""Before a string that begins with NUL itself."""
_PARTS = "\x00~"
"""Before the JSON list of what is left of a string with masked parts. None of the four begins a number."""

MAX_DEPTH = 200
"""Levels that the functions written in Python go down; below, values are compared whole."""


class Swap(NamedTuple):
    """A value of a tree that is compared as another."""

    holder: Any
    """The dict or list that holds it; None for the root."""
    key: Any
    value: "str | Parts | None"
    """None leaves it out, key and all."""


class Parts(NamedTuple):
    """What is left of a string whose parts are masked: one more than were masked."""

    left: tuple[str, ...]
    is_number: bool = False
    """It was a number, of whose text parts are masked; it is no string then."""
    name: int = 0
    """Of a value that stands in several places: which of the different ones it is, from 1 on; 0 for others."""

    @property
    def sort(self) -> str:
        """What stands before the parts."""
        return ("#" if self.is_number else "") + (str(self.name) if self.name else "")


class Reduced(NamedTuple):
    """What does not count in a tree."""

    masks: Sequence[JsonPath] = ()
    swaps: Sequence[Swap] = ()


Reading = Callable[[Any, bool], Reduced]
"""Looks at a tree and says what does not count in it; the flag says whether it is the exact reader's, in which
numbers and markers are strings. It changes nothing."""

_SPOILS = re.compile(rb"\\u00(?:3[aA]|2[dD])")
"""A colon or a minus sign that is not written as one would spoil the count."""

_number = "\x00".__add__
_decode = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_number).decode


def _literal(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


_MASKED_RAW = msgspec.Raw(b"*")

_read = msgspec.json.Decoder(float_hook=_literal).decode
_write = msgspec.json.Encoder(order="sorted").encode


class _Number(str):
    """A number's text behind its NUL, told from a string that reads the same."""

    __slots__ = ()


def _exact_number(text: str) -> _Number:
    return _Number("\x00" + text)


def canonical_json(
    data: bytes, masks: Sequence[JsonPath] = (), reading: Reading | None = None
) -> bytes:
    """Give the form under which a JSON value is compared.

    Raises: ValueError where the data is no JSON, RecursionError where it is nested too deep.
    """
    form = _quick_form(data, masks, reading)
    if form is None:
        tree = json_tree(data.decode(), masks, reading)
        form = encode_tree(tree).encode("utf-8", "surrogatepass")
    return form


_Hidden = list[tuple[bytes, bytes]]
"""What was hidden, as the quick form would have written it, and what it wrote instead."""


def _quick_form(data: bytes, masks: Sequence[JsonPath], reading: Reading | None) -> bytes | None:
    """Give the form, or None where the exact reader has to look."""
    try:
        tree = _read(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None  # no JSON, or what only the exact reader takes
    hidden: _Hidden = []
    if reading is not None:
        more, swaps = reading(tree, False)
        for swap in swaps:
            tree = _swap_quick(tree, swap, hidden)
        masks = (*masks, *more)
    for path in masks:
        tree = _mask(tree, path, 0, _MASKED_RAW, hidden)
    form = _write(tree)
    return form if _is_whole(data, form, hidden) else None


def _is_whole(data: bytes, form: bytes, hidden: _Hidden) -> bool:
    """Say whether all that a text holds is in its form, or among what was hidden."""
    # No part of a form is longer than what it stands for. So where nothing became shorter, as with most
    # clients that write JSON without spaces, nothing was lost.
    if len(data) == len(form) + sum(len(gone) - len(put) for gone, put in hidden):
        return True
    if b"\\u00" in data and _SPOILS.search(data):
        return False
    return all(
        data.count(sign)
        == form.count(sign) + sum(gone.count(sign) - put.count(sign) for gone, put in hidden)
        for sign in (b":", b"-")
    )


def _swap_quick(tree: Any, swap: Swap, hidden: _Hidden) -> Any:
    holder, key, value = swap
    if value is None:
        # A comma goes with it; which one does not matter to a count.
        hidden.append((b",%b:%b" % (_write(key), _write(holder.pop(key))), b""))
        return tree
    put: Any = value
    if isinstance(value, Parts):
        put = msgspec.Raw(b"*" + value.sort.encode() + _write(value.left))
    hidden.append((_write(tree if holder is None else holder[key]), _write(put)))
    if holder is None:
        return put
    holder[key] = put
    return tree


def _swap_exact(tree: Any, swap: Swap) -> Any:
    holder, key, value = swap
    if value is None:
        del holder[key]
        return tree
    if isinstance(value, Parts):
        put = f"{_PARTS}{value.sort}[{','.join(map(_string, value.left))}]"
    else:
        put = _TEXT + value if value[:1] == "\x00" else value
    if holder is None:
        return put
    holder[key] = put
    return tree


def encode_tree(tree: object) -> str:
    """Write what `json_tree` gives as the form; the exact way."""
    return _encode(tree, 0)


def _encode(value: Any, depth: int) -> str:
    if isinstance(value, _Number):
        return value[1:]
    if isinstance(value, str):
        if value[:2] == _PARTS:
            return "*" + value[2:]
        return "*" if value == MASKED else _string(value.removeprefix(_TEXT))
    if depth > MAX_DEPTH:
        raise RecursionError("nested too deep")
    if isinstance(value, dict):
        named = {key.removeprefix(_TEXT): item for key, item in value.items()}
        pairs = [f"{_string(key)}:{_encode(named[key], depth + 1)}" for key in sorted(named)]
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        twice = is_twice(value)
        items = ",".join(_encode(item, depth + 1) for item in (value[1:] if twice else value))
        return f"=[{items}]" if twice else f"[{items}]"
    return _string(value)


_string = json.JSONEncoder(ensure_ascii=False).encode


def json_tree(text: str, masks: Sequence[JsonPath] = (), reading: Reading | None = None) -> object:
    """Parse JSON into dicts (in the text's order), lists and marked strings, nothing lost but what is masked.

    `show_json` turns any part of it back into text for people.
    Raises: as `canonical_json`.
    """
    tree = _add_marker(_exact_decode(text), 0)
    if reading is not None:
        more, swaps = reading(tree, True)
        for swap in swaps:
            tree = _swap_exact(tree, swap)
        masks = (*masks, *more)
    for path in masks:
        tree = _mask(tree, path, 0, MASKED, None)
    return tree


def light_tree(text: str) -> object:
    """Parse JSON as `json_tree` does, but faster: of a key that stands twice the last value is kept.

    Raises: as `canonical_json`.
    """
    return cast(object, _decode(text))


def quick_tree(data: bytes) -> object:
    """Parse JSON as quickly as can be; of a key that stands twice the last value is kept, numbers stay as they are written.

    Raises: ValueError where it is no JSON, or is nested too deep.
    """
    try:
        return _read(data)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def is_number(value: object) -> bool:
    """Say whether a part of a tree is a number."""
    return isinstance(value, str) and value[:1] == "\x00" and value[1:2] not in ("*", "=", "'", "~")


def show_json(value: object) -> str:
    """Render a part of a tree as one line of JSON; `(masked)` where a value is masked."""
    return _show(value, 0)


def _show(value: object, depth: int) -> str:
    match value:
        case str():
            if is_number(value):
                return value[1:]
            if value == MASKED:
                return "(masked)"
            if value[:2] == _PARTS:
                sort, _, left = value[2:].partition("[")
                name = sort.removeprefix("#")
                mask = f"(masked {name})" if name else "(masked)"
                told = mask.join(json.loads(f"[{left}"))
                return told if value[2:3] == "#" else json.dumps(told, ensure_ascii=False)
            return json.dumps(value.removeprefix(_TEXT), ensure_ascii=False)
        case dict() | list() if depth > MAX_DEPTH:
            return "..."
        case dict():
            members: list[str] = []
            for key, item in value.items():
                name = json.dumps(str(key).removeprefix(_TEXT), ensure_ascii=False)
                items = item[1:] if is_twice(item) else [item]
                members += [f"{name}: {_show(one, depth + 1)}" for one in items]
            return f"{{{', '.join(members)}}}"
        case list():
            items = value[1:] if is_twice(value) else value
            return f"[{', '.join(_show(item, depth + 1) for item in items)}]"
        case _:
            return json.dumps(value)


def is_twice(value: object) -> bool:
    """Say whether a part of a tree holds the values of a key that stands more than once."""
    return isinstance(value, list) and bool(value) and value[0] == _TWICE


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    twice: set[str] = set()
    for name, item in pairs:
        key = _TEXT + name if name[:1] == "\x00" else name
        value = _add_marker(item, 0)
        if key not in merged:
            merged[key] = value
        elif key in twice:
            merged[key].append(value)
        else:
            twice.add(key)
            merged[key] = [_TWICE, merged[key], value]
    return merged


def _add_marker(value: Any, depth: int) -> Any:
    # Objects were marked when they were made; lists inside lists were not.
    if type(value) is str:
        return _TEXT + value if value[:1] == "\x00" else value
    if type(value) is list:
        if depth > MAX_DEPTH:
            raise RecursionError("lists nested too deep")
        return [_add_marker(item, depth + 1) for item in value]
    return value


_exact_decode = json.JSONDecoder(
    parse_int=_exact_number,
    parse_float=_exact_number,
    parse_constant=_exact_number,
    object_pairs_hook=_pairs,
).decode


def text_of(value: Any, exact: bool) -> str | None:
    """Give the text that a string in a tree stands for, or None for what is no string, or masked."""
    if type(value) is not str:
        return None
    if not exact or value[:1] != "\x00":
        return value
    return value[2:] if value[:2] == _TEXT else None


def number_of(value: Any, exact: bool) -> str | None:
    """Give how a number in a tree is written, or None for what is none."""
    if isinstance(value, _Number):
        return value[1:]
    if exact:
        return None
    if type(value) is int:
        return str(value)
    return bytes(value).decode() if isinstance(value, msgspec.Raw) else None


def _mask(value: Any, path: JsonPath, at: int, mark: Any, hidden: _Hidden | None) -> Any:
    """Mask what a path leads to, in place, and give the value back.

    hidden: takes what was hidden in the quick reader's tree; None for the exact one's.
    """
    if hidden is None and is_twice(value):
        # Each of the values is masked; that the key stands twice stays. Only the exact reader makes such lists:
        # in the quick one's tree the first item is a text.
        value[1:] = [_mask(item, path, at, mark, hidden) for item in value[1:]]
        return value
    if at == len(path):
        if hidden is not None and value is not mark:
            hidden.append((_write(value), b"*"))
        return mark
    step = path[at]
    places: Sequence[Any] = ()
    if isinstance(value, dict):
        places = tuple(value) if step is None else (step,) if step in value else ()
    elif isinstance(value, list):
        places = range(len(value))
        if step is not None:
            places = (step,) if step in places else ()
    for place in places:
        value[place] = _mask(value[place], path, at + 1, mark, hidden)
    return value
