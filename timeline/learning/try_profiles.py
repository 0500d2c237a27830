"""Try the profiles of clients on recordings: what each leaves out, and what differs all the same.

Of one recording it is counted in how many requests each place of a profile is. Two recordings of one task are compared as
`learn` does: which places differed and are left out, and which differ and are not. A value that an earlier answer of
the same recording brought differs from recording to recording, and not in a replay; it is left out of the account.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from time import thread_time
from typing import Any

from ...config import Config
from ...config.profiles.client_profile import Profile
from ...config.profiles.shipped_profiles import find_profiles, shipped_profiles
from ...store import RunInfo, Store
from ...tape.canonical.canonical_request import Rules, counted_body, rules_of
from ...tape.canonical.json import quick_tree
from ...tape.canonical.regex_masks import find_placed, what_is_left
from ...tape.exchange import Exchange, Message, Request, RequestClass, Seq
from ...tape.matching.index import reclassify
from ...tape.matching.profile_use import ProfileUse, find_message_use, find_profile_use
from ..receipts.safe_terminal_text import plain, table
from .learn import FLOWS, Lesson

_ROWS = 30
_NOT_ASKED = (RequestClass.EFFECT, RequestClass.TELEMETRY)
"""Of these no profile leaves anything out."""


@dataclass(slots=True)
class Trial:
    """What became of one profile."""

    profile: str
    version: int
    requests: int = 0
    """Of its client; of two recordings those that have a partner, each pair once."""
    places: Counter[str] = field(default_factory=Counter)
    """Places, and in how many of these requests each was, or in how many pairs it differed."""
    without: list[str] = field(default_factory=list)
    """Places of the profile that were in none, or differed in none."""
    still: list[dict[str, Any]] = field(default_factory=list)
    """What differs at its endpoints all the same: pattern, place and how often."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types; `docs/commands-rules.md` describes them."""
        return {
            "profile": self.profile,
            "version": self.version,
            "requests": self.requests,
            "places": dict(self.places),
            "without": self.without,
            "still": self.still,
        }


def try_on_one(store: Store, run: RunInfo, config: Config) -> list[Trial]:
    """Count the places of profiles in the requests of a recording. Blocking; reads it once."""
    rules = rules_of(config, thread_time)
    trials: dict[str, Trial] = {}
    for recorded in store.exchanges.all(run):
        exchange = reclassify(recorded, config.classes)
        kind = exchange.request_class
        profile = rules.profiles.find(exchange.request)
        if profile is None or kind in _NOT_ASKED:
            continue
        trial = trials.setdefault(profile.name, Trial(profile.name, profile.version))
        trial.requests += 1
        trial.places.update(_present(exchange, _texts(store, run, exchange, rules), rules))
    return _finish(trials, config)


def try_on_two(
    store: Store, first: RunInfo, second: RunInfo, config: Config, lesson: Lesson
) -> list[Trial]:
    """Compare two recordings of one task under the profiles. Blocking; reads partners again.

    lesson: what `learn` says of them, under the same profiles.
    Raises: LogCorrupt.
    """
    rules = rules_of(config, thread_time)
    trials: dict[str, Trial] = {}
    clients: dict[Seq, str] = {}
    for pair in lesson.pairs:
        found = [
            store.exchanges.find(run, seq) for run, seq in zip((first, second), pair, strict=True)
        ]
        one, other = (reclassify(each, config.classes) for each in found if each is not None)
        profile = rules.profiles.find(other.request)
        if profile is None or other.request_class in _NOT_ASKED:
            continue
        trial = trials.setdefault(profile.name, Trial(profile.name, profile.version))
        trial.requests += 1
        clients[pair[0]] = profile.name
        said = store.messages.all(first, pair[0], -1), store.messages.all(second, pair[1], -1)
        trial.places.update(_needed(one, other, said, rules))
    _add_still(trials, clients, lesson)
    return _finish(trials, config)


def _finish(trials: dict[str, Trial], config: Config) -> list[Trial]:
    profiles = {one.name: one for one in find_profiles(config.profiles_off, config.profiles)}
    for trial in trials.values():
        trial.without = [one for one in _places(profiles[trial.profile]) if one not in trial.places]
    return sorted(trials.values(), key=lambda trial: trial.profile)


def _places(profile: Profile) -> list[str]:
    return list(dict.fromkeys(place.text for place in profile.places))


def _add_still(trials: dict[str, Trial], clients: dict[Seq, str], lesson: Lesson) -> None:
    for place in lesson.places:
        name = clients.get(place.seqs[0])
        if name is None or place.why == FLOWS:
            continue
        row = {"match": place.match, "place": place.place, "seen": place.seen}
        trials[name].still.append({**row, "values": list(place.values)})


def _needed(
    one: Exchange, other: Exchange, said: tuple[Iterable[Message], Iterable[Message]], rules: Rules
) -> list[str]:
    """Give the places of a pair that differ and are left out."""
    kind = other.request_class
    uses: list[ProfileUse | None] = [find_profile_use(one.request, other.request, rules, kind)]
    if one.websocket is not None and other.websocket is not None:
        asked = ([each for each in messages if each.from_client] for messages in said)
        for old, new in zip_longest(*asked):
            if old is not None and new is not None:
                uses.append(find_message_use(other.request, old.data, new.data, rules, kind))
    return list(dict.fromkeys(place for use in uses if use is not None for place in use.places))


def _texts(store: Store, run: RunInfo, exchange: Exchange, rules: Rules) -> Iterator[bytes]:
    """Give what a client said in a request: its body, or its messages."""
    if exchange.websocket is not None:
        for message in store.messages.all(run, exchange.seq, -1):
            if message.from_client:
                yield message.data
    elif exchange.request.spilled is None:
        yield counted_body(exchange.request, rules)


def _present(exchange: Exchange, texts: Iterable[bytes], rules: Rules) -> list[str]:
    """Give the places of a profile at which its patterns find something."""
    request: Request = exchange.request
    masks = rules.of(request, exchange.request_class).masks
    found = [
        one.text
        for one in masks.fields
        for name, value in request.headers
        if name.lower() == one.name
        and len(what_is_left(value.decode("latin-1"), (one.pattern,))) > 1
    ]
    for text in texts:
        try:
            tree = quick_tree(text)
        except ValueError:
            continue
        found += [
            placed.text
            for each in find_placed(tree, False, masks.placed)
            for placed in each.placed
            if len(what_is_left(each.value, (placed.pattern,))) > 1
        ]
    return list(dict.fromkeys(found))


def list_profiles(config: Config) -> list[dict[str, Any]]:
    """List the profiles, those of the configuration behind the shipped ones; `docs/commands-rules.md` describes the keys."""
    known = {one.name: one for one in shipped_profiles()}
    known |= {one.name: one for one in find_profiles((), config.profiles)}
    return [
        {
            "profile": one.name,
            "version": one.version,
            "client": one.client,
            "user_agent": list(one.products),
            "client_versions": sorted({place.evidence.client_version for place in one.places}),
            "places": _places(one),
            "off": one.name in config.profiles_off,
        }
        for one in known.values()
    ]


def render_profiles(rows: Sequence[dict[str, Any]]) -> str:
    """Show the shipped profiles."""
    head = ("PROFILE", "VERSION", "CLIENT", "RUN AS", "PLACES", "")
    shown = [
        (
            row["profile"],
            str(row["version"]),
            row["client"],
            ", ".join(row["client_versions"]),
            str(len(row["places"])),
            "off" if row["off"] else "",
        )
        for row in rows
    ]
    return table([head, *shown])


def render_rest(trials: Sequence[Trial], name: str) -> str:
    """Give comments that say what differs all the same where a client has this profile."""
    still = [row for trial in trials if trial.profile == name for row in trial.still]
    lines = [f"# Tried on both recordings: {len(still)} places of its client differ all the same."]
    lines += [
        f"#   {plain(row['place'], 80)}: {' | '.join(plain(one, 60) for one in row['values'])}"
        for row in still[:_ROWS]
    ]
    return "\n".join(lines) + "\n"


def render_trials(trials: Sequence[Trial], *, two: bool) -> str:
    """Show what became of the profiles."""
    if not trials:
        return "no request is that of a client with a profile; `playhead profiles` lists them"
    lines: list[str] = []
    what, none = ("differ in", "differ in none") if two else ("is in", "is in none")
    for trial in trials:
        count = "pairs of requests" if two else "requests"
        lines.append(f"profile {trial.profile} {trial.version}: {trial.requests} {count}")
        for place, number in trial.places.items():
            lines.append(f"  left out  {plain(place, 80)}  {what} {number}")
        lines += [f"  unused    {plain(place, 80)}  {none}" for place in trial.without]
        for row in trial.still[:_ROWS]:
            values = " | ".join(plain(value, 60) for value in row["values"])
            lines.append(
                f"  NOT LEFT OUT  {plain(row['place'], 80)}  {row['seen']} times: {values}"
            )
        if len(trial.still) > _ROWS:
            lines.append(f"  … and {len(trial.still) - _ROWS} more")
    if two:
        still = sum(len(trial.still) for trial in trials)
        told = (
            "all that differs in model calls and reads is left out, or comes from earlier answers"
        )
        lines.append(f"{still} places differ and are not left out" if still else told)
    return "\n".join(lines)
