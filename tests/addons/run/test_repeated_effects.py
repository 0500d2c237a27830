"""Effects asked for again, as a table: what was asked before, and what that makes of the next."""

import pytest

from playhead.addons.run.repeated_effects import _MOST_KEYS, Effect, Effects
from playhead.tape.exchange import Repeat, RepeatKind, Seq

DUPLICATE, RETRY = RepeatKind.POSSIBLE_DUPLICATE, RepeatKind.SAFE_RETRY
SEEN, UNSEEN = True, False


@pytest.mark.parametrize(
    ("earlier", "key", "expected"),
    [
        # Nothing like it before.
        ([], None, None),
        ([], b"a", None),
        # Another key or none: nobody can tell whether it is meant twice.
        ([(None, SEEN)], None, Repeat(Seq(1), DUPLICATE, unseen=False)),
        ([(b"a", SEEN)], None, Repeat(Seq(1), DUPLICATE, unseen=False)),
        ([(None, SEEN)], b"a", Repeat(Seq(1), DUPLICATE, unseen=False)),
        ([(b"a", SEEN)], b"b", Repeat(Seq(1), DUPLICATE, unseen=False)),
        # Above all when the client saw no answer.
        ([(None, UNSEEN)], None, Repeat(Seq(1), DUPLICATE, unseen=True)),
        ([(None, UNSEEN), (None, SEEN)], None, Repeat(Seq(1), DUPLICATE, unseen=True)),
        ([(None, SEEN), (None, SEEN)], None, Repeat(Seq(2), DUPLICATE, unseen=False)),
        # The same key: the other side knows.
        ([(b"a", UNSEEN)], b"a", Repeat(Seq(1), RETRY, unseen=True)),
        ([(b"a", SEEN), (b"b", SEEN)], b"a", Repeat(Seq(1), RETRY, unseen=False)),
    ],
)
def test_what_an_effect_repeats(
    earlier: list[tuple[bytes | None, bool]], key: bytes | None, expected: Repeat | None
) -> None:
    """Which earlier effect, of what kind, and whether its answer went unseen."""
    effects = Effects()
    for seq, (used, seen) in enumerate(earlier, 1):
        effects.note(b"the same", Effect(Seq(seq), used, seen))
    effects.note(b"another", Effect(Seq(98), key))
    assert effects.note(b"the same", Effect(Seq(99), key)) == expected


@pytest.mark.parametrize(
    ("earlier", "key", "expected"),
    [
        # The tape answered it, and nobody saw that: it failed, or its client left.
        ([Effect(Seq(1), None, UNSEEN, is_recorded=True)], None, 1),
        ([Effect(Seq(1), b"a", UNSEEN, is_recorded=True)], None, 1),
        ([Effect(Seq(1), b"a", UNSEEN, is_recorded=True)], b"b", 1),
        # A safe retry; an answer that was seen, also of a later one; never sent; sent behind the crash.
        ([Effect(Seq(1), b"a", UNSEEN, is_recorded=True)], b"a", None),
        ([Effect(Seq(1), None, SEEN, is_recorded=True)], None, None),
        (
            [Effect(Seq(1), None, UNSEEN, is_recorded=True), Effect(Seq(2), None, SEEN, is_recorded=True)],
            None,
            None,
        ),
        ([Effect(Seq(1), None, UNSEEN, undone=True, is_recorded=True)], None, None),
        ([Effect(Seq(1), None, UNSEEN)], None, None),
        ([Effect(Seq(1), None, UNSEEN, is_recorded=True), Effect(Seq(2), None, UNSEEN)], None, None),
        ([Effect(Seq(1), None, SEEN, is_recorded=True, is_doubtful=True)], None, 1),
        ([Effect(Seq(1), b"a", SEEN, is_recorded=True, is_doubtful=True)], b"a", None),
        # A retry that was refused changes nothing.
        (
            [Effect(Seq(1), None, UNSEEN, is_recorded=True), Effect(Seq(2), None, SEEN, undone=True)],
            None,
            1,
        ),
        ([], None, None),
    ],
)  # fmt: skip
def test_the_retry_of_an_effect_that_nobody_saw_answered_is_known(
    earlier: list[Effect], key: bytes | None, expected: int | None
) -> None:
    """Of one that a tape answered: a resumed run asks before it is sent."""
    effects = Effects()
    for one in earlier:
        effects.note(b"the same", one)
    assert effects.find_unseen(b"the same", key) == expected
    assert effects.find_unseen(b"another", key) is None


def test_memory_does_not_grow_with_the_run() -> None:
    """The effects asked for longest ago are forgotten, and only those."""
    effects = Effects()
    for number in range(_MOST_KEYS + 1):
        assert effects.note(number.to_bytes(8, "big"), Effect(Seq(number), None)) is None
    assert effects.note((0).to_bytes(8, "big"), Effect(Seq(1), None)) is None
    assert effects.note((2).to_bytes(8, "big"), Effect(Seq(1), None)) is not None
