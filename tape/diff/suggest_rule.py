"""The `ignore` rule that would make two requests match: proposed to a person, never applied.

Only where every difference is at a place that a rule can name, and where the rule then really makes the two
equal: that is tried before it is proposed.
"""

import json
import re
from collections.abc import Iterable
from urllib.parse import unquote_plus

from ...config.match_pattern import parse_match
from ...config.parse_values import check_json_path, parse_header_name, parse_parameter
from ...config.schema import IgnoreRule
from ..canonical.azure_block_names import without_block_names
from ..canonical.canonical_request import DEFAULT_IGNORE, Rules, canonical, compile_rules
from ..exchange import Request, RequestClass
from .classify_differing_values import Seen, ValueClass, classify_values, decode_shown
from .divergence_types import Difference
from .made_anew import Value, Window, is_proved

_MOST_PLACES = 32
_EFFECT_NOTE = "this is an effect: with the rule, a request that differs there gets the recorded answer all the same"


def propose_rule(
    recorded: Request,
    asked: Request,
    found: Iterable[Difference],
    rules: Rules,
    request_class: RequestClass,
    redacted_query: frozenset[str] = frozenset(),
) -> str:
    """Give the lines of YAML that would make two requests match; empty where no rule does.

    found: every difference of the two; a place that only one of them has cannot be ignored.
    """
    places: dict[str, list[str]] = {"json": [], "header": [], "query": [], "form": []}
    count = 0
    try:
        for one in found:
            key, name = _maskable(one.place)
            count += 1
            if count > _MOST_PLACES:
                return ""
            if name not in places[key]:
                places[key].append(name)
        match = parse_match(_pattern(asked))
    except ValueError:
        return ""
    rule = IgnoreRule(match, **{key: tuple(names) for key, names in places.items()})
    # Bounded as the rules are.
    clock = rules.searched[0].clock if rules.searched else None
    own = rules.ignore[len(DEFAULT_IGNORE) :]
    more = compile_rules((*own, rule), clock, rules.fields, rules.profiles.all)
    old, new = (
        canonical(without_block_names(request), request_class, more, redacted_query)
        for request in (recorded, asked)
    )
    return _yaml(match.text, places) if count and old == new else ""


def is_volatile(found: Iterable[Difference], recorded_s: float, asked_s: float) -> bool:
    """Say whether every difference is of values that a program makes anew each time, as `learn` has it.

    recorded_s, asked_s: when either request was made, in seconds since the epoch.
    """
    windows = Window(recorded_s, recorded_s), Window(asked_s, asked_s)
    return all(
        is_proved(
            one.place,
            _volatile_class(one, recorded_s, asked_s),
            tuple(
                [
                    Value(decode_shown(one.place, shown), window)
                    for shown, window in zip((one.recorded, one.asked), windows, strict=True)
                ]
            ),
        )
        for one in found
    )


def has_clock(found: Iterable[Difference], recorded_s: float, asked_s: float) -> bool:
    """Say whether a difference is one of times, or of ids or numbers that were drawn."""
    drawn = (ValueClass.TIME, ValueClass.ID, ValueClass.RANDOM)
    return any(_volatile_class(one, recorded_s, asked_s) in drawn for one in found)


def _volatile_class(one: Difference, recorded_s: float, asked_s: float) -> ValueClass:
    old, new = (decode_shown(one.place, shown) for shown in (one.recorded, one.asked))
    return classify_values([Seen(old, new, recorded_s, asked_s)])[0]


_MEMBER = re.compile(r"[^.\[\]'\"]+")
CONTENT_KEYS = frozenset(
    (
        *(
            "messages",
            "system",
            "tools",
            "functions",
            "input",
            "instructions",
            "prompt",
            "contents",
        ),
        *("systemInstruction", "system_instruction", "toolConfig", "message", "chat_history"),
        *("documents", "inputs", "texts", "query", "queries", "question", "passages"),
        *("content", "parts", "turns"),  # within what another member wraps, as in a live session
    )
)
"""Members of a model call that are its question, over all dialects, wherever they stand."""


def is_content(one: Difference, request_class: RequestClass) -> bool:
    """Say whether a place is what a request is about: anything of an effect, and what a model is asked."""
    if request_class is RequestClass.EFFECT:
        return True
    if request_class is not RequestClass.INFERENCE:
        return False
    what, _, path = one.place.partition(" $")
    if what != "body":
        return one.place.startswith("body")
    return not CONTENT_KEYS.isdisjoint(_MEMBER.findall(path))


def note_on(request_class: RequestClass) -> str:
    """Say what speaks against ignoring a place of such a request; empty where nothing does."""
    return _EFFECT_NOTE if request_class is RequestClass.EFFECT else ""


def _maskable(place: str) -> tuple[str, str]:
    """Give the list of a rule and the name in it.

    Raises: ValueError for a place that no rule can name.
    """
    what, _, name = place.partition(" ")
    match what:
        case "body" if name.startswith("$"):
            return "json", check_json_path(name)
        case "header" | "trailer":
            return "header", parse_header_name(name)
        case "query" | "form":
            return what, parse_parameter(unquote_plus(name))
    raise ValueError(f"{place!r} cannot be ignored")


def _pattern(request: Request) -> str:
    """Give the pattern of this method and URL without its query; `*` in it stands for itself and more."""
    return f"{request.method} {request.scheme}://{request.authority}{request.path}"


def _yaml(match: str, places: dict[str, list[str]]) -> str:
    lines = ["ignore:", f"  - match: {_quoted(match)}"]
    for key, names in places.items():
        if names:
            lines.append(f"    {key}: [{', '.join(map(_quoted, names))}]")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Quote a text for YAML, as JSON does, which YAML reads but for halves of surrogate pairs."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
