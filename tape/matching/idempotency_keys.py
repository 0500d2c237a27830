"""Compare the idempotency keys of a replay with those of its tape: whether a key is present, and which effects share one.

The values of keys are random and never compared. Two runs agree where each key of the one stands for one key
of the other, and those of one name are compared by themselves: services read one of them each. What differs is told, and
refused by nobody: the effect is the same.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote_plus

from ..exchange import HttpRequest, Seq
from ..headers.authorization import is_empty
from ..headers.shipped_lists import KEYS_OF_EFFECTS, is_key_of_effect, may_have_key

KEY_ADDED = "carries an idempotency key, and was recorded without one"
"""Whoever names an effect that had no name asks for the same effect."""
KEY_LOST = "carries no idempotency key, and was recorded with one"

_PAIR = re.compile(r"(?:^|&)([^&=]*)=([^&]*)")
_LARGEST = 8 * 1024 * 1024
"""Bytes of a body that is read; the length of a body that is held."""
_FORM, _TYPE = b"x-www-form-urlencoded", b"content-type"
_MOST = 50_000
"""Keys remembered for a run; those seen longest ago go first."""


class _Seen(NamedTuple):
    other: bytes
    """The key that it stands for in the other run."""
    seq: Seq
    """Of the effect that it was last seen with, in its own run."""


class KeyPairs:
    """The keys of the effects that a playback has served so far, each with the one on the tape."""

    def __init__(self) -> None:
        """Begin with none."""
        self._asked: OrderedDict[bytes, _Seen] = OrderedDict()
        self._recorded: OrderedDict[bytes, _Seen] = OrderedDict()

    def compare(
        self, seq: Seq, asked: Mapping[str, bytes], tape_seq: Seq, recorded: Mapping[str, bytes]
    ) -> str:
        """Say how the keys of an effect differ from those it was recorded with; empty where they do not.

        seq, asked: of the effect in the playback; the keys that it has, by name, or anything that tells their values apart.
        tape_seq, recorded: the same on the tape.
        """
        told = [self._find_difference(*pair) for pair in _pair(asked, recorded)]
        for now, then in _pair(asked, recorded):
            if now is not None and then is not None:
                _note(self._asked, now, _Seen(then, seq))
                _note(self._recorded, then, _Seen(now, tape_seq))
        return next(filter(None, told), "")

    def _find_difference(self, asked: bytes | None, recorded: bytes | None) -> str:
        if asked is None or recorded is None:
            return KEY_ADDED if recorded is None else KEY_LOST
        one, other = self._asked.get(asked), self._recorded.get(recorded)
        if one is not None and one.other != recorded:
            return f"shares its idempotency key with seq {one.seq}; on the tape the two have different ones"
        if other is not None and other.other != asked:
            return f"has another idempotency key than the effect recorded as seq {other.seq}; on the tape the two share one"
        return ""


def _pair(
    asked: Mapping[str, bytes], recorded: Mapping[str, bytes]
) -> list[tuple[bytes | None, bytes | None]]:
    """Give the keys of one name in the two runs; where each has one key, whatever its name."""
    if len(asked) == len(recorded) == 1:
        return list(zip(asked.values(), recorded.values(), strict=True))
    names = dict.fromkeys((*recorded, *asked))
    return [(asked.get(name), recorded.get(name)) for name in names]


def _note(seen: OrderedDict[bytes, _Seen], key: bytes, value: _Seen) -> None:
    seen[key] = value
    seen.move_to_end(key)
    if len(seen) > _MOST:
        seen.popitem(last=False)


def find_key(
    request: HttpRequest, show: Callable[[bytes], bytes] = lambda value: value
) -> bytes | None:
    """Find the idempotency key of a request: all its fields and members that are one, by names and values; an empty one is none.

    show: gives each value otherwise.
    """
    found = _find(request)
    return b"\n".join(name + b": " + show(value) for name, value in found) if found else None


def find_keys(request: HttpRequest) -> dict[str, bytes]:
    """Give the idempotency keys of a request, 8 bytes that stand for each value, by name; of one name numbered from the second on."""
    keys: dict[str, bytes] = {}
    nth: dict[bytes, int] = {}
    for name, value in _find(request):
        number = nth[name] = nth.get(name, 0) + 1
        told = name.decode("utf-8", "replace") + (f"#{number}" if number > 1 else "")
        keys[told] = blake2b(value, digest_size=8).digest()
    return keys


def _find(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    found = [
        (name.lower(), value.strip())
        for name, value in request.headers
        if name.lower() in KEYS_OF_EFFECTS and not is_empty(value)
    ]
    if "?" in request.target:
        found += _in_pairs(request.target.partition("?")[2])
    if 0 < len(request.body) <= _LARGEST:
        found += _in_body(request)
    # Servers read one of them each, and nobody knows which: two values of one field count in their order.
    found.sort(key=lambda field: field[0])
    return found


def _in_pairs(text: str) -> Iterator[tuple[bytes, bytes]]:
    if not may_have_key(text.encode("latin-1", "replace")):
        return
    for written, value in _PAIR.findall(text):
        name = unquote_plus(written, "latin-1")
        if not is_key_of_effect(name):
            continue
        told = unquote_plus(value, "latin-1").strip().encode("utf-8", "surrogatepass")
        if not is_empty(told):
            yield name.encode("utf-8", "surrogatepass"), told


def _in_body(request: HttpRequest) -> Iterator[tuple[bytes, bytes]]:
    kind = (request.header(_TYPE) or b"json").lower()
    if _FORM in kind:
        yield from _in_pairs(request.body.decode("latin-1"))
    elif b"json" in kind and may_have_key(request.body):
        try:
            tree = json.loads(request.body)
        except (ValueError, RecursionError):
            return
        for name in sorted(filter(is_key_of_effect, tree)) if isinstance(tree, dict) else ():
            value = tree[name]
            if isinstance(value, str) and value.strip():
                yield (
                    name.encode("utf-8", "surrogatepass"),
                    value.strip().encode("utf-8", "surrogatepass"),
                )
