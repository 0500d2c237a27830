"""Compare the idempotency keys of a replay with those of its tape: whether a key is present, and which effects share one.

The values of keys are random and never compared. Two runs agree where each key of the one stands for one key
of the other. What differs is told, and refused by nobody: the effect is the same.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus

from ..exchange import HttpRequest, Seq
from ..headers.authorization import is_empty
from ..headers.shipped_lists import KEYS_OF_EFFECTS, is_key_of_effect, may_have_key

KEY_ADDED = "carries an idempotency key, and was recorded without one"
"""Whoever names an effect that had no name asks for the same effect."""

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

    def compare(self, seq: Seq, asked: bytes | None, tape_seq: Seq, recorded: bytes | None) -> str:
        """Say how the key of an effect differs from the one it was recorded with; empty where it does not.

        seq, asked: of the effect in the playback; a hash of its key, or None without one.
        tape_seq, recorded: the same on the tape.
        """
        if asked is None or recorded is None:
            if asked is not None:
                return KEY_ADDED
            return "carries no idempotency key, and was recorded with one" if recorded else ""
        one, other = self._asked.get(asked), self._recorded.get(recorded)
        what = ""
        if one is not None and one.other != recorded:
            what = f"shares its idempotency key with seq {one.seq}; on the tape the two have different ones"
        elif other is not None and other.other != asked:
            what = f"has another idempotency key than the effect recorded as seq {other.seq}; on the tape the two share one"
        _note(self._asked, asked, _Seen(recorded, seq))
        _note(self._recorded, recorded, _Seen(asked, tape_seq))
        return what


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
    return b"\n".join(name + b": " + show(value) for name, value in found) if found else None


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
