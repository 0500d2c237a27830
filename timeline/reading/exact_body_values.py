"""Bodies as values for a person who decides by them: numbers as they are written, and where the values do not say what the bytes do.

A body of which something is lost is shown as it was sent: the receiving program may read the part that another reader drops.
Source: RFC 8259 sections 4, 6 and 8; URL Standard (WHATWG) section 5.1.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

DEEP = 40
"""Levels below which values are not shown."""
NAME = 200
"""Characters of a name that are shown."""
_SAID = 3
"""Reasons that are named."""
_BOM = "\ufeff"


class Number(str):
    """The text of a number, told from a string that reads the same."""

    __slots__ = ()


class Written(NamedTuple):
    """What a body says."""

    value: Any
    """Of JSON: numbers are a `Number`. Of a form: pairs of texts, in their order."""
    lost: tuple[str, ...] = ()
    """What the bytes say and the values do not, as sentences; empty where they say the same."""
    has_odd_numbers: bool = False
    """Whether a number is written as no program would write it again, as `49.00` or `1E400`."""


def read_json(body: bytes) -> Written | None:
    """Read an object or a list of JSON; None for any other body, and for one that is nested too deep to be read."""
    if body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return None
    reader = _Reader()
    try:
        text = body.decode()
        value = reader.decode(text.removeprefix(_BOM))
    except (ValueError, RecursionError):
        return None
    lost = [_twice(name, count) for name, count in reader.repeated.items()]
    lost += [f"{word} is no JSON: programs read it differently" for word in reader.words]
    if text.startswith(_BOM):
        lost.append("it begins with a byte order mark, which is no JSON")
    if reader.has_half:
        lost.append("a text has half of a surrogate pair, which is no character")
    if reader.longest > NAME:
        lost.append(f"the name of a member has {reader.longest} characters")
    if _is_deep(value):
        lost.append(f"it is nested deeper than {DEEP} levels")
    return Written(value, _name_some(lost), reader.has_odd_numbers)


def says_more(text: bytes) -> str:
    """Say why a text of JSON is to be shown beside its values, numbers included; empty where there is no need."""
    written = read_json(text)
    if written is None:
        return ""
    return "; ".join(written.lost) or (
        "a number as it is written" if written.has_odd_numbers else ""
    )


def read_form(body: bytes) -> Written:
    """Read the pairs of a form, in their order and with those that come twice."""
    pairs, lost = [], set[str]()
    for pair in body.split(b"&") if body else ():
        name, equals, value = pair.partition(b"=")
        if not equals and pair:
            lost.add("a name has no = behind it: programs read it differently")
        pairs.append((_decode(name, lost), _decode(value, lost)))
    if b";" in body:
        lost.add("it has a ;, which some programs take for &")
    if max((len(name) for name, _ in pairs), default=0) > NAME:
        lost.add("the name of a pair is too long to be shown")
    return Written(pairs, _name_some(sorted(lost)))


def render_json(value: Any) -> str:
    """Write a value of `read_json` with an indent of two, numbers as they were written."""
    return "".join(_render(value, "\n", "  "))


def show_json(value: Any) -> str:
    """Write a value of `read_json` on one line, numbers as they were written."""
    return "".join(_render(value, "", ""))


def _render(value: Any, line: str, indent: str) -> Iterator[str]:
    if isinstance(value, Number):
        yield value
    elif isinstance(value, dict | list) and value:
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        inner = f"{line}{indent}"
        before = f"{opening}{inner}"
        between = f",{inner}" if indent else ", "
        for item in value.items() if isinstance(value, dict) else value:
            yield before
            if isinstance(value, dict):
                yield f"{json.dumps(item[0], ensure_ascii=False)}: "
                yield from _render(item[1], inner, indent)
            else:
                yield from _render(item, inner, indent)
            before = between
        yield f"{line}{closing}"
    else:
        yield json.dumps(value, ensure_ascii=False)


class _Reader:
    """Reads JSON and notes what values cannot say."""

    def __init__(self) -> None:
        self.repeated: Counter[str] = Counter()
        self.words: dict[str, None] = {}
        self.has_half = self.has_odd_numbers = False
        self.longest = 0

    def decode(self, text: str) -> Any:
        """Read a text.

        Raises: ValueError, RecursionError.
        """
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._word,
        )
        value = decoder.decode(text)
        # Only a text with an escape for one can have one: it was decoded strictly.
        self.has_half = "\\ud" in text.lower() and _has_half(value)
        return value

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            for name, count in counts.items():
                if count > 1:
                    self.repeated[name] = max(count, self.repeated[name])
        self.longest = max([self.longest, *map(len, made)])
        return made

    def _int(self, text: str) -> Number:
        self.has_odd_numbers |= text == "-0"
        return Number(text)

    def _float(self, text: str) -> Number:
        self.has_odd_numbers |= repr(float(text)) != text
        return Number(text)

    def _word(self, word: str) -> Number:
        self.words[word] = None
        return Number(word)


def _twice(name: str, count: int) -> str:
    shown = json.dumps(name[:NAME], ensure_ascii=False)
    return f"member {shown} comes {count} times: programs differ in which one they take"


def _name_some(lost: list[str]) -> tuple[str, ...]:
    more = len(lost) - _SAID
    return (*lost[:_SAID], *([f"and {more} more"] if more > 0 else []))


def _decode(text: bytes, lost: set[str]) -> str:
    decoded = unquote_to_bytes(text.replace(b"+", b" "))
    if any(not _is_escape(part) for part in text.split(b"%")[1:]):
        lost.add("a % is no escape")
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        lost.add("a value is no UTF-8")
        return decoded.decode("utf-8", "backslashreplace")


def _is_escape(part: bytes) -> bool:
    return len(part) >= 2 and all(byte in b"0123456789abcdefABCDEF" for byte in part[:2])


def _levels(value: Any) -> Iterator[list[Any]]:
    level = [value]
    while level:
        yield level
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]


def _is_deep(value: Any) -> bool:
    return any(
        number >= DEEP and any(isinstance(one, dict | list) for one in level)
        for number, level in enumerate(_levels(value))
    )


def _has_half(value: Any) -> bool:
    for level in _levels(value):
        for one in level:
            texts = one if isinstance(one, dict) else [one] if isinstance(one, str) else []
            if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
                return True
    return False
