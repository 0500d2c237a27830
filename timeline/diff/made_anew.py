"""Ids and times that a run makes anew, in a text: what may differ between two runs that did the same.

1. A UUID, hexadecimal digits, or letters and digits behind a prefix are an id; an IBAN is none. So are 16 letters, to which chance gave
   no digit, where the name of the place says so.
2. A number is an id or a time only if the name of its place says so, or if the run uses it as one elsewhere: an amount, a quantity, a
   phone number or the number of an account never are.
3. A time is made anew only where that is proved: by the name of its place (`created_at`), or as it is, to the second, a time of its
   own run. One that the run was given before is none: it may have chosen it. So is one of an answer that is as long after its request in
   both runs, as an expiry is. Any other is content, as a departure is.
4. A number of up to nine digits, as servers count, is an id where the name of its place says so, as a whole step of a path, and, from
   six digits on, wherever a run has it after it had it as an id. It stands for another only if the answer to an effect made both.
5. So is any other text without blanks, as `ord_1`, if the answer to an effect has it where the name of the place says that it is an id:
   there, and wherever the run has it from then on.
6. Who makes an id says whether it may stand for another: an answer does, and so does a request where the name of the place says that
   each request has its own.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ...tape.diff.made_anew import Window, ahead_of, is_time_of


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TOKEN = re.compile(
    r"(?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})"
    r"|(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)"
    r"|(?<=[iI][dD])(?P<lead>[\"']?\\{0,8}\s{0,2}[:=]\s{0,2}\\{0,8}[\"']?)(?P<counted>[0-9]{1,9})(?!\.?[0-9a-zA-Z])"
    r"|(?<![0-9a-zA-Z_-])(?<![0-9][.,])(?P<few>[0-9]{6,9})(?![.,]?[0-9a-zA-Z])"
    r"|(?<![0-9a-zA-Z])(?P<number>[0-9]{10,}(?:\.[0-9]+)?)(?![0-9a-zA-Z])"
    r"|(?<![0-9a-zA-Z])(?P<hex>[0-9a-fA-F]{16,})(?![0-9a-zA-Z])"
    r"|(?<=[_-])(?P<id>(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{8,})"
    r"|(?<=[\"'_-])(?P<letters>[A-Za-z]{16,})(?![0-9A-Za-z_-])"
)
_STEP = re.compile(r"(?<=/)[0-9]{1,9}(?=/|$)")
"""A whole step of a path."""
_COUNTED = re.compile(
    r"(?<=[iI][dD])[\"']?\\{0,8}\s{0,2}[:=]\s{0,2}\\{0,8}[\"']?([0-9]{6,9})(?!\.?[0-9a-zA-Z])"
)
_NAMED = re.compile(
    r"(?<=[iI][dD])(?:[\"']?\\{0,8}\s{0,2}[:=]\s{0,2}\\{0,8}[\"'])(?P<word>(?=[^\"']{0,60}[A-Za-z])[A-Za-z0-9][\w.:-]{0,60})(?=\\{0,8}[\"'])"
)
"""A text in quotes, of no form that ids have."""
_WORD = re.compile(r"(?<![\w-])[A-Za-z0-9][\w-]*(?:[.:][\w-]+)*")
_SHORTEST = 3
"""Characters of such an id from which on it is known elsewhere."""
_MAY_BE = re.compile(r"[0-9]|[A-Za-z]{16}")
_LABEL = re.compile(
    r"(?:[_-][\w-]{0,40})?[\"']?\\{0,8}\s{0,8}\[?\s{0,8}([:=])\s{0,8}([\"']?)\\{0,8}([\w.-]{0,60}[A-Za-z](?: [A-Za-z]{1,20}\b)?)"
)
"""What is before a token, backwards: its prefix, quotes, a colon, and the name of its place."""
_BEFORE = 180
"""Characters before a token in which the name of its place is looked for."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN = re.compile(r"[^a-z0-9]+")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}")
_IS_TIME = re.compile(r"(?:1[0-9]|20)[0-9]{8}(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?")
"""Seconds, milliseconds ... since the epoch."""
_IDS = _set("id ids uuid uuids guid ulid uid sid oid cid rid tid")
_TIMES = _set(
    "at time timestamp stamp ts date datetime now today clock created updated modified changed generated expires expiry exp iat nbf"
    " started ended finished completed since seen issued received sent processed mtime ctime atime utc epoch"
)
_CLOCKS = _set("now today clock timestamp stamp ts epoch utc iat mtime ctime atime")
"""Last words of names of places whose time is always the present one."""
_MADE = _set(
    "created updated modified changed generated issued received sent processed started ended finished completed seen logged recorded"
    " requested fetched observed captured"
)
"""What has been done by now: `sent_at`, `last_seen`."""
_PRESENT = _set("current local server client system request response")
"""Words before `time` or `date` that make it the present one."""
_OF_TEXT = frozenset((("date",), ("time",), ("datetime",)))
"""Words before a colon in a text; as members of JSON they are what somebody may have chosen."""
_TO_THE_MINUTE = re.compile(r"[0-9-]{10}[T ][0-9]{2}:[0-9]{2}(?!:)")
"""What people write."""
_UNITS = _set("ms ns us s sec seconds unix utc")
_PLANNED = _set(
    "due birth born delivery departure arrival deadline booking appointment start end from to until valid pickup check ship"
)
"""A time that somebody chose."""
_OWN = _set(
    "request idempotency correlation trace span session conversation thread run nonce invocation attempt progress boundary message"
    " msg event call tool"
)
"""What each request, or each run, has an id of its own of."""
_NUMBERS = _set(
    "amount price total cost balance sum fee quantity qty count limit size bytes wei cents paid credit debit iban account phone tel"
    " mobile card routing bic salary"
)
"""Never an id or a time, but an id of one is."""


class Anew(NamedTuple):
    """An id, or a time."""

    text: str
    label: str = ""
    """Name of its place, in lower case; empty if it has none."""
    is_own: bool = False
    """Whether each request, or each run, has its own: by the name of its place, or because a time is one of the run."""
    is_time: bool = False
    """Whether it is a time. Two of one run may be one of another."""
    is_counted: bool = False
    """Whether it is a number of few digits, or a short text. One of another place may be the same by chance."""
    is_named: bool = False
    """Whether the name of its place says that it is an id."""
    is_made: bool = False
    """Whether it is a time that is made anew, by the name of its place or as one of the run, whoever had it before."""
    ahead_s: float | None = None
    """By how many seconds it is after the request, if it is a time and that is known."""


Span = tuple[int, int, Anew]
"""Where an id or a time begins and ends in a text."""


class Told(NamedTuple):
    """What is known of a run where a text stands in it."""

    numbers: frozenset[str] = frozenset()
    """That the run has as ids."""
    counted: Collection[str] = ()
    """Numbers of six to nine digits that the run had as ids so far."""
    words: Collection[str] = ()
    """Short texts that answers to effects made as ids so far."""
    window: Window | None = None
    """When a time of the run's own can have been."""
    times: Collection[str] = ()
    """That the run was given before."""


_NOTHING = Told()


def find_anew(text: str, told: Told = _NOTHING) -> tuple[str, tuple[Anew, ...]]:
    """Give a text with a constant for its ids and times, and these in order."""
    found = find_spans(text, told)
    if not found:
        return text, ()
    shown, last = list[str](), 0
    for begin, end, _ in found:
        shown += text[last:begin], "0"
        last = end
    return "".join((*shown, text[last:])), tuple(made for _, _, made in found)


def find_spans(text: str, told: Told = _NOTHING) -> list[Span]:
    """Find the ids and times of a text, in order, with where each begins and ends."""
    if _MAY_BE.search(text) is None and not told.words:
        return []
    found: list[Span] = []
    is_rpc = '"jsonrpc"' in text
    for match in _TOKEN.finditer(text):
        made = _take(text, match, told, is_rpc=is_rpc)
        if made is not None:
            group = "counted" if match["lead"] is not None else 0
            found.append((*match.span(group), made))
    if told.words:
        named = (one for one in _find_named(text) if one[2].text in told.words)
        _add_apart(found, [*named, *_find_words(text, told.words)])
    return found


def _take(text: str, match: re.Match[str], told: Told, *, is_rpc: bool) -> Anew | None:
    if match["lead"] is not None:
        name = "_".join(_label_of(text, match.start("counted"))[0])
        if name.rpartition("_")[2] not in _IDS:
            return None
        return Anew(match["counted"], name, is_counted=True, is_named=True)
    few = match["few"]
    if few is None:
        return _read(text, match, told, is_rpc=is_rpc)
    if few not in told.counted or _NUMBERS & {*_label_of(text, match.start())[0]}:
        return None
    return Anew(few, is_counted=True)


def _find_named(text: str) -> Iterator[Span]:
    """Find the texts of no form that are ids by the names of their places."""
    for match in _NAMED.finditer(text):
        name = "_".join(_label_of(text, match.start("word"))[0])
        if name.rpartition("_")[2] in _IDS:
            made = Anew(match["word"], name, is_counted=True, is_named=True)
            yield (*match.span("word"), made)


def _find_words(text: str, words: Collection[str]) -> Iterator[Span]:
    """Find the texts that answers made as ids, wherever else they are."""
    for match in _WORD.finditer(text):
        if match[0] in words:
            yield (*match.span(), Anew(match[0], is_counted=True))


def _add_apart(found: list[Span], more: list[Span]) -> None:
    """Add tokens that are in no other one, in the order of the text; the first that is given counts."""
    for begin, end, made in more:
        at = bisect_left(found, begin, key=lambda one: one[0])
        is_apart = at == 0 or found[at - 1][1] <= begin
        if is_apart and (at == len(found) or end <= found[at][0]):
            found.insert(at, (begin, end, made))


def find_short_ids(text: str) -> set[str]:
    """Give the texts of no form in a text that are ids by the names of their places."""
    return {made.text for _, _, made in _find_named(text) if len(made.text) >= _SHORTEST}


def find_steps(path: str, told: Told = _NOTHING) -> tuple[str, tuple[Anew, ...]]:
    """Give a path with a constant for its ids, and these."""
    shown, found = find_anew(path, told)
    steps = tuple(Anew(one, is_counted=True) for one in _STEP.findall(shown))
    return _STEP.sub("0", shown), (*found, *steps)


def find_counted(text: str) -> list[str]:
    """Give the numbers of six to nine digits in a text that are ids by the names of their places."""
    return _COUNTED.findall(text)


def find_numbers(text: str) -> Iterable[str]:
    """Give the numbers of a text that are ids by the names of their places."""
    for match in _TOKEN.finditer(text):
        if match["number"] and _IDS & {*_label_of(text, match.start())[0][-1:]}:
            yield match[0]


def _read(text: str, match: re.Match[str], told: Told, *, is_rpc: bool) -> Anew | None:
    kind, token, at = match.lastgroup, match[0], match.start()
    label, is_member = _label_of(text, at)
    name = "_".join(label)
    is_id = label[-1:] in [(one,) for one in _IDS]
    is_own = bool(_OWN & {*label}) or text[max(0, at - 2) : at] == "--"
    is_own = is_own or (is_rpc and label == ("id",))
    if kind == "time" or (kind == "number" and _is_time(label) and _IS_TIME.fullmatch(token)):
        is_made = _is_clock(label, is_member=is_member) or _is_of_run(token, told.window)
        is_own = is_made and token not in told.times
        ahead_s = ahead_of(token, told.window) if told.window is not None else None
        return Anew(token, name, is_own, is_time=True, is_made=is_made, ahead_s=ahead_s)
    if kind == "number" or (kind == "id" and token.isdigit()):
        behind = kind == "id" and text[at - 2 : at - 1].isalpha()
        if not is_id and (_NUMBERS & {*label} or (token not in told.numbers and not behind)):
            return None
    if kind == "letters" and not is_id:
        return None
    if kind == "hex" and _IBAN.fullmatch(token):
        return None
    return Anew(token, name, is_own)


def _is_time(label: tuple[str, ...]) -> bool:
    """Say whether the name of a place says that it has a time, whoever chose it."""
    if _PLANNED & {*label}:
        return False
    last = label[-1:]
    return bool(_TIMES & {*last}) or (bool(_UNITS & {*last}) and bool(_TIMES & {*label}))


def _is_clock(label: tuple[str, ...], *, is_member: bool) -> bool:
    """Say whether the name of a place says that its time is made anew."""
    while label and label[-1] in _UNITS and label[-1] not in _CLOCKS:
        label = label[:-1]
    if _PLANNED & {*label}:
        return False
    last, before = label[-1:], {*label[-2:-1]}
    if (_CLOCKS | _MADE) & {*last}:
        return True
    if last in (("at",), ("on",), ("time",), ("date",), ("datetime",)) and before & _MADE:
        return True
    if last in (("time",), ("date",), ("datetime",)) and before & _PRESENT:
        return True
    return not is_member and label in _OF_TEXT


def _is_of_run(token: str, window: Window | None) -> bool:
    """Say whether a time is, to the second, one of the run."""
    return window is not None and not _TO_THE_MINUTE.match(token) and is_time_of(token, window)


def _label_of(text: str, at: int) -> tuple[tuple[str, ...], bool]:
    """Give the words of the name of a place, and whether it is a member of JSON or a field of a form, not words before a colon."""
    match = _LABEL.match(text[max(0, at - _BEFORE) : at][::-1])
    if match is None:
        return (), False
    return _words(match[3][::-1]), match[1] == "=" or bool(match[2])


@lru_cache(4096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(filter(None, _PLAIN.split(_CAMEL.sub("_", name).lower())))
