"""A value that is looked for: the bytes by which it is found, and how it may be written elsewhere.

1. The same text is the same characters once JSON is decoded, as a whole or alone in a text (`token_or_substring.py`). Anything else is another
   writing, and is named: `number format`, `JSON in JSON`, `JSON format`, `percent-encoding`, `base64`, `HTML`,
   `letter case`. So is what is inside of a longer value.
2. A value tells where it comes from if no other has it by chance (`distinctive_values.py`). JSON does that has such a value in it.
3. Bytes are looked for first, which costs little: `may_be_in` may say yes too often, and never no wrongly where the value
   is written in one of these ways.
"""

import base64
import binascii
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from html.entities import codepoint2name
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from ...tape.dialects.common.untrusted_json import Json
from ...tape.matching.dependence import core
from ...tape.matching.traceable_values import ids
from .distinctive_values import ID, is_long, is_telling
from .exchange_values import Scalar, inner_json, walk
from .token_or_substring import Standing, find_standing, judge_place

_MOST_TEXT = 64 * 1024
"""Characters of a value whose other writings are looked for; of a longer one those of its beginning."""
_MOST_PARTS = 8
_DEEP = 6
"""How often a text of a few signs may be inside of a text of JSON."""
_SEPARATORS = "[ ,._'\u00a0\u202f\u2009]"
_NUMBER = re.compile(
    r"(?<![0-9A-Za-z_])[-+]?(?:[0-9]{1,3}(?:[ ,._'\u00a0\u202f\u2009][0-9]{3})+(?:[.,][0-9]+)?"
    r"|[0-9]+(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![0-9A-Za-z_])"
)
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_KEPT = ("/", "", "!*'()", ";,/?:@&=+$#!*'()")
"""Signs that ways of percent-encoding leave as they are: Python's, the strict one, encodeURIComponent and encodeURI."""
INSIDE = "inside of a longer value"
NOTATION = "number format"
JSON_FORMAT = "JSON format"


class Match(NamedTuple):
    """How a value is in another."""

    rule: str
    """Empty for the same characters, else how it is written there."""
    whole: bool
    """Whether it is all of the other value."""
    standing: Standing = Standing.ALONE


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value that is looked for."""

    value: Scalar
    text: str
    numbers: frozenset[Decimal]
    forms: tuple[tuple[str, str], ...]
    """Other texts that it may stand for, each with its rule: itself without percent-encoding, base64."""
    needles: tuple[bytes, ...] = field(repr=False)
    pattern: re.Pattern[bytes] | None = field(repr=False)
    """Finds a number, whatever its separators."""
    folded: tuple[bytes, ...] = field(repr=False)
    """Needles in lower case, for another letter case."""
    tree: Json = field(default=None, repr=False)
    """Of a text that is an object or a list of JSON, what it says; else None."""
    least: int = 0
    """Characters below which a text cannot have it, as most names of members; a letter in another case is up to three."""

    @property
    def telling(self) -> bool:
        """Whether no other value is the same by chance."""
        if isinstance(self.value, bool) or self.value is None:
            return False
        if self.tree is not None:
            return any(_tells(leaf.value) for leaf in walk(self.tree))
        return is_telling(self.text)

    def may_be_in(self, data: bytes) -> bool:
        """Say whether bytes may have it, however it is written."""
        for needle in self.needles:  # a loop: this is asked for every exchange of a run
            if needle in data:
                return True
        if self.pattern is not None and self.pattern.search(data) is not None:
            return True
        return bool(self.folded) and any(one in data.lower() for one in self.folded)

    def match(self, other: Scalar) -> Match | None:
        """Say how it is in another value; None where it is not."""
        if other is None or isinstance(other, bool):
            return Match("", True) if other is self.value else None
        if isinstance(self.value, bool) or self.value is None:
            return None
        if not isinstance(other, str):
            return self._match_number(other)
        if other == self.text:
            return Match("", True)
        if len(other) < self.least:
            return None
        is_plain = not self.forms and not self.numbers and self.tree is None
        if len(self.text) > len(other) and is_plain:
            return None
        standing = find_standing(self.text, other)
        if standing is Standing.ALONE:
            return Match("", False)
        found = self._match_forms(other)
        if standing and (found is None or found.standing <= standing):
            return Match(INSIDE, False, standing)
        return found

    def _match_number(self, other: int | float) -> Match | None:
        if not self.numbers or write_number(other) not in self.numbers:
            return None
        same = self.text == json.dumps(other)
        return Match("" if same else NOTATION, True)

    def _match_forms(self, other: str) -> Match | None:
        if self.tree is not None and inner_json(other) == self.tree:
            return Match(JSON_FORMAT, True)
        best: Match | None = None
        for text, there, rule in self._other_writings(other):
            if text == there:
                return Match(rule, True)
            standing = find_standing(text, there)
            if standing and (best is None or standing > best.standing):
                best = Match(rule, False, standing)
        for found in _NUMBER.finditer(other) if self.numbers else ():
            standing = judge_place(other, *found.span())
            if not standing or not read_numbers(found[0]) & self.numbers:
                continue
            if best is None or standing > best.standing:
                same = found[0] == self.text
                rule = ("" if same else NOTATION) if standing is Standing.ALONE else INSIDE
                best = Match(rule, found[0] == other.strip(), standing)
        return best

    def _other_writings(self, other: str) -> Iterator[tuple[str, str, str]]:
        """Give what to look for, in what, and how that is called."""
        for form, rule in self.forms:
            yield form, other, rule
        if self.forms and "%" in other:
            for read in (unquote, unquote_plus) if "+" in other else (unquote,):
                yield self.text, read(other), "percent-encoding"
        if self.forms and "&" in other and _ENTITY.search(other) is not None:
            yield self.text, html.unescape(other), "HTML"
        if self.folded:
            yield self.text.casefold(), other.casefold(), "letter case"


def make_wanted(value: Scalar) -> Wanted:
    """Prepare a value to be looked for."""
    text = value if isinstance(value, str) else json.dumps(value)
    head = text[:_MOST_TEXT]
    numbers = frozenset[Decimal]()
    if isinstance(value, str):
        stripped = value.strip().lstrip("$€£¥").strip()
        if len(stripped) <= 40 and _NUMBER.fullmatch(stripped):
            numbers = read_numbers(stripped)
    elif not isinstance(value, bool) and value is not None:
        found = write_number(value)
        numbers = frozenset([found]) if found is not None else numbers
    is_text = isinstance(value, str) and not numbers
    forms = tuple(_other_forms(head)) if is_text else ()
    tree = inner_json(value) if is_text else None
    written = (_find_longest(tree) or head, *(form for form, _ in forms))
    needles = [needle for one in written for needle in _needles(one)]
    is_folded = is_text and (is_long(head) or is_telling(head.upper()))
    folded = tuple(one.lower() for one in core(head)) if is_folded else ()
    return Wanted(
        value,
        text,
        numbers,
        forms,
        tuple(dict.fromkeys(needles)) if not numbers else (),
        _number_pattern(numbers, text) if numbers else None,
        folded,
        tree,
        min(map(len, written)) // 3 if is_text and tree is None else 0,
    )


def _find_longest(tree: Json) -> str:
    """Give the longest text or name in a value of JSON, which is wherever it is, whatever its blanks are; nothing of none."""
    texts = (leaf.value for leaf in walk(tree) if isinstance(leaf.value, str))
    return max(texts, key=len, default="")


def _tells(value: Scalar) -> bool:
    if value is None or isinstance(value, bool):
        return False
    return is_telling(value if isinstance(value, str) else json.dumps(value))


def _needles(text: str) -> tuple[bytes, ...]:
    """Give the bytes one of which is wherever a text is, encoded for JSON, for a URL or for HTML, however deep."""
    found = core(text)
    if len(found) == 1:
        return found
    if not text.isascii():
        return _needles_of(max(text))
    told = text.encode()
    nested = [text]
    for _ in range(_DEEP):
        nested.append(json.dumps(nested[-1])[1:-1])
    ways = {quote(told, safe=safe) for safe in _KEPT} | {quote_plus(told)}
    encoded = [way for one in sorted(ways) for way in {one, _PERCENT.sub(_lower, one)}]
    named = "".join(f"&{name};" if (name := codepoint2name.get(ord(one))) else one for one in text)
    return tuple(one.encode() for one in (*nested, *encoded, html.escape(text), named))


def _needles_of(char: str) -> tuple[bytes, ...]:
    r"""Give the same of one character outside ASCII: behind a `\\u`, the backslashes are as many as it is deep."""
    told = char.encode("utf-8", "surrogatepass")
    code = json.dumps(char)[-5:-1]
    numbers = f"&#{ord(char)};", f"&#x{ord(char):x};", f"&#x{ord(char):X};"
    named = f"&{codepoint2name[ord(char)]};" if ord(char) in codepoint2name else numbers[0]
    quoted = quote(told)
    ways = (f"u{code}", f"u{code.upper()}", quoted, quoted.lower(), *numbers, named)
    return (told, *dict.fromkeys(one.encode() for one in ways))


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


def _other_forms(text: str) -> list[tuple[str, str]]:
    """Give the texts that a text may have been made of."""
    found = []
    if _PERCENT.search(text) or "+" in text:
        plain = unquote_plus(text) if "+" in text else unquote_plus(text.replace("+", "%2B"))
        if plain != text:
            found.append((plain, "percent-encoding"))
    if len(text) >= 8 and _BASE64.fullmatch(text) and len(text) % 4 != 1:
        padded = text.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
        try:
            plain = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True).decode()
        except (binascii.Error, ValueError):
            plain = ""
        if len(plain) >= ID and plain.isprintable() | ("\n" in plain):
            found.append((plain, "base64"))
    if is_long(text):
        found.append((base64.b64encode(text.encode("utf-8", "surrogatepass")).decode(), "base64"))
        told = text.encode("utf-8", "surrogatepass")
        ways = dict.fromkeys((*(quote(told, safe=safe) for safe in _KEPT), quote_plus(told)))
        found += [(one, "percent-encoding") for one in ways if one != text]
        if html.escape(text) != text:
            found.append((html.escape(text), "HTML"))
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        if escaped != text:
            found.append((escaped, "JSON in JSON"))
    return found


def write_number(value: int | float) -> Decimal | None:
    """Give a number of JSON exactly as it is written."""
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def read_numbers(text: str) -> frozenset[Decimal]:
    """Give the numbers that a text may mean: 1,234 is 1234, or 1.234 where a comma is a point."""
    plain = re.sub("[ _'\u00a0\u202f\u2009]", "", text)
    comma, point = plain.count(","), plain.count(".")
    ways: list[str] = []
    if comma and point:
        last = max(plain.rfind(","), plain.rfind("."))
        ways.append(re.sub("[,.]", "", plain[:last]) + "." + plain[last + 1 :])
    elif comma + point == 0:
        ways.append(plain)
    else:
        sign = "," if comma else "."
        if max(comma, point) == 1:
            ways.append(plain.replace(sign, "."))
        groups = plain.split(sign)[1:]
        if all(len(group) == 3 for group in groups):
            ways.append(plain.replace(sign, ""))
    found = set()
    for one in ways:
        try:
            found.add(Decimal(one))
        except InvalidOperation:
            continue
    return frozenset(found)


def _number_pattern(numbers: frozenset[Decimal], text: str) -> re.Pattern[bytes]:
    """Find digits that count, in order, whatever is between and behind them."""
    ways = [re.escape(text.encode()).decode("latin-1")]
    for number in numbers:
        digits = "".join(map(str, number.as_tuple().digits)).lstrip("0")
        counted = digits.rstrip("0") or digits or "0"
        between = r"(?:[ ,._']|\xc2\xa0|\xe2\x80\xaf|\xe2\x80\x89|\\u00[aA]0|\\u202[fF])?"
        ways.append(between.join(counted))
    joined = "|".join(dict.fromkeys(ways))
    # In JSON, digits before it may be those of a sign: `\\u00a3`.
    begins = r"(?:(?<![0-9])|(?<=\\u[0-9a-fA-F]{4}))"
    return re.compile(rf"{begins}(?:{joined})(?![1-9])".encode("latin-1"))


def find_parts(text: str) -> tuple[str, ...]:
    """Give what is telling inside a text that was put together: its ids, the longest first."""
    found = [one for one in ids(text) if one != text]
    found += [
        one
        for one in re.findall(r"[A-Za-z0-9_-]{6,}|[0-9]+(?:[.,][0-9]+)+", text)
        if one != text and is_telling(one) and any(char.isdigit() for char in one)
    ]
    unique = dict.fromkeys(found)
    return tuple(sorted(unique, key=len, reverse=True)[:_MOST_PARTS])
