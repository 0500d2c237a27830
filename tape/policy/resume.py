"""What a resumed run goes by: a playback of a run that crashed, which goes on live from the crash point.

1. Until every exchange that the crashed run had an outcome of has been asked for again, and every effect without one, everything
   is answered from the tape, and nothing is sent.
2. Then what the tape does not hold is sent to its upstream, effects too. Nothing that it holds is sent again.
3. An effect without an outcome may have happened. Whatever else lets it out, it is held until a person decides.
4. Where processes come by the name of the run, one that was started again asks for all of it once more. What another process was
   given, and a model call or an effect, is held then, too. That holds in a recording which nothing was resumed for, too.
5. An effect of the prefix that failed after it was sent, or whose client left, may have happened, too. Who asks for it again
   without its idempotency key is held.
6. A request of the prefix that is another than the recorded one ends all of it: nothing is served or sent any more.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from ..exchange import Request, Seq
from .carried_placeholders import CarriedPlaceholders

_MOST_GIVEN = 50_000
"""Different requests that are remembered: the first ones, since who starts anew begins with these."""


@dataclass(frozen=True, slots=True)
class UnknownEffect:
    """An effect whose intent is in the log of a crashed run, and no outcome."""

    run: str
    """The run that sent it."""
    seq: Seq
    """Its place there."""
    method: str
    url: str
    fingerprint: bytes
    """Empty where it was sent on before it had been read."""
    key: bytes | None
    """8 bytes that tell its idempotency key from others; None without one."""
    place: Seq | None = None
    """Where the tape that is resumed has it; None where it was sent before that tape, and not asked for in it."""
    is_awaited: bool = True
    """Whether nothing else leaves before it was asked for again."""
    earlier: tuple["UnknownEffect", ...] = ()
    """The same, as it was sent before: somebody let it be sent once more, and nobody knows the outcome of any."""

    @property
    def row(self) -> tuple[str, Seq]:
        """Its run and seq, as events name it."""
        return self.run, self.seq

    def is_asked_by(self, request: Request, fingerprint: bytes, *, same_rules: bool) -> bool:
        """Say whether a request asks for it again.

        same_rules: whether both fingerprints were made under the same match rules.
        """
        if same_rules and self.fingerprint:
            return self.fingerprint == fingerprint
        return (self.method, self.url) == (request.method, request.url)

    def is_same_as(self, other: "UnknownEffect") -> bool:
        """Say whether another one is the same effect, asked for once more: who is answered now need not do that."""
        if (self.method, self.url) != (other.method, other.url):
            return False
        if self.key is not None and self.key == other.key:
            return True
        return bool(self.fingerprint) and self.fingerprint == other.fingerprint


@dataclass(frozen=True, slots=True)
class Resume:
    """What is known of a crashed run before it is resumed."""

    unknown: tuple[UnknownEffect, ...] = ()
    unanswered: frozenset[Seq] = frozenset()
    """Exchanges of which the tape has a part and no outcome; they are asked anew."""
    died: frozenset[Seq] = frozenset()
    """Exchanges whose client died while it waited, and whose answers came whole or failed by themselves: it is given them now."""
    repeated: frozenset[Seq] = frozenset()
    """What a process asked for that was started again, and that nothing waits for: what another had asked for, and reads."""
    parallel: bool = False
    """Whether two of its requests were under way at once, so that what is behind the crash may come before the prefix has ended."""


class Given(NamedTuple):
    """A model call or an effect that was asked for in a run, and served or sent."""

    seq: Seq
    """In that run."""
    clients: set[str]
    """Ids of the connections that asked for it."""


class GivenRequests:
    """The model calls and effects of a run that every process joins which comes with its name, be it one that was started again."""

    def __init__(self) -> None:
        """Begin with none."""
        self._given: dict[bytes, Given] = {}
        """By effect key or fingerprint."""

    def note(self, key: bytes | None, seq: Seq, client: str) -> None:
        """Note that one is served, or is about to be sent.

        key: an effect's effect key, a model call's fingerprint.
        client: id of the connection that asks for it.
        """
        if not key:
            return
        found = self._given.get(key)
        if found is not None:
            found.clients.add(client)
        elif len(self._given) < _MOST_GIVEN:
            self._given[key] = Given(seq, {client})

    def find(self, key: bytes | None) -> Given | None:
        """Find what was noted of one."""
        return self._given.get(key or b"")

    def forget(self, key: bytes | None, seq: Seq) -> None:
        """Forget one whose upstream was never reached, unless it was asked for before that."""
        found = self.find(key)
        if key and found is not None and found.seq == seq and len(found.clients) == 1:
            del self._given[key]


class Resumption:
    """How far a resumed run has come. Belongs to the event loop."""

    def __init__(self, resume: Resume | None) -> None:
        """Begin before the prefix; None for a playback that resumes nothing."""
        self.resume = resume
        self.diverged = ""
        """Why the prefix is another one than was recorded; empty while it is not."""
        self.reached = False
        """Whether it has come to the crash point: all of the prefix has been asked for."""
        self._prefix: frozenset[Seq] | None = None
        """What has still to be asked for, of what has an outcome; None before that is known."""
        self._unknown = [] if resume is None else list(resume.unknown)
        """Those that nobody has approved."""
        self._asked: set[UnknownEffect] = set()
        """Of them, those that have been asked for."""
        self._owed = {one for one in self._unknown if one.is_awaited}
        """Of them, those that nothing else may leave before."""
        self._effect_keys: dict[tuple[str, Seq], bytes] = {}
        """Of effects without an outcome, by their rows, as far as they are known."""
        self.placeholders = CarriedPlaceholders()
        """What answers of the tape gave in the place of secrets."""
        self._watching: list[Callable[[], None]] = []

    def expect(self, prefix: frozenset[Seq]) -> None:
        """Note which exchanges the prefix has."""
        self._prefix = prefix

    def note_effect_key(self, unknown: UnknownEffect, effect_key: bytes) -> None:
        """Note by which key an effect without an outcome is the same again, whatever idempotency key it carries."""
        self._effect_keys[unknown.row] = effect_key

    def find_awaited(
        self, served: Callable[[Seq], bool], *, is_unknown: bool = False
    ) -> Seq | None:
        """Find what has still to be asked for before a request may leave; None where that is nothing, or nothing is resumed.

        is_unknown: the request is itself an effect without an outcome, and so waits for no other.
        """
        if self.resume is None:
            return None
        if self._prefix is None:
            return Seq(1)
        if self._prefix:
            self._prefix = frozenset(seq for seq in self._prefix if not served(seq))
        waits = set(self._prefix)
        if not is_unknown:
            waits.update(one.place or one.seq for one in self._owed)
        return min(waits, default=None)

    def take_unknown(
        self,
        request: Request,
        fingerprint: bytes,
        *,
        same_rules: bool,
        keys: Collection[bytes] = (),
        effect_key: bytes | None = None,
    ) -> UnknownEffect | None:
        """Find the effect without an outcome that a request asks for again, and note that it was.

        effect_key: its own, by which it is the same whatever idempotency key it carries.
        keys: forms of its idempotency key. What was sent with that one comes first, and then what was not asked for yet.
        """
        found = [
            one
            for one in self._unknown
            if one.is_asked_by(request, fingerprint, same_rules=same_rules)
            or (effect_key and self._effect_keys.get(one.row) == effect_key)
        ]
        found.sort(key=lambda one: (one.key not in keys, one in self._asked))
        if not found:
            return None
        self._asked.add(found[0])
        self._owed = {one for one in self._owed if not self._is_settled_with(one, found[0])}
        self.note_change()
        return found[0]

    def _is_settled_with(self, one: UnknownEffect, asked: UnknownEffect) -> bool:
        if one == asked or one.is_same_as(asked):
            return True
        key = self._effect_keys.get(one.row)
        return key is not None and key == self._effect_keys.get(asked.row)

    def reach(self) -> None:
        """Note that it has come to the crash point."""
        self.reached = True

    def settle(self, unknown: UnknownEffect) -> None:
        """Note that a person has let an effect without an outcome be sent: asked once more, it is another one."""
        if unknown in self._unknown:
            self._unknown.remove(unknown)

    def diverge(self, text: str) -> None:
        """Note that the prefix is another one than was recorded; the first reason stays."""
        if self.resume is not None and not self.diverged:
            self.diverged = text
            self.note_change()

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        """Have somebody told of each change; gives what ends that."""
        self._watching.append(told)
        return lambda: self._watching.remove(told)

    def note_change(self) -> None:
        """Tell whoever watches that something was asked for."""
        for told in tuple(self._watching):
            told()
