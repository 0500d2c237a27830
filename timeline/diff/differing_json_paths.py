"""Name the places at which two acts differ: JSON paths in requests and answers, with both values."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from ...tape.canonical.canonical_request import Rules
from ...tape.dialects.common.untrusted_json import JsonObject, find_json
from ...tape.diff.divergence_types import ABSENT, Difference
from ...tape.diff.request_differences import differences, show_difference, tree_differences
from ...tape.exchange import Exchange, Request
from ...tape.records.content_coding import read_codings, undo_coding
from ..state.calls_before import Exchanges
from ..steps.split_messages import Split, split_body
from .acts import Act, Said
from .compare import Change, Row
from .fields_beyond_dialect import MAY_VARY
from .made_anew import Told, find_anew

_MOST = 64 * 1024 * 1024
_USAGE = re.compile(r"body \$\.usage(Metadata)?\b")
"""Counts of tokens: they differ as soon as anything does, and say nothing more."""
_LAST_NAME = re.compile(r"\.(\w+)(?:\[[0-9]+\])?$")
_NAMES_ID = re.compile(r"[._]id$")
_LONG_ID = re.compile(r'"[\w-]{16,}"')
_NOT_COMPARED = ("header ", "trailer ")
"""Places of a request that count for its fingerprint, and not between two runs."""
_LOOKED_AT = 400
"""Differences of one pair that are looked at."""


@dataclass(slots=True)
class Places:
    """The places at which the acts of a row differ."""

    listed: list[Difference]
    more: int = 0
    """How many are not listed, as far as was looked."""


def find_places(
    row: Row, first: Exchanges, second: Exchanges, rules: Rules, most: int = 20
) -> Places:
    """Find where the acts of a row differ; nothing where one of them has no partner.

    Raises: LogCorrupt.
    """
    one, other = row.first, row.second
    if one is None or other is None or row.change in (Change.SAME, Change.MOVED):
        return Places([])
    found: list[Difference] = []
    old, new = first.find(one.seq), second.find(other.seq)
    if old is None or new is None:
        return Places([])
    if row.change is Change.ASKED:
        asked = islice(_asked(one, other, old, new, rules), _LOOKED_AT)
        found += (said for said in asked if not said.place.startswith(_NOT_COMPARED))
    is_proof = not one.is_call
    telling = [said for said in found if not _made_anew(said, row, is_proof=is_proof)]
    answered = list(islice(_answered(one, other, old, new), _LOOKED_AT))
    telling += (said for said in answered if not _made_anew(said, row))
    listed = telling or found + answered
    return Places(listed[:most], max(0, len(listed) - most))


def _made_anew(said: Difference, row: Row, *, is_proof: bool = False) -> bool:
    """Say whether ids or times differ alone that stand for each other.

    is_proof: whether they have to be known to do so. The members of a model call that are not compared, and answers, have ids that
        nothing is known of.
    """
    name = _LAST_NAME.search(said.place)
    label = f"{name[1]}: " if name is not None else ""
    told = Told(words={word for pair in (*row.agreed, *row.at_odds) for word in pair})
    one, other = find_anew(label + said.recorded, told), find_anew(label + said.asked, told)
    if one[0] == other[0]:
        return all(
            first.text == second.text
            or (first.is_own and second.is_own)
            or (not first.is_time and _stand_for(first.text, second.text, row, is_proof=is_proof))
            for first, second in zip(one[1], other[1], strict=True)
        )
    return bool(
        not is_proof
        and _NAMES_ID.search(said.place)
        and _LONG_ID.fullmatch(said.recorded)
        and _LONG_ID.fullmatch(said.asked)
    )


def _stand_for(one: str, other: str, row: Row, *, is_proof: bool) -> bool:
    if (one, other) in row.at_odds:
        return False
    if (one, other) in row.agreed:
        return True
    return not is_proof and not any((one == old) != (other == new) for old, new in row.agreed)


def _asked(
    one: Act, other: Act, old: Exchange, new: Exchange, rules: Rules
) -> Iterator[Difference]:
    if one.is_call and not one.part:
        splits = _split(old.request), _split(new.request)
        if splits[0] is not None and splits[1] is not None:
            yield from _messages(one, other, splits[0], splits[1])
            return
    if one.part:
        yield from _said(one.asked, other.asked, "message")
        return
    yield from differences(old.request, new.request, rules, old.request_class, limit=_LOOKED_AT)


def _split(request: Request) -> Split | None:
    body = request.body
    coding = read_codings(request.headers)
    if coding:
        plain = undo_coding(body, coding, _MOST)
        body = body if plain is None else plain
    return split_body(body)


def _messages(one: Act, other: Act, old: Split, new: Split) -> Iterator[Difference]:
    """Compare what stands beside the messages, and the messages that are new in both."""
    yield from tree_differences(_around(old), _around(new))
    lists: list[list[Any]] = []
    for act, split in ((one, old), (other, new)):
        numbers = range(min(act.first_item, len(split.places)), len(split.places))
        # What was said before is as many nulls: it is not compared, and the places are those in the first request.
        lists.append([None] * one.first_item + [split.element(at) for at in numbers])
    yield from tree_differences(lists[0], lists[1], f"$.{old.key}")


def _around(split: Split) -> JsonObject:
    around = {**split.head, **split.tail}
    return {name: value for name, value in around.items() if name not in MAY_VARY}


def _answered(one: Act, other: Act, old: Exchange, new: Exchange) -> Iterator[Difference]:
    found = list(islice(_answer_parts(one, other, old, new), _LOOKED_AT))
    if one.outcome != other.outcome and not (one.is_call and found):
        place = "answer ends" if one.is_call else "answer status"
        yield show_difference(place, one.outcome or ABSENT, other.outcome or ABSENT)
    yield from found


def _answer_parts(one: Act, other: Act, old: Exchange, new: Exchange) -> Iterator[Difference]:
    trees = [_answer_tree(one, old), _answer_tree(other, new)]
    if all(isinstance(tree, dict | list) for tree in trees):
        is_named = False
        for said in tree_differences(*trees):
            if not _USAGE.match(said.place):
                is_named = True
                yield Difference(f"answer {said.place}", said.recorded, said.asked)
        if is_named:
            return
    yield from _said(one.answered, other.answered, "answer")


def _answer_tree(act: Act, exchange: Exchange) -> Any:
    """Give the JSON of an answer; None for a stream, for what is none, and for one of a WebSocket."""
    response = exchange.response
    if response is None or response.is_events or act.part or response.spilled is not None:
        return None
    coding = read_codings(response.headers)
    body = undo_coding(response.body, coding, _MOST) if coding else response.body
    return find_json(body) if body and body.lstrip()[:1] in (b"{", b"[") else None


def _said(old: list[Said], new: list[Said], where: str) -> Iterator[Difference]:
    calls = 0
    for one, other in zip_longest(old, new):
        said = one or other
        assert said is not None
        if said.what == "tool call":
            calls += 1
        number = f" {calls} {said.name}" if said.what == "tool call" else ""
        place = f"{where} {said.what}{number}"
        if one is None or other is None or (one.what, one.name) != (other.what, other.name):
            yield show_difference(place, _shown(one), _shown(other))
            continue
        if one.text == other.text:
            continue
        trees = _tree(one.text), _tree(other.text)
        if trees[0] is not None and trees[1] is not None:
            found = list(islice(tree_differences(trees[0], trees[1]), _LOOKED_AT))
            for inner in found:
                path = inner.place.removeprefix("body ")
                yield Difference(f"{place} {path}", inner.recorded, inner.asked)
            if found:
                continue  # else they differ as texts alone: a key that is there twice, or how a number is written
        yield show_difference(place, one.text, other.text)


def _tree(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    return find_json(text.encode("utf-8", "surrogatepass"))


def _shown(said: Said | None) -> str:
    if said is None:
        return ABSENT
    name = f"{said.name} " if said.name else ""
    return f"{name}{said.text}" if said.text else name or json.dumps("")
