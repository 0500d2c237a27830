"""Shipped profiles against what their clients really ask: a token does not count, and everything else does."""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from playhead.config.profiles.shipped_profiles import shipped_profiles
from playhead.tape.canonical.canonical_request import Rules, canonical, compile_rules, fingerprint
from playhead.tape.canonical.json import quick_tree
from playhead.tape.canonical.regex_masks import find_placed
from playhead.tape.exchange import MessageKind, Request, RequestClass
from playhead.tape.matching.profile_use import find_message_use, find_profile_use
from playhead.tape.playback.websocket import is_same
from playhead.tests.support.profile_pairs import Pair, pairs

KIND = RequestClass.INFERENCE
RULES = compile_rules(profiles=shipped_profiles())
WITHOUT = compile_rules()
PAIRS = pairs()
CLIENTS = sorted({pair.name.split()[0] for pair in PAIRS})
MUTATIONS = 1000 if os.environ.get("PLAYHEAD_FULL") else 200
"""Of each client: a thousand and more of all."""


def alike(pair: Pair, asked: Request, rules: Rules) -> bool:
    """Say whether a request, or a message, would be served the recorded answer."""
    if pair.message:
        masks = rules.of(asked, KIND).masks
        return is_same(MessageKind.TEXT, pair.recorded.body, asked.body, masks)
    prints = {fingerprint(canonical(one, KIND, rules)) for one in (pair.recorded, asked)}
    return len(prints) == 1


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_two_runs_of_a_client_ask_the_same(pair: Pair) -> None:
    """By its profile, and not without; the match names the places."""
    assert alike(pair, pair.asked, RULES)
    assert not alike(pair, pair.asked, WITHOUT)
    if pair.message:
        use = find_message_use(pair.asked, pair.recorded.body, pair.asked.body, RULES, KIND)
    else:
        use = find_profile_use(pair.recorded, pair.asked, RULES, KIND)
    assert use is not None
    assert use.name == pair.name.split()[0]


def test_each_shipped_profile_has_real_requests() -> None:
    """A profile is shipped only for a client that was run; each of its places is in what it asked."""
    for profile in shipped_profiles():
        mine = [pair for pair in PAIRS if pair.name.split()[0] == profile.name]
        used = set()
        for pair in mine:
            find = find_message_use if pair.message else None
            use = (
                find(pair.asked, pair.recorded.body, pair.asked.body, RULES, KIND)
                if find is not None
                else find_profile_use(pair.recorded, pair.asked, RULES, KIND)
            )
            used |= set(use.places) if use is not None else set()
        assert used == {place.text for place in profile.places}, profile.name


@pytest.mark.parametrize("client", CLIENTS)
def test_nothing_but_a_token_may_be_another_one(client: str) -> None:
    """Of a thousand mutations outside of tokens, over all clients, none is served."""
    drawn = random.Random(client)
    mine = [pair for pair in PAIRS if pair.name.split()[0] == client]
    served = []
    for _ in range(MUTATIONS):
        pair = drawn.choice(mine)
        asked, told = mutated(pair.asked, drawn)
        if alike(pair, asked, RULES):
            served.append(told)
    assert served == []


# ---- mutations ---------------------------------------------------------------------------------


def mutated(request: Request, drawn: random.Random) -> tuple[Request, str]:
    """Give a request that is another one outside of tokens, and what was done to it."""
    masks = RULES.of(request, KIND).masks
    names = [one.name for one in masks.fields]
    if names and drawn.random() < 0.1:
        return _mutated_field(request, drawn)
    tree = json.loads(request.body)
    tokens = {
        one.trail: [span for each in one.placed for span in each.pattern.find(one.value.encode())]
        for one in find_placed(quick_tree(request.body), False, masks.placed)
    }
    # Shipped rules leave this out whoever asks.
    leaves = [one for one in _leaves(tree, ()) if one[0][0] != "prompt_cache_key"]
    while True:
        trail, holder, key = drawn.choice(leaves)
        change: Callable[..., bool] = drawn.choice(
            [_change_value, _change_value, _change_value, _drop, _add, _retype]
        )
        if change(holder, key, tokens.get(trail, []), drawn):
            break
    body = json.dumps(tree, separators=(",", ":")).encode()
    return replace(request, body=body), f"{change.__name__} {trail}"


def _mutated_field(request: Request, drawn: random.Random) -> tuple[Request, str]:
    fields = list(request.headers)
    at = drawn.choice([i for i, one in enumerate(fields) if one[0].lower() not in _NOISE])
    name, value = fields[at]
    spans = [
        span
        for one in RULES.of(request, KIND).masks.fields
        if one.name == name.lower()
        for span in one.pattern.find(value)
    ]
    text = _change_text(value.decode(), spans, drawn)
    if text is not None and text.strip() == value.decode():
        text += "."  # white space around a value is none of it
    fields[at : at + 1] = [] if text is None or drawn.random() < 0.2 else [(name, text.encode())]
    return replace(request, headers=tuple(fields)), f"header {name.decode()}"


_NOISE = (b"user-agent", b"content-type", b"originator", b"x-claude-code-session-id")
"""Not compared, linked, or what says which client it is."""


def _leaves(
    tree: Any, trail: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    members = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in members:
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, (*trail, key))
        else:
            yield (*trail, key), tree, key


def _change_value(
    holder: Any, key: Any, tokens: list[tuple[int, int]], drawn: random.Random
) -> bool:
    value = holder[key]
    if isinstance(value, str):
        text = _change_text(value, tokens, drawn)
        if text is not None:
            holder[key] = text
        return text is not None
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float) and not tokens:
        holder[key] = value + 1
    else:
        return False
    return True


def _change_text(text: str, tokens: list[tuple[int, int]], drawn: random.Random) -> str | None:
    """Change a text at one character outside of its tokens; None where there is none."""
    inside = {at for start, end in tokens for at in range(start, end + 1)}
    free = [at for at in range(len(text) + 1) if at not in inside]
    if not free or not text.isascii():
        return None if tokens else f"{text}x"
    at = drawn.choice(free)
    sign = drawn.choice("0a9 xZ-_.,\n\"'")
    if at == len(text) or drawn.random() < 0.4:
        return text[:at] + sign + text[at:]
    if drawn.random() < 0.5:
        return text[:at] + text[at + 1 :]
    return text[:at] + ("#" if text[at] == sign else sign) + text[at + 1 :]


def _drop(holder: Any, key: Any, tokens: list[tuple[int, int]], drawn: random.Random) -> bool:
    del holder[key]
    return True


def _add(holder: Any, key: Any, tokens: list[tuple[int, int]], drawn: random.Random) -> bool:
    if isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[f"{key}_2"] = holder[key]
    return True


def _retype(holder: Any, key: Any, tokens: list[tuple[int, int]], drawn: random.Random) -> bool:
    value = holder[key]
    holder[key] = str(value) if isinstance(value, int | float) else [value]
    return True
