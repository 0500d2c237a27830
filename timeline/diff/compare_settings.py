"""Compare what two model calls ask with beside their messages: model, system prompt, tools, every other member."""

import json
import re
from calendar import day_abbr, day_name, month_abbr, month_name
from collections import Counter
from functools import lru_cache

from .acts import Settings
from .made_anew import Anew, find_anew
from .pair_ids import pair_ids, zip_tokens
from .renaming import Pair

_MONTHS = "|".join(filter(None, (*month_name, *month_abbr)))
_DAYS = "|".join((*day_name, *day_abbr))
DATE = re.compile(
    rf"\b(?:[0-9]{{1,2}}(?:st|nd|rd|th)?\s+)?(?:{_MONTHS})\b\.?(?:\s+[0-9]{{1,2}}(?:st|nd|rd|th)?\b(?![.,]?[0-9%]))?(?:,?\s+(?:19|20)[0-9]{{2}}\b)?"
    rf"|\b(?:{_DAYS})\b"
    r"|\b[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}(?![0-9])|\b[0-9]{1,2}[/.][0-9]{1,2}[/.](?:19|20)[0-9]{2}\b"
    r"|T?(?<![0-9:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:\s*[aApP][mM]\b)?(?:Z|\s*UTC|[+-][0-9]{2}:?[0-9]{2})?(?![0-9:])"
)
"""A date or a time of day, as a prompt states it."""
_PROMPT = 1024 * 1024
"""Characters of a system prompt in which ids and dates are looked for."""
_TOLD = 64 * 1024
"""Characters of a prompt in which lines are looked for."""


def same_settings(one: Settings | None, other: Settings | None) -> bool:
    """Say whether two model calls ask with the same beside their messages; whether ids fit is not asked here."""
    if one is None or other is None:
        return one is other
    return not find_differing(one, other)


def find_differing(one: Settings, other: Settings) -> list[str]:
    """Name what differs between the settings of two model calls."""
    names = ["model"] if one.model != other.model else []
    if one.beside != other.beside:
        sides = one.beside, other.beside
        names += [
            name
            for name in {**one.beside, **other.beside}
            if _shown(sides[0], name)[0] != _shown(sides[1], name)[0]
        ]
    if {link[0] for link in one.links} != {link[0] for link in other.links}:
        names += sorted({link[0] for link in one.links} ^ {link[0] for link in other.links})
    return names if same_prompt(one.system, other.system) else [*names, "system"]


def _shown(beside: dict[str, str], name: str) -> tuple[str, tuple[Anew, ...]]:
    """Give a member of a request with a constant for its ids and times, and these."""
    return _beside_form(f"{json.dumps(name)}: {beside[name]}") if name in beside else ("", ())


@lru_cache(256)
def _beside_form(text: str) -> tuple[str, tuple[Anew, ...]]:
    return find_anew(text)


def pair_settings(one: Settings, other: Settings) -> list[Pair]:
    """Give the ids and times in the settings of two model calls that are the same otherwise."""
    prompts = (_prompt_form(side.system)[1] for side in (one, other))
    # What day it is does not count, and what the prompt says of it may be sent.
    pairs = [
        pair._replace(may_begin=pair.may_begin or pair.is_time)
        for pair in zip_tokens(*prompts, begins=False)
    ]
    if one.beside != other.beside:
        for name, text in one.beside.items():
            if other.beside.get(name) != text:
                tokens = (_shown(side.beside, name)[1] for side in (one, other))
                pairs += zip_tokens(*tokens, begins=False)
    for link, there in zip(one.links, other.links, strict=False):
        pairs += pair_ids(link[1], there[1], begins=link[2])
    return pairs


def same_prompt(one: str, other: str) -> bool:
    """Say whether two system prompts are the same, but for ids, dates and times of day; whether ids fit is not asked here."""
    return one == other or _prompt_form(one)[0] == _prompt_form(other)[0]


@lru_cache(64)
def _prompt_form(text: str) -> tuple[str, tuple[Anew, ...]]:
    """Give a system prompt with a constant for ids, dates and times of day, and its ids."""
    shown, tokens = find_anew(text[:_PROMPT])
    return DATE.sub("0", shown) + text[_PROMPT:], tokens


def tell_apart(one: str, other: str) -> object:
    """Give in what two system prompts differ, dates and times aside: the same where a clock in one of them goes on."""
    lines, others = (Counter(text[:_TOLD].splitlines()) for text in (one, other))
    gone, come = lines - others, others - lines
    return tuple(
        tuple(sorted(_prompt_form(line)[0] for line in side.elements())) for side in (gone, come)
    )
