"""Link the values of two runs: one recorded value stands for one present value, for the whole run and back.

Credentials and ids of runs differ from run to run and mean the same. What is compared is which requests share one: two
accounts that were kept apart while recording are kept apart now, and none is taken for two. A value that both runs have
stands for itself: where it is in the place of another one, two accounts were taken for one another. A word that was recorded
for one and is there for all now, as `dummy` is, is no account.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .compared_fields import Linked, Space

_MOST = 50_000
"""Values remembered of each run; those seen longest ago go first."""

_Value = tuple[Space, str, bytes]
Pair = tuple[Linked, Linked]
"""What is recorded in a place, and what is there now."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the linked values of a request agree with those of a recorded one."""

    unseen: tuple[Pair, ...] = ()
    """Of which neither was seen before, and that are not equal."""
    merged: tuple[Pair, ...] = ()
    """With a present value that stands for several recorded ones."""
    split: tuple[Pair, ...] = ()
    """With a recorded value that several stand for now, with a value that stands for itself or was given by an answer in the
    place of another, or with a present one that had to be known."""

    @property
    def rank(self) -> int:
        """How well they agree: 0 in all, 1 as far as is known, 2 not."""
        return 2 if self.merged or self.split else int(bool(self.unseen))


@dataclass(slots=True)
class LinkedValues:
    """What stands for what in one playback."""

    account: Callable[[bytes], bool]
    """Says whether a value reads like a credential of somebody's, and not like a word for all."""
    _present: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    """Recorded by present value."""
    _recorded: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    _given: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    """Recorded by present value, of what an answer of the tape gave: it stands for nothing else."""
    _came: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    """Present by recorded value, of the same: nothing else stands for it."""
    _sessions: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    """By a cookie's value that an answer gave: the first value of the session that it is of."""
    _asked: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    """Recorded values that requests had before an answer did: it said them back, and gave nothing."""
    _opened: OrderedDict[_Value, bytes] = field(default_factory=OrderedDict)
    """What was asked for where an answer gave the id of a session. Who asks the same at one time may be given either id."""

    def compare(self, recorded: Iterable[Linked], present: Iterable[Linked]) -> Comparison:
        """Compare two requests' values; both have them in the same places."""
        unseen, merged, split = list[Pair](), list[Pair](), list[Pair]()
        thens, nows = dict[_Value, bytes](), dict[_Value, bytes]()
        """Of ids of runs that were seen in this request alone."""
        given_here = set[str]()
        """Places of what an answer gave: nothing in it is asked for once more."""
        for old, new in find_pairs(recorded, present):
            then = self._present.get(_key(new), thens.get(_key(new)))
            now = self._recorded.get(_key(old), nows.get(_key(old)))
            given = self._given.get(_key(new))
            if given is not None and not new.part:
                given_here.add(new.place)
            if new.part and new.place.partition("#")[0] in given_here:
                continue
            if new.part:
                split += [(old, new)] if self._is_another_part(old, new) else ()
                unseen += (
                    [(old, new)]
                    if then is None
                    and now is None
                    and self.account(old.value)
                    and old.value != new.value
                    else ()
                )
                continue
            if given is not None and (not is_cookie(new) or self._is_of_another(old, new)):
                split += [(old, new)] if given != old.value else ()
                continue
            if given is None and _key(old) in self._came and new.value not in (old.value, now):
                split.append((old, new))
                continue
            alike = self.are_alike(old, new)
            free = new.follows and not alike
            known = then in (None, old.value) and (now in (None, new.value) or free)
            if known and (old.value == new.value or then == old.value):
                continue
            if then is None and now is None:
                used = _key(new) in self._recorded or _key(old) in self._present
                if free or (used and not alike):
                    split.append((old, new))
                else:
                    unseen.append((old, new))
                    if new.space is Space.RUN:
                        thens[_key(new)], nows[_key(old)] = old.value, new.value
            elif then is not None and then != old.value and now in (None, new.value):
                own = new.value in (old.value, then) and self.account(new.value)
                (split if own else merged).append((old, new))
            else:
                split.append((old, new))
        return Comparison(tuple(unseen), tuple(merged), tuple(split))

    def _is_another_part(self, old: Linked, new: Linked) -> bool:
        """Say whether a part of a credential is known to be another one than the recorded."""
        given = self._given.get(_key(new))
        if given is not None or _key(old) in self._came:
            return (new.value if given is None else given) != old.value
        then, now = self._present.get(_key(new)), self._recorded.get(_key(old))
        return then not in (None, old.value) and now not in (None, new.value)

    def _is_of_another(self, old: Linked, new: Linked) -> bool:
        """Say whether answers gave two values of a cookie to two sessions."""
        one, other = self._sessions.get(_key(old)), self._sessions.get(_key(new))
        return one is not None and other is not None and one != other

    def is_same(self, old: Linked, new: Linked) -> bool:
        """Say whether a present value is the recorded one, or was given in its place by an answer of the tape."""
        given = self._given.get(_key(new))
        if given is not None:
            return given == old.value
        return old.value == new.value and self._present.get(_key(new), old.value) == old.value

    def is_settled(self, old: Linked, new: Linked) -> bool:
        """Say whether it is known by now what a present value stands for, or any of two does."""
        if _key(new) in self._given or (new.part and _key(old) in self._came):
            return True
        return self._present.get(_key(new)) == old.value or self.are_alike(old, new)

    def stands_for(self, recorded: bytes, present: bytes) -> bool:
        """Say whether a present credential stands for a recorded one by what was seen so far."""
        return self._present.get((Space.CREDENTIAL, "", present)) == recorded

    def is_mistaken(self, olds: Iterable[Linked], new: Linked) -> bool:
        """Say whether a present value is known to stand for none of several recorded ones.

        It is the tape's own, was given by an answer of the tape, or stands for another one, while each of these has its own.
        """
        found = [(old, self._recorded.get(_key(old))) for old in olds]
        recorded = {old.value: now for old, now in found}
        given, then = self._given.get(_key(new)), self._present.get(_key(new))
        if given is not None:
            return given not in recorded
        if then in recorded or (then is None and new.value in recorded):
            return False
        stands = self._recorded.get(_key(new), new.value)
        if then == new.value or _key(new) in self._recorded:
            # Another one stands for it, or it stands for itself and may be a word for all.
            return stands != new.value or self.account(new.value)
        if then is None and all(now is None and _key(old) in self._came for old, now in found):
            return True
        return then is not None and all(now not in (None, new.value) for now in recorded.values())

    def is_merged(self, olds: Iterable[Linked], new: Linked) -> bool:
        """Say whether a present value stands for another one than several recorded ones, or for another one too."""
        then = self._present.get(_key(new))
        return then is not None and then not in {old.value for old in olds}

    def is_split(self, old: Linked, new: Linked) -> bool:
        """Say whether a recorded value that reads like a credential has stood for another present value than this one."""
        now = self._recorded.get(_key(old))
        return now not in (None, new.value) and self.account(old.value)

    def was_given(self, present: Linked) -> bool:
        """Say whether an answer of the tape gave a present value: it stands for what was given, whatever stands for that elsewhere."""
        return _key(present) in self._given

    def find_torn(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Find the pairs of one request by which a recorded value that reads like a credential stands for two present ones."""
        groups: dict[_Value, list[Pair]] = {}
        for old, new in pairs:
            told = old.space is Space.CREDENTIAL and self.account(old.value)
            if told and not self.was_given(new):
                groups.setdefault(_key(old), []).append((old, new))
        found = list[Pair]()
        for group in groups.values():
            itself = any(old.value == new.value for old, new in group)
            meant = group[0][0].value if itself else group[0][1].value
            found += [pair for pair in group if pair[1].value != meant]
        return found

    def was_asked(self, recorded: Linked) -> bool:
        """Say whether a recorded value was in a request before any answer gave it."""
        return _key(recorded) in self._asked

    def give(self, recorded: Linked, present: bytes, alike: Iterable[bytes] = ()) -> None:
        """Remember what a value of a recorded answer is when it comes back.

        alike: of a cookie, other values of it that the same session has had.
        """
        _note(self._given, _key(recorded._replace(value=present)), recorded.value)
        if _key(recorded) not in self._asked:
            _note(self._came, _key(recorded), present)
        if is_cookie(recorded):
            keys = [_key(recorded._replace(value=one)) for one in (recorded.value, *alike)]
            known = (self._sessions.get(key) for key in keys)
            session = next((one for one in known if one is not None), recorded.value)
            for key in keys:
                _note(self._sessions, key, session)

    def open(self, session: Linked, asked: bytes) -> None:
        """Remember that an answer gave the id of a session.

        asked: the fingerprint of what was asked for.
        """
        _note(self._opened, _key(session), asked)

    def are_alike(self, old: Linked, new: Linked) -> bool:
        """Say whether two ids of sessions were given to requests that are the same, or are of servers that begin alike."""
        if old.late:
            return True
        asked = self._opened.get(_key(old))
        return asked is not None and asked == self._opened.get(_key(new))

    def ask(self, recorded: Iterable[Linked]) -> None:
        """Remember the values of a recorded request that is answered."""
        for old in recorded:
            if _key(old) not in self._came:
                _note(self._asked, _key(old), old.value)

    def note(
        self,
        recorded: Iterable[Linked],
        present: Iterable[Linked],
        tells_sessions: Callable[[Linked], bool] = lambda _: False,
    ) -> None:
        """Remember which values stand for which; what is known already stays.

        tells_sessions: says whether nothing like the recorded request was asked in another session than the recorded one.
        """
        for old, new in find_pairs(recorded, present):
            alike = self.are_alike(old, new)
            free = new.follows and not alike
            if new.part:
                continue  # the whole is linked
            unsure = (old.number or old.value != new.value) if old.late else old.value == new.value
            if alike and unsure and not tells_sessions(old):
                continue  # sessions that began alike say the same for a while, of whichever recorded one
            if not free and (is_cookie(new) or _key(new) not in self._given):
                _note(self._present, _key(new), old.value)
                _note(self._recorded, _key(old), new.value)


def find_pairs(recorded: Iterable[Linked], present: Iterable[Linked]) -> list[Pair]:
    """Put the values of the same places together; a cookie that stands twice, in its order."""
    waiting: dict[str, list[Linked]] = {}
    for old in recorded:
        waiting.setdefault(old.place, []).append(old)
    found = []
    for new in present:
        if olds := waiting.get(new.place):
            found.append((olds.pop(0), new))
    return found


def is_cookie(linked: Linked) -> bool:
    """Say whether a value is that of a cookie: answers at one time may each set one, and the last to come counts."""
    return linked.place.startswith("cookie ")


def _key(linked: Linked) -> _Value:
    # Cookies are full of settings: a `1` in one is no `1` in another.
    scope = linked.place if is_cookie(linked) and not linked.part else ""
    return linked.space, scope, linked.value


def _note(seen: OrderedDict[_Value, bytes], key: _Value, value: bytes) -> None:
    if key in seen:
        seen.move_to_end(key)
        return
    seen[key] = value
    if len(seen) > _MOST:
        seen.popitem(last=False)
