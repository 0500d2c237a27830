"""Where a value came from, as text in 80 columns and as JSON types."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from ...tape.shell_words import shell_word
from ..show.fit import fit
from ..show.listing import WIDTH
from .exchange_values import Scalar
from .find_origin import Blame, Sighting

_NONE_MADE: Mapping[int, str] = MappingProxyType({})
_SHOWN = 8
"""Places of the way that are shown; of more the first and the last."""


def render_blame(blame: Blame, run: str, made: Mapping[int, str] = _NONE_MADE) -> Iterator[str]:
    """Give the lines that say where a value came from.

    made: exchanges whose answers nobody gave, each with the word for it.
    """
    yield fit(f"{blame.step} {blame.place}: {_show(blame.value)}", WIDTH)
    yield f"  {fit(blame.exchange, WIDTH - 2)}"
    origin, evidence = blame.origin, blame.evidence
    if origin is None or evidence is None:
        yield f"nothing before {blame.step} has it: the agent made it, or has it from outside of the"
        yield "recorded traffic"
    else:
        yield fit(f"first in {_name(origin)} ({evidence.value}: {blame.rule})", WIDTH)
        yield f"  {fit(_exchange(origin, made), WIDTH - 2)}"
        yield f"    {fit(_around(origin, blame), WIDTH - 4)}"
        if origin.side == "request":
            yield fit(f"  {_who(origin)}", WIDTH)
            answer = blame.answer
            told = f"first answer with it: {_name(answer)}" if answer else "no answer before has it"
            yield fit(f"  {told}", WIDTH)
        yield from _render_way(blame, made)
        for part in blame.parts[1:]:
            yield fit(f"part {part.text!r}: first in {_name(part.origin)}", WIDTH)
        yield f"  {fit(f'playhead show {shell_word(run)} {origin.step}', WIDTH - 2)}"
    for one in blame.unseen:
        yield fit(f"not seen by the agent in time: {_name(one)}", WIDTH)
        yield f"  {fit(_exchange(one, made), WIDTH - 2)}"
        yield f"  {fit(f'playhead show {shell_word(run)} {one.step}', WIDTH - 2)}"
    for hint in blame.hints:
        yield fit(f"perhaps: {hint}", WIDTH)
    if blame.unread:
        seqs = ", ".join(map(str, blame.unread[:10]))
        yield fit(f"not looked at, since their bodies are in files: {seqs}", WIDTH)
    if blame.looked_until:
        yield f"not looked at behind {blame.looked_until}: so many have it that more tell nothing"


def _render_way(blame: Blame, made: Mapping[int, str]) -> Iterator[str]:
    way = blame.sightings
    if len(way) < 2:
        return
    yield "then in"
    rest = way[1:]
    cut = len(rest) - _SHOWN
    for one in rest if cut <= 0 else rest[: _SHOWN // 2]:
        yield f"  {fit(_step(one, made), WIDTH - 2)}"
    if cut > 0:
        yield f"  … {cut} more"
        for one in rest[-_SHOWN // 2 :]:
            yield f"  {fit(_step(one, made), WIDTH - 2)}"


def _step(one: Sighting, made: Mapping[int, str]) -> str:
    return f"{_name(one)}{f' ({one.rule})' if one.rule else ''}  {_exchange(one, made)}"


def _exchange(one: Sighting, made: Mapping[int, str]) -> str:
    """Name an exchange; an answer that the service did not give is said to be none of its own."""
    word = _find_word(one, made)
    return f"{word}, not given by the service: {one.exchange}" if word else one.exchange


def _find_word(one: Sighting, made: Mapping[int, str]) -> str | None:
    return made.get(one.seq) if one.side == "answer" else None


def _name(one: Sighting) -> str:
    what = f" ({one.what})" if one.what and one.what not in one.place else ""
    return f"{one.step} {one.side} {one.place}{what}"


def _who(origin: Sighting) -> str:
    """Say who may have said what a request has first."""
    return {
        "user": "said by the agent's user",
        "system prompt": "in the agent's own prompt",
        "system": "in the agent's own prompt",
        "tools": "in the agent's own tools",
        "tool result": "given by a tool that the agent runs itself",
        "assistant": "said by a model, in an answer that was not recorded",
        "tool call": "said by a model, in an answer that was not recorded",
    }.get(origin.what, "put there by the agent")


def _around(origin: Sighting, blame: Blame) -> str:
    """Show what is there; of a long text from a little before the value."""
    told = _show(origin.value)
    sought = _show(blame.value)
    at = told.find(sought)
    return f"…{told[at - 16 :]}" if at > WIDTH - 24 else told


def _show(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def blame_json(blame: Blame, made: Mapping[int, str] = _NONE_MADE) -> dict[str, Any]:
    """Give it as JSON types; `docs/blame.md` describes them.

    made: exchanges whose answers nobody gave, each with the word for it.
    """
    evidence = blame.evidence
    return {
        "seq": blame.seq,
        "part": blame.part or None,
        "place": blame.place,
        "value": blame.value,
        "telling": blame.telling,
        "evidence": evidence.value if evidence is not None else None,
        "rule": blame.rule or None,
        "origin": _sighting(blame.origin, made),
        "answer": _sighting(blame.answer, made),
        "way": [_sighting(one, made) for one in blame.sightings],
        "parts": [
            {"text": part.text, "origin": _sighting(part.origin, made)} for part in blame.parts
        ],
        "unseen": [_sighting(one, made) for one in blame.unseen],
        "hints": blame.hints,
        "unread": blame.unread,
        "looked_until": blame.looked_until or None,
    }


def _sighting(one: Sighting | None, made: Mapping[int, str]) -> dict[str, Any] | None:
    if one is None:
        return None
    shown = asdict(one) | {"part": one.part or None, "made": _find_word(one, made)}
    del shown["at_ns"]
    return shown
