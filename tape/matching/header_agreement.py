"""How the header fields of a playback agree with those of its tape: what is linked, and what differs and is reported.

A request is served because its counted fields are those of a recorded one. What it has beside (credentials, ids of runs,
reported fields, an idempotency key) chooses among recorded requests that are alike, and is compared once one is served.
"""

import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from ..canonical.canonical_request import (
    Rules,
    canonical,
    counts_secrets_of,
    fields_of,
    fingerprint,
)
from ..diff.divergence_types import Difference
from ..diff.request_differences import show_difference
from ..exchange import (
    ANOTHER,
    BODY,
    HEADER,
    Exchange,
    Headers,
    Request,
    RequestClass,
    Seq,
)
from ..headers.compared_fields import CountedFields, Linked, Space
from ..headers.linked_values import Comparison, LinkedValues, Pair, find_pairs
from ..headers.shipped_lists import MCP_SESSION, NEW_CONDITIONS
from ..headers.swapped_values import RecordedValues
from ..records.credential_parts import list_tokens
from ..records.redacted_value_spelling import InnerSecret
from .azure_block_lists import SentBlocks
from .compare_redacted_values import Changed, Replaced, ReplacedValues, RunIds
from .compare_request_secrets import FindInner, Inner, InnerSecrets, read_inner
from .idempotency_keys import KeyPairs
from .plaintext_of_credentials import PlainAnswers
from .profile_use import read_linked, read_linked_message

_MOST = 4096
"""Recorded requests whose fields are remembered."""

Read = Callable[[Seq], Exchange | None]


class _Beside(NamedTuple):
    """What a recorded request has beside what counts."""

    linked: tuple[Linked, ...]
    reported: Headers
    inner: tuple[Linked, ...]
    """Secrets outside of header fields."""
    replaced: tuple[Replaced, ...]
    """Those of them that count."""


class Drift(NamedTuple):
    """A place in which a request is another than the recorded one that would answer it."""

    what: str
    """In words."""
    difference: Difference


class Noted(NamedTuple):
    """How a request differs from the recorded one that answers it."""

    headers: tuple[str, ...] = ()
    """Reported fields that differ."""
    merged: tuple[str, ...] = ()
    """Places of a credential that stands for several recorded ones, where no answer depends on which."""
    drifts: tuple[Drift, ...] = ()
    kind_alone: bool = False
    """Whether it rests on what a replaced value is, and not on the value: the tape is of another store."""


class ComparedMessage(NamedTuple):
    """How the replaced values of a message of a WebSocket agree with those of the recorded one."""

    changed: tuple[Changed, ...]
    """Places with another value."""
    same: bool = False
    """Whether each is the recorded one, or was given in its place."""
    kind_alone: bool = False


_NUMBER = re.compile("[#?]")
"""Begins what tells the places of one field apart."""
_NUMBERS = re.compile(r"(?:#[0-9]+(?:\.[0-9]+)?)+\Z")
"""Ends a place, to tell several values there apart, and the tokens in one value."""
_NAME_END = re.compile("[ #]")
"""Ends the name of a field in the place of a credential in it."""
_SHOWN = {"body": "body", "form": "body", "path": "path", "query": "query", "header": "header"}
_MISTAKEN = "has another secret than the one that is recorded there"
_MOVED = "has the value that the tape has in another place or request"
_SPLIT = "has another value than before where the tape has one"
_INVENTED = "has another value than the one that an earlier answer or request says"
_MERGED = "has one value where the tape has several"


def _drift(pair: Pair, what: str) -> Drift:
    old = pair[0]
    place = _NUMBERS.sub("", old.place)
    shown = (one.value.decode("utf-8", "backslashreplace") for one in pair)
    part, blank, _ = place.partition(" ")
    if blank and part in _SHOWN and old.space is Space.RUN:  # linked by a profile
        return Drift(f"its {place} {what}", show_difference(place, *shown))
    if part in _SHOWN:  # outside of header fields; a path, and a body as a whole, have no name
        place = _show_place(place)
        return Drift(f"its {place} {what}", show_difference(place, *shown))
    return Drift(f"its {place} {what}", show_difference(f"header {place}", *shown))


def _show_place(place: str) -> str:
    """Give a place outside of what is linked in header fields as differences name it; a body alone is told as a whole."""
    part = _NUMBERS.sub("", place).partition(" ")[0]
    return _NUMBER.split(place)[0] if part == HEADER.strip() else _SHOWN[part]


def _without_head(message: Request) -> Request:
    """Give a message of a WebSocket without what its handshake had.

    That was compared with the recorded handshake. Here both messages have it from the present one, whose credentials may stand for others.
    """
    content = tuple(field for field in message.headers if field[0].lower() == b"content-type")
    return replace(message, target=message.target.partition("?")[0], headers=content)


class Agreement:
    """What one playback has seen of linked values so far."""

    def __init__(
        self,
        rules: Rules,
        read: Read,
        find_inner: FindInner,
        stands_for: Callable[[bytes], bytes] = bytes,
        *,
        same_key: bool = False,
    ) -> None:
        """Begin with nothing.

        read: gives an exchange of the tape; None where it cannot be read.
        find_inner: gives the secrets of a request outside of its header fields.
        stands_for: gives the placeholder of a value, with the tape's key.
        same_key: whether placeholders of the tape are made with the key of now.
        """
        self._plain = PlainAnswers(read, stands_for)
        self._runs = RunIds(stands_for)
        self._find = find_inner
        self.keys = KeyPairs()
        """Idempotency keys of effects that were served, with those on the tape."""
        self._rules = rules
        self._read = read
        self._links = LinkedValues(rules.fields.account)
        self._inner = InnerSecrets(self._links)
        self.same_key = same_key
        """Whether equal values have equal placeholders."""
        self._recorded: RecordedValues | None = None
        """The values of the whole tape, once they were read."""
        self._replaced = ReplacedValues(same_key, self._links.stands_for)
        self._blocks = SentBlocks()
        self._reads: dict[str, deque[tuple[range, bytes]]] = {}
        """By the place of a cookie: when reads that had none were on their way, and which value each was given."""
        self._beside: dict[Seq, _Beside] = {}
        self._present: tuple[Headers, tuple[str, str], CountedFields] | None = None
        """Of the request that was read last, which is ranked, compared and noted: its fields, method and URL."""
        self._present_inner: tuple[Request, Inner] | None = None
        """Of the same its secrets outside of header fields, once they were asked for: to find them, its body is read."""

    def ranking(self, request: Request) -> Callable[[Seq], int]:
        """Give what ranks recorded requests by how well they agree with one of now; lower is better."""

        def rank(seq: Seq) -> int:
            present, beside = self._read_present(request), self._find_beside(seq)
            if beside is None:
                return _WORST
            agrees = self._compare(beside.linked, present.linked).rank
            if beside.inner:
                inner = self._find_inner(request)
                agrees = max(agrees, self._inner.rank(beside.inner, inner.linked))
                if not self._replaced.are_spelled_alike(beside.replaced, inner.replaced):
                    agrees = _DISAGREES
            return 2 * agrees + (_lowered(beside.reported) != _lowered(present.reported))

        return rank

    def give(self, answered: Exchange, values: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Note which credentials an answer of the tape gives to the agent.

        answered: one that says its own request back gives nothing.
        values: name of the cookie that one is, empty for others; as recorded; and as it is when it comes back.
        """
        beside = self._read_beside(answered)
        self._links.ask((*beside.linked, *beside.inner))
        for cookie, recorded, present in values:
            # A page also puts a cookie's value into its forms; but cookies are full of settings.
            if not cookie or self._rules.fields.account(recorded):
                self._links.give(Linked(Space.CREDENTIAL, "", recorded), present)
                for (_, old), (_, new) in zip(
                    list_tokens(recorded), list_tokens(present), strict=False
                ):
                    self._links.give(Linked(Space.CREDENTIAL, "", old), new)
            if cookie:
                given = Linked(Space.CREDENTIAL, f"cookie {cookie}", recorded)
                self._links.give(given, present, self._find_alike(answered, given))

    def _find_alike(self, answered: Exchange, given: Linked) -> list[bytes]:
        """Give other values of a cookie that are of the same session.

        Those that its request had: the answer renews it. And those that were given to reads on their way at the same time: which of
        them a client keeps depends on which answer comes first.
        """
        had = [one.value for one in self._read_beside(answered).linked if one.place == given.place]
        reads = self._reads.setdefault(given.place, deque(maxlen=_MOST_READS))
        if answered.request_class is not RequestClass.READ or had:
            return had
        span = _find_span(answered)
        alike = [
            value for other, value in reads if other.start < span.stop and span.start < other.stop
        ]
        reads.append((span, given.value))
        return alike

    def open_session(self, answered: Exchange) -> None:
        """Note the id of a session that an answer of the tape gives."""
        response = answered.response
        session = response.header(MCP_SESSION) if response is not None else None
        if session is not None:
            form = canonical(answered.request, answered.request_class, self._rules)
            linked = Linked(Space.RUN, MCP_SESSION.decode(), session.strip(), follows=True)
            # Whoever asks with another credential is somebody else.
            own = self._read_beside(answered).linked
            told = [
                b"%d:%b" % (len(one.value), one.value)
                for one in own
                if one.space is Space.CREDENTIAL
            ]
            self._links.open(linked, fingerprint(form) + b"".join(told))

    def note(
        self, request: Request, recorded: Exchange, alike: Callable[[], Iterable[Seq]]
    ) -> "Noted":
        """Compare a request with the recorded one that answers it, and remember what stands for what.

        alike: gives the recorded requests that might have answered it as well.
        """
        old, new = self._read_beside(recorded), self._read_present(request)
        names = _differing(old.reported, new.reported)
        names += _new_conditions(recorded.request, request)
        agrees = self._compare(old.linked, new.linked)
        merged, wrong = self._disagreements(agrees, old, alike)
        self._blocks.note(request, recorded)
        if old.inner:
            inner = self._find_inner(request).linked
            merged += self._inner.find_merged(old.inner, inner)
            self._inner.note(old.inner, inner)
        self._links.note(
            self._runs.resolve(old.linked),
            self._runs.resolve(new.linked),
            lambda one: not self._depends(old.linked, one.place, alike()),
        )
        self._links.ask((*old.linked, *old.inner))
        kind = recorded.request_class
        counted = [one for one in old.replaced if not self._is_masked(request, kind, one.place)]
        alone = bool(counted) and self._replaced.note(counted, self._find_inner(request).replaced)
        alone = alone or _has_values_unknown(recorded.request, request)
        return Noted(tuple(names), tuple(merged), tuple(wrong), alone)

    def find_disagreements(
        self, request: Request, recorded: Exchange, alike: Callable[[], Iterable[Seq]]
    ) -> list[Drift] | None:
        """Find the places in which a request has another credential or run id than the recorded one stands for.

        alike: as for `note`.
        Gives None where the values of the whole tape have to be read before.
        """
        unsettled = self._pair_unsettled(request, recorded)
        if self._lacks_values(unsettled):
            return None
        old, new = self._read_beside(recorded), self._read_present(request)
        agrees = self._compare(old.linked, new.linked)
        wrong = self._disagreements(agrees, old, alike)[1]
        told = {one.place for one, _ in agrees.split}
        for pair in self._find_moved(request, recorded, unsettled):
            if pair[0].place not in told:
                wrong.append(_drift(pair, _MOVED))
        split: list[Pair] = []
        if old.inner:
            inner = self._find_inner(request).linked
            kind = recorded.request_class
            wrong += self._find_mistaken(request, kind, old.inner, inner)
            wrong += self._find_merged(request, kind, old.inner, inner, alike)
            unseen = self._not_masked(request, kind, self._inner.find_unseen(old.inner, inner))
            wrong += self._find_invented(unseen, recorded.seq)
            split = self._not_masked(request, kind, self._inner.find_split(old.inner, inner))
            wrong += [_drift(pair, _SPLIT) for pair in split]
        wrong += self._find_torn(request, recorded, {*told, *(pair[0].place for pair in split)})
        wrong += self._find_invented(agrees.unseen, recorded.seq)
        for place, what in self.find_changed(request, recorded):
            shown = Difference(place, "(replaced)", "(replaced)")
            wrong.append(Drift(f"its {place} {what}", shown))
        for difference in self._blocks.find_mistaken(request, recorded):
            wrong.append(Drift(f"its {difference.place} is another block", difference))
        return wrong

    def _find_torn(
        self, request: Request, recorded: Exchange, told: Container[str]
    ) -> Iterator[Drift]:
        """Give the places by which a recorded key stands for two present ones, in this request or by an earlier one's body.

        told: places that are known to be wrong.
        """
        old, new = self._read_beside(recorded).linked, self._read_present(request).linked
        torn = list(self._inner.find_split_fields(old, new))
        inner = self._pair_inner(request, recorded)
        torn += self._links.find_torn((*find_pairs(old, new), *inner))
        for pair in dict.fromkeys(torn):
            if pair[0].place not in told and not (
                pair in inner and self._is_masked(request, recorded.request_class, pair[0].place)
            ):
                yield _drift(pair, _SPLIT)

    def _pair_inner(self, request: Request, recorded: Exchange) -> list[Pair]:
        inner = self._read_beside(recorded).inner
        return self._inner.pair(inner, self._find_inner(request).linked) if inner else []

    def find_changed(self, request: Request, recorded: Exchange) -> Iterator[Changed]:
        """Find the places in which a replaced value that counts is not the recorded one."""
        old = self._read_beside(recorded)
        if not old.replaced:
            return
        now = self._find_inner(request).replaced
        rotated = self._pair_places(old.linked, self._read_present(request).linked)
        for one in self._replaced.find_changed(old.replaced, now, rotated):
            if not self._is_masked(request, recorded.request_class, one.place):
                yield one

    def _lacks_values(self, unsettled: Iterable[Pair]) -> bool:
        """Say whether a credential of now is about to be taken for a recorded one, and may be another one of the tape."""
        if self._recorded is not None or not self.same_key:
            return False
        return any(
            new.part or self._rules.fields.account(new.value)
            for old, new in unsettled
            if new.value != old.value and new.space is Space.CREDENTIAL
        )

    def take_values(self, recorded: RecordedValues) -> None:
        """Take the values of the whole tape."""
        self._recorded = recorded

    def add_recorded(self, recorded: Exchange, values: RecordedValues) -> None:
        """Add the values of a request of the tape to those of all. Any thread."""
        if recorded.request_class is not RequestClass.TELEMETRY:
            request = recorded.request
            inner = read_inner(request, self._find) if request.secrets else Inner((), ())
            values.add((*fields_of(request, self._rules).linked, *inner.linked))

    def _pair_unsettled(self, request: Request, recorded: Exchange) -> list[Pair]:
        """Give recorded and present values of one place, where it is not known yet which stands for which."""
        old, new = self._read_beside(recorded), self._read_present(request)
        pairs = find_pairs(self._runs.resolve(old.linked), self._runs.resolve(new.linked))
        found = [pair for pair in pairs if not self._links.is_settled(*pair)]
        if old.inner:
            inner = self._find_inner(request).linked
            found += self._inner.pair_unsettled(old.inner, inner)
        return found

    def _find_moved(
        self, request: Request, recorded: Exchange, unsettled: Iterable[Pair]
    ) -> Iterator[Pair]:
        """Give recorded and present values of one place, where the present one is another one of the tape."""
        pairs = [
            (old, new)
            for old, new in unsettled
            if old.value != new.value
            and not (old.space is Space.RUN and old.place.startswith("body "))
        ]
        if not pairs:
            return
        old, new = self._read_beside(recorded), self._read_present(request)
        inner = self._find_inner(request).linked if old.inner else ()
        values = self._recorded or RecordedValues(self._rules.fields.account)
        moved = set(
            values.find_moved(
                self._runs.resolve((*old.linked, *old.inner)),
                self._runs.resolve((*new.linked, *inner)),
            )
        )
        kind = recorded.request_class
        for pair in pairs:
            if pair in moved or values.has(pair[1]):
                place = pair[0].place
                part = _NUMBERS.sub("", place).partition(" ")[0]
                if part not in _SHOWN or not self._is_masked(request, kind, place):
                    yield pair

    def compare_message(
        self, recorded: Request, present: Request, request_class: RequestClass, seq: Seq
    ) -> "ComparedMessage":
        """Compare the replaced values of a message with those of the recorded one, and remember those of one that has them.

        recorded, present: messages as bodies of requests.
        request_class: of the handshake.
        seq: the answers before it had been given.
        """
        old, new = (read_inner(_without_head(one), self._find) for one in (recorded, present))
        values = self._recorded or RecordedValues(self._rules.fields.account)
        unsettled = self._inner.pair_unsettled(old.linked, new.linked)
        moved = set(values.find_moved(old.linked, new.linked))
        changed = list(self._replaced.find_changed(old.replaced, new.replaced))
        places = self._inner.find_mistaken(old.linked, new.linked)
        changed += [Changed(place, _MISTAKEN) for place in places]
        unseen = self._inner.find_unseen(old.linked, new.linked)
        changed += [Changed(pair[0].place, _INVENTED) for pair in self._keep_invented(unseen, seq)]
        split = self._inner.find_split(old.linked, new.linked)
        split += self._links.find_torn(self._inner.pair(old.linked, new.linked))
        changed += [Changed(pair[0].place, _SPLIT) for pair in split]
        old_ids, new_ids = (
            read_linked_message(one, one.body, self._rules, request_class)
            for one in (recorded, present)
        )
        agrees = self._links.compare(old_ids, new_ids)
        changed += [Changed(pair[0].place, _SPLIT) for pair in agrees.split]
        changed += [Changed(pair[0].place, _MERGED) for pair in agrees.merged]
        changed += [Changed(pair[0].place, _MOVED) for pair in unsettled if pair in moved]
        told = {one.place: one for one in reversed(changed)}.values()
        changed = [
            one for one in reversed(told) if not self._is_masked(present, request_class, one.place)
        ]
        if changed:
            return ComparedMessage(tuple(changed))
        same = self._inner.agree(old.linked, new.linked)
        self._inner.note(old.linked, new.linked)
        self._links.note(old_ids, new_ids)
        self._links.ask(old.linked)
        return ComparedMessage((), same, self._replaced.note(old.replaced, new.replaced))

    def compare_value(self, recorded: InnerSecret, present: InnerSecret) -> "ComparedMessage":
        """Compare a replaced value of a body that is compared as it comes with the recorded one, and remember which stands for which."""
        old, new = (
            (Replaced(one.place, one.value, one.prefix, one.spelling),)
            for one in (recorded, present)
        )
        changed = self._replaced.find_changed(old, new)
        if changed:
            return ComparedMessage(tuple(changed))
        return ComparedMessage((), old == new, self._replaced.note(old, new))

    def give_message(self, values: Iterable[bytes]) -> None:
        """Note which credentials a message of the tape gives to the agent."""
        for value in values:
            self._links.give(Linked(Space.CREDENTIAL, "", value), value)

    def has_same_secrets(self, request: Request, recorded: Exchange) -> bool:
        """Say whether the secrets outside of header fields are those of a recorded request, value by value."""
        inner = self._read_beside(recorded).inner
        if not inner and request.spilled is None:
            return True
        return self._inner.agree(inner, self._find_inner(request).linked)

    def _compare(self, old: Iterable[Linked], new: Iterable[Linked]) -> Comparison:
        return self._links.compare(self._runs.resolve(old), self._runs.resolve(new))

    def _pair_places(
        self, old: Iterable[Linked], new: Iterable[Linked]
    ) -> frozenset[tuple[bytes, bytes]]:
        """Give what stands in one place of two heads, as a body has it where redaction replaced it there."""
        olds = {one.place: one.value for one in self._runs.write(old)}
        return frozenset(
            (olds[one.place], one.value) for one in self._runs.write(new) if one.place in olds
        )

    def _find_mistaken(
        self,
        request: Request,
        kind: RequestClass,
        recorded: tuple[Linked, ...],
        present: tuple[Linked, ...],
    ) -> Iterator[Drift]:
        """Give the places outside of header fields with a key of the tape that is recorded elsewhere."""
        for place in self._inner.find_mistaken(recorded, present):
            if not self._is_masked(request, kind, place):
                shown = _show_place(place)
                told = f"its {shown} {_MISTAKEN}"
                yield Drift(told, Difference(shown, "(recorded)", "(another)"))

    def _find_merged(
        self,
        request: Request,
        kind: RequestClass,
        recorded: tuple[Linked, ...],
        present: tuple[Linked, ...],
        alike: Callable[[], Iterable[Seq]],
    ) -> Iterator[Drift]:
        """Give the places outside of header fields with a word for all, where the answer depends on which is meant."""
        for place in self._inner.find_merged(recorded, present):
            then = {one.value for one in recorded if one.place == place}
            others = (self._find_beside(seq) for seq in alike())
            if not self._is_masked(request, kind, place) and any(
                other is None or {o.value for o in other.inner if o.place == place} != then
                for other in others
            ):
                shown = _show_place(place)
                told = f"its {shown} {_MERGED}, and the answer depends on which"
                yield Drift(told, Difference(shown, "(recorded)", "(one for several)"))

    def _find_invented(self, pairs: Iterable[Pair], seq: Seq) -> Iterator[Drift]:
        """Give the places with another value than the one that an earlier answer says there."""
        return (_drift(pair, _INVENTED) for pair in self._keep_invented(pairs, seq))

    def _keep_invented(self, pairs: Iterable[Pair], seq: Seq) -> Iterator[Pair]:
        for old, new in pairs:
            credential = old.space is Space.CREDENTIAL and not self._links.was_asked(old)
            if credential and self._plain.say(old.value, seq):
                yield old, new

    def _not_masked(
        self, request: Request, kind: RequestClass, pairs: Iterable[Pair]
    ) -> list[Pair]:
        return [pair for pair in pairs if not self._is_masked(request, kind, pair[0].place)]

    def have_other_masked(self, request: Request, recorded: Exchange, shipped: Rules) -> bool:
        """Say whether a credential is another one in a place that only the configuration has ignored.

        shipped: the rules without those of the configuration.
        """
        masks, kind = self._rules.of(request).masks, recorded.request_class
        names = {one.decode("latin-1") for one in masks.header - shipped.of(request).masks.header}
        old, new = (
            sorted(
                (one.place, one.value) for one in fields if _NAME_END.split(one.place)[0] in names
            )
            for fields in (fields_of(each, shipped).linked for each in (recorded.request, request))
        )
        if old != new:
            return True
        olds = {one.place: one.value for one in self._read_beside(recorded).inner}
        return any(
            olds.get(one.place, one.value) != one.value
            and self._is_masked(request, kind, one.place)
            and not self._is_masked(request, kind, one.place, shipped)
            for one in (self._find_inner(request).linked if olds else ())
        )

    def _is_masked(
        self, request: Request, kind: RequestClass, place: str, rules: Rules | None = None
    ) -> bool:
        rules = rules or self._rules
        masks = rules.of(request, kind).masks
        part, _, name = _NUMBERS.sub("", place).partition(" ")
        if part == HEADER.strip():
            name = _NUMBER.split(name)[0]
            return not counts_secrets_of(request, name, rules)
        if part in ("body", "form"):
            masked = bool(masks.json or masks.form or masks.regex or masks.placed)
            return masked and self._is_masked_inside(request, kind, place, rules)
        return name in masks.query

    def _is_masked_inside(
        self, request: Request, kind: RequestClass, place: str, rules: Rules
    ) -> bool:
        """Say whether a place of a body does not count: the request is the same with something else there."""
        inside = [one for one in request.secrets if one.part == BODY]
        wanted = place.partition("#")[0]
        # Places come in the order of the secrets, those of the body first.
        at = [found[0].partition("#")[0] == wanted for found in self._find(request)]
        other = {one for one, is_there in zip(inside, at, strict=False) if is_there}
        changed = tuple(
            one._replace(kind=ANOTHER) if one in other else one for one in request.secrets
        )
        # Where else the value of a linked place stands is compared by itself.
        rules = rules.without_links()
        forms = (
            canonical(one, kind, rules) for one in (request, replace(request, secrets=changed))
        )
        return bool(other) and len(set(forms)) == 1

    def _find_inner(self, request: Request) -> Inner:
        known = self._present_inner
        if known is None or known[0] is not request:
            known = self._present_inner = request, read_inner(request, self._find)
        return known[1]

    def _disagreements(
        self, agrees: Comparison, old: _Beside, alike: Callable[[], Iterable[Seq]]
    ) -> tuple[list[str], list[Drift]]:
        """Give places that are merged and harmless, and those that are wrong."""
        # Sessions that were opened by the same request say the same for a while: while it was not known which is which, one
        # may have been given the answer of the other.
        wrong = [
            _drift(pair, _SPLIT)
            for pair in agrees.split
            if not (
                self._links.are_alike(*pair) and self._depends(old.linked, pair[0].place, alike())
            )
        ]
        merged = []
        for pair in agrees.merged:
            if pair[1].space is Space.RUN:
                wrong.append(_drift(pair, _MERGED))
            elif self._depends(old.linked, pair[0].place, alike()):
                wrong.append(_drift(pair, f"{_MERGED}, and the answer depends on which"))
            else:
                merged.append(pair[1].place)
        return merged, wrong

    def _depends(self, linked: Iterable[Linked], place: str, alike: Iterable[Seq]) -> bool:
        """Say whether recorded requests that are alike have several values in a place."""
        values = {one.value for one in linked if one.place == place}
        for seq in alike:
            beside = self._find_beside(seq)
            if beside is None or {o.value for o in beside.linked if o.place == place} != values:
                return True
        return False

    def _find_beside(self, seq: Seq) -> _Beside | None:
        known = self._beside.get(seq)
        if known is None:
            exchange = self._read(seq)
            known = self._read_beside(exchange) if exchange is not None else None
        return known

    def _read_beside(self, recorded: Exchange) -> _Beside:
        known = self._beside.get(recorded.seq)
        if known is None:
            fields = fields_of(recorded.request, self._rules)
            self._runs.see(fields.linked, recorded.request)
            if len(self._beside) >= _MOST:
                self._beside.pop(next(iter(self._beside)))
            ids = read_linked(recorded.request, self._rules, recorded.request_class)
            known = self._beside[recorded.seq] = _Beside(
                (*fields.linked, *ids),
                fields.reported,
                *read_inner(recorded.request, self._find),
            )
        return known

    def _read_present(self, request: Request) -> CountedFields:
        known, place = self._present, (request.method, request.url)
        if known is None or known[0] is not request.headers or known[1] != place:
            fields = fields_of(request, self._rules)
            self._runs.see(fields.linked, request)
            # Those of an effect have no partners on the tape: no profile says anything of one.
            ids = read_linked(request, self._rules, RequestClass.READ)
            fields = fields._replace(linked=(*fields.linked, *ids))
            known = self._present = request.headers, place, fields
        return known[2]


_DISAGREES = 2
_WORST = 9
_MOST_READS = 256


def _find_span(exchange: Exchange) -> range:
    """Give when a recorded request was on its way, until its answer began."""
    took_us = exchange.response.head_us if exchange.response is not None else exchange.end_us
    return range(exchange.started_ns, exchange.started_ns + took_us * 1000)


def _has_values_unknown(recorded: Request, present: Request) -> bool:
    """Say whether values were replaced in a large body, and an earlier version has not kept which ones on the tape."""
    then, now = recorded.spilled, present.spilled
    if then is None or now is None or then.replaced:
        return False
    return any(not own for _, own in now.replaced)


def _lowered(headers: Headers) -> list[tuple[bytes, bytes]]:
    return sorted((name.lower(), value.strip()) for name, value in headers)


def _differing(old: Headers, new: Headers) -> list[str]:
    """List the names of reported fields that differ."""
    one, other = _lowered(old), _lowered(new)
    names = {name for name, _ in (*one, *other)}
    return sorted(
        name.decode("latin-1")
        for name in names
        if [v for n, v in one if n == name] != [v for n, v in other if n == name]
    )


def _new_conditions(recorded: Request, request: Request) -> list[str]:
    """List the conditions that a request has and was recorded without."""
    return [
        name.decode("latin-1")
        for name in NEW_CONDITIONS
        if request.header(name) is not None and recorded.header(name) is None
    ]


def without_conditions(request: Request) -> Headers | None:
    """Give the header fields of a GET without the conditions that it may have now; None where it has none."""
    if request.method != "GET":
        return None
    kept = tuple(field for field in request.headers if field[0].lower() not in NEW_CONDITIONS)
    return kept if len(kept) < len(request.headers) else None
