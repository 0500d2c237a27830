"""Propose the profile of a client from two recordings of one task: a text to be looked at, and then named in `profiles`.

Looked at are the model calls and reads of one client, the one that differs in most places. Proposed is a place whose values differ in
tokens alone (`tape/diff/token_pattern.py`), if what a pattern finds is proved to be made anew by its name (`tokens_made_anew.py`), and if nothing of it
was there before the client sent it (`seen_before_sent.py`). What differs otherwise is listed as a comment, and values from earlier
answers are no difference. Nothing is applied.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from ...config import Config, parse_match
from ...config.parse_values import parse_json_path
from ...config.profiles.client_profile import (
    Profile,
    ProfilePlace,
    parse_field,
    parse_path,
    parse_profile,
)
from ...config.profiles.client_profile_file import ProfileFile
from ...config.profiles.command_programs import find_program
from ...config.profiles.overbroad_patterns import find_wide
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import compile_rules, open_body
from ...tape.canonical.client_profiles import find_product
from ...tape.canonical.json import quick_tree
from ...tape.canonical.regex_masks import Pattern, Placed, find_placed
from ...tape.diff.divergence_types import Difference
from ...tape.diff.field_name_meaning import name_words
from ...tape.diff.made_anew import Window
from ...tape.diff.request_differences import differences
from ...tape.diff.suggest_rule import is_content
from ...tape.diff.token_pattern import find_durations, find_token_patterns
from ...tape.exchange import Exchange, RequestClass, Seq
from ..receipts.command.command_end import find_command
from .id_links import tie_requests
from .identifying_words import HashWord, find_words
from .learn import FLOWS, Lesson, Place, with_indexes
from .seen_before_sent import Known, When, find_first, find_given, read_told
from .tokens_made_anew import Times, are_proved

SDK_PRODUCTS = frozenset(
    (
        *(b"openai", b"asyncopenai", b"anthropic", b"asyncanthropic", b"litellm", b"cohere"),
        *(b"google-genai-sdk", b"mistral-client-python", b"groq", b"ollama-python", b"boto3"),
        *(b"langchain", b"ai", b"ai-sdk", b"botocore", b"python-requests", b"python-httpx"),
        *(b"aiohttp", b"node", b"node-fetch", b"undici", b"axios", b"bun", b"deno", b"mozilla"),
        *(b"go-http-client", b"okhttp", b"java", b"curl", b"python-urllib", b"python"),
    )
)
"""What many clients name in their `user-agent`: a profile asks for the process as well."""
_ASKED = (RequestClass.INFERENCE, RequestClass.READ)
_LIMIT = 200
"""Most differences of a pair that are looked at."""
_CLOCK = re.compile(rb"[0-9TZ:. +-]+")
_NOTHING = Pattern.later("()")
_TRIED = (
    "a token that in one recording differs from the other there, and the rest of the value does not"
)
_CHANCE = "a duration that may be the same in both recordings by chance"


_UNPROVED = "Differs in tokens that nothing proves to be made anew, so that they may be content"


class _Found(NamedTuple):
    """Patterns for a place."""

    patterns: tuple[str, ...]
    is_all: bool = True
    """Whether all tokens that differ there have one."""


_NONE = _Found(())


class _Pair(NamedTuple):
    """A request of the client in both recordings."""

    one: Exchange
    other: Exchange


def propose_profile(
    store: Store,
    first: RunInfo,
    second: RunInfo,
    lesson: Lesson,
    name: str,
    hashed: HashWord | None = None,
) -> tuple[str, ProfileFile | None]:
    """Give the text of a profile, and the same as a file if it has any place. Blocking; reads partners again.

    lesson: what `learn` says of the two.
    name: of the profile.
    hashed: as for `learn`.
    Raises: LogCorrupt.
    """
    pairs = {
        seqs: _Pair(one, other)
        for seqs in lesson.pairs
        if (one := store.exchanges.find(first, seqs[0])) is not None
        and (other := store.exchanges.find(second, seqs[1])) is not None
        and other.request_class in _ASKED
    }
    places = [one for one in lesson.places if one.seqs in pairs and one.why != FLOWS]
    products = Counter(find_product(pairs[one.seqs].other.request.headers) for one in places)
    products.pop(b"", None)
    if not products:
        return "# No model call or read of a client with a user agent differs.\n", None
    product = products.most_common(1)[0][0]
    mine = [one for one in pairs.values() if find_product(one.other.request.headers) == product]

    def find(place: Place) -> _Found:
        if not _where(place):
            return _NONE
        both = [
            (value, Times(_time(first, pair.one), _time(second, pair.other)))
            for pair in mine
            for value in _values(store, (first, second), pair, place)
        ]
        patterns = find_token_patterns(value for value, _ in both if value[0] != value[1])
        if any(_is_wide(place, one) for one in patterns):
            return _NONE
        if place.place.startswith("header ") and not _leave_out(place, patterns, mine, product):
            return _NONE
        is_question = _may_be_content(place, pairs)
        own = frozenset(name_words(product.decode("latin-1")))
        proved = tuple(
            [
                one
                for one in patterns
                if are_proved(place.place, one, both, own, is_question=is_question)
                and not any(
                    _is_brought(
                        store,
                        run,
                        (first, second),
                        place,
                        one,
                        product,
                        hashed,
                        is_question=is_question,
                    )
                    for run in (first, second)
                )
            ]
        )
        return _Found(proved, is_all=len(proved) == len(patterns))

    def find_more(place: Place, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if _may_be_content(place, pairs):
            return ()
        both = [value for pair in mine for value in _values(store, (first, second), pair, place)]
        found = find_durations((text for pair in both for text in pair), patterns)
        return tuple(one for one in found if not _is_wide(place, one))

    entries, left, unproved = list[str](), list[str](), list[str]()
    for wide, places_there in _with_all_items(places).items():
        own = [
            one
            for one in places_there
            if find_product(pairs[one.seqs].other.request.headers) == product
        ]
        tried = [wide] if own and find(wide).patterns else places_there
        for place in tried:
            patterns, is_all = find(place) if own else _NONE
            for regex in patterns:
                values = (_values(store, (first, second), pair, place) for pair in mine)
                linked = tie_requests(regex, map(list, values))
                entries.append(_entry(place, regex, _TRIED, mine, (first, second), linked=linked))
            if patterns:
                more = find_more(place, patterns)
                entries += [_entry(place, one, _CHANCE, mine, (first, second)) for one in more]
            if not patterns or not is_all:
                told = " | ".join(place.values)
                listed = left if is_all else unproved
                listed.append(f"#   {place.match}  {place.place}: {told}")
    process = (
        find_program(find_command(store.events.all(second))) if product in SDK_PRODUCTS else ""
    )
    text = _head(name, product.decode("ascii", "replace"), process)
    text += "places:\n" + "".join(entries) if entries else ""
    if left:
        text += "\n".join(["# Differs, and not in tokens alone:", *left]) + "\n"
    if unproved:
        text += "\n".join([f"# {_UNPROVED}:", *unproved]) + "\n"
    if not entries:
        return text, None
    parse_profile(text, name)
    return text, ProfileFile(f"{name}.yaml", text)


def _with_all_items(places: Iterable[Place]) -> dict[Place, list[Place]]:
    """Give the places that are one with `*` for each index.

    In which item of a list a token stands depends on what was said before.
    """
    first: dict[tuple[str, str], Place] = {}
    found: dict[Place, list[Place]] = {}
    for one in places:
        wide = replace(one, place=with_indexes(one.place, None))
        found.setdefault(first.setdefault((wide.match, wide.place), wide), []).append(one)
    return found


def _may_be_content(place: Place, pairs: Mapping[tuple[Seq, Seq], _Pair]) -> bool:
    """Say whether a place is in what a model is asked, or in the body of a read."""
    kind = pairs[place.seqs].other.request_class
    if kind is RequestClass.READ:
        return place.place.startswith("body")
    return is_content(Difference(place.place, *place.values), kind)


def _time(run: RunInfo, exchange: Exchange) -> Window:
    """Give when the values of a request were made; the messages of a WebSocket may have been until the end."""
    until_ns = exchange.started_ns if exchange.websocket is None else run.sealed_ns
    return Window(run.created_ns / 1e9, max(until_ns, exchange.started_ns) / 1e9)


def with_profile(config: Config, file: ProfileFile) -> Config:
    """Give a configuration with one more profile."""
    return replace(config, profiles=(*config.profiles, file))


def _is_wide(place: Place, pattern: str) -> bool:
    """Say whether a profile with a pattern would not load: what does not is not proposed."""
    return place.place.startswith("body") and bool(find_wide(pattern))


def _leave_out(
    place: Place, patterns: Iterable[str], mine: Iterable[_Pair], product: bytes
) -> bool:
    """Say whether requests are the same at a header field with these patterns: some fields are compared otherwise than they are written."""
    match, name = parse_match(place.match), parse_field(place.place.partition(" ")[2])
    tried = tuple([ProfilePlace(match, "", one, header=name) for one in patterns])
    rules = compile_rules(profiles=[Profile("tried", 1, "", (product.decode("latin-1"),), tried)])
    return not any(
        found.place == place.place
        for pair in mine
        for found in differences(
            pair.one.request, pair.other.request, rules, pair.other.request_class, limit=_LIMIT
        )
    )


def _where(place: Place) -> str:
    """Give the line of a profile that names a place; empty where none can."""
    kind, _, name = place.place.partition(" ")
    try:
        if kind == "body":
            return f"json: {json.dumps(parse_path(name))}"
        return f"header: {json.dumps(parse_field(name))}" if kind == "header" else ""
    except ValueError:
        return ""


def _head(name: str, product: str, process: str) -> str:
    only = f"  process: [{json.dumps(process)}]\n" if process else ""
    return (
        f"profile: {json.dumps(name)}\nversion: 1\nclient: {json.dumps(name)}\n"
        f"recognise:\n  user_agent: [{json.dumps(product)}]\n{only}"
    )


def _entry(
    place: Place,
    regex: str,
    reason: str,
    mine: list[_Pair],
    runs: tuple[RunInfo, RunInfo],
    *,
    linked: bool = False,
) -> str:
    agent = mine[0].other.request.header(b"user-agent") or b""
    named = b"".join(agent.split(None, 1)[:1]).split(b"/")[1:2]
    version = named[0].decode("ascii", "replace") if named else "unknown"
    recordings = json.dumps([run.id for run in runs])
    return (
        f"  - match: {json.dumps(place.match)}\n    {_where(place)}\n    regex: {json.dumps(regex)}\n"
        f"{'    linked: true' + chr(10) if linked else ''}"
        f"    reason: {json.dumps(reason)}\n"
        f"    client_version: {json.dumps(version)}\n    recordings: {recordings}\n"
    )


def _values(
    store: Store, runs: tuple[RunInfo, RunInfo], pair: _Pair, place: Place
) -> Iterator[tuple[str, str]]:
    """Give what stands in a place in both recordings, whether it differs or not."""
    request = pair.one.request
    target = (request.method, request.scheme, request.host, request.port, request.target)
    if not parse_match(place.match).matches(*target):
        return
    kind, _, name = place.place.partition(" ")
    if kind == "header":
        fields = (side.request.header(name.encode()) for side in pair)
        old, new = ((value or b"").decode("latin-1") for value in fields)
        yield old, new
        return
    if not name.startswith("$"):
        return
    placed = Placed(parse_json_path(name), _NOTHING, name)
    for texts in zip_longest(
        *(_texts(store, run, side) for run, side in zip(runs, pair, strict=True))
    ):
        olds, news = (_find(text, placed) for text in texts)
        for trail, old in olds.items():
            if trail in news:
                yield old, news[trail]


def _is_brought(
    store: Store,
    run: RunInfo,
    runs: tuple[RunInfo, RunInfo],
    place: Place,
    regex: str,
    product: bytes,
    hashed: HashWord | None,
    *,
    is_question: bool,
) -> bool:
    """Say whether something that a pattern leaves out of any request of the client was there before it was sent."""
    sent = list(_find_sent(store, run, place, Pattern(regex), product))
    wanted = {word for _, token in sent for word in find_words(token)}

    def is_model(exchange: Exchange) -> bool:
        # The question itself has what is in it.
        return exchange.request_class is RequestClass.INFERENCE and not is_question

    told = find_first(read_told(store, run, runs, is_model), wanted)
    known = Known(told | find_given(store, runs, wanted, hashed))
    return any(
        known.holds(token.decode("utf-8", "replace"), before, is_time=_is_clock(token))
        for before, token in sent
    )


def _is_clock(token: bytes) -> bool:
    return _CLOCK.fullmatch(token) is not None


def _find_sent(
    store: Store, run: RunInfo, place: Place, pattern: Pattern, product: bytes
) -> Iterator[tuple[When, bytes]]:
    """Give what a pattern finds at a place in all requests of a client, and when each was sent."""
    kind, _, name = place.place.partition(" ")
    match, placed = parse_match(place.match), None
    if kind == "body" and name.startswith("$"):
        placed = Placed(parse_json_path(name), _NOTHING, name)
    for exchange in store.exchanges.all(run):
        request = exchange.request
        target = (request.method, request.scheme, request.host, request.port, request.target)
        if not match.matches(*target) or find_product(request.headers) != product:
            continue
        at: When = int(exchange.seq), -1
        said: list[tuple[When, bytes]] = []
        if kind == "header":
            said = [(at, request.header(name.encode()) or b"")]
        elif placed is not None and exchange.websocket is None:
            texts = _find(open_body(request)[0], placed).values()
            said = [(at, text.encode("utf-8", "surrogatepass")) for text in texts]
        elif placed is not None:
            for number, message in enumerate(store.messages.all(run, exchange.seq, -1)):
                if message.from_client:
                    said += [
                        ((int(message.after), number), text.encode("utf-8", "surrogatepass"))
                        for text in _find(message.data, placed).values()
                    ]
        for before, text in said:
            for start, end in pattern.find(text):
                yield before, text[start:end]


def _find(text: bytes | None, placed: Placed) -> dict[tuple[str | int, ...], str]:
    try:
        return {
            one.trail: one.value for one in find_placed(quick_tree(text or b""), False, (placed,))
        }
    except ValueError:
        return {}


def _texts(store: Store, run: RunInfo, exchange: Exchange) -> Iterator[bytes]:
    if exchange.websocket is None:
        yield open_body(exchange.request)[0]
        return
    for message in store.messages.all(run, exchange.seq, -1):
        if message.from_client:
            yield message.data
