"""Which recorded exchange answers next, as a table of conversations with the cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import Fingerprint, RequestClass, Seq
from playhead.tape.matching.cursor import Cursor, Exhausted, Hit, Unknown


def tape(letters: str) -> Cursor:
    """A cursor on a tape: the letter at place N is the fingerprint of seq N; `.` is none."""
    seqs: dict[Fingerprint, list[int]] = {}
    for seq, letter in enumerate(letters, 1):
        seqs.setdefault(Fingerprint(letter.encode()), []).append(seq)

    def next_use(fingerprint: Fingerprint, after: int) -> Seq | None:
        return next((Seq(seq) for seq in seqs.get(fingerprint, ()) if seq > after), None)

    return Cursor(next_use)


def play(cursor: Cursor, asked: str, kind: RequestClass, repeat: bool = False) -> list[str]:
    """Ask for each letter and take what is found; `3` a hit, `3*` a repeated one, `x2/3` exhausted."""
    told = []
    for letter in asked:
        fingerprint = Fingerprint(letter.encode())
        match cursor.find(fingerprint, kind, repeat=repeat):
            case Hit(seq, repeated) as hit:
                cursor.take(fingerprint, hit)
                told.append(f"{seq}{'*' if repeated else ''}")
            case Exhausted(last, times):
                told.append(f"x{times}/{last}")
            case Unknown():
                told.append("?")
    return told


READ, TELEMETRY, EFFECT = RequestClass.READ, RequestClass.TELEMETRY, RequestClass.EFFECT
INFERENCE = RequestClass.INFERENCE


@pytest.mark.parametrize(
    ("recorded", "asked", "kind", "told"),
    [
        # In recorded order inside a fingerprint.
        ("aaa", "aaa", READ, ["1", "2", "3"]),
        ("aba", "aa", READ, ["1", "3"]),
        # Free order between fingerprints.
        ("ab", "ba", READ, ["2", "1"]),
        ("abab", "bbaa", INFERENCE, ["2", "4", "1", "3"]),
        # Exhausted: never served again, whatever the class, except telemetry.
        ("a", "aa", READ, ["1", "x1/1"]),
        ("aba", "aaaa", READ, ["1", "3", "x2/3", "x2/3"]),
        ("a", "aa", EFFECT, ["1", "x1/1"]),
        ("a", "aa", INFERENCE, ["1", "x1/1"]),
        ("aba", "aaaa", TELEMETRY, ["1", "3", "3*", "3*"]),
        # Never on the tape: telemetry neither.
        ("a", "b", READ, ["?"]),
        ("", "a", READ, ["?"]),
        ("a", "ba", TELEMETRY, ["?", "1"]),
    ],
)
def test_identical_requests_are_served_in_recorded_order(
    recorded: str, asked: str, kind: RequestClass, told: list[str]
) -> None:
    """FIFO inside a fingerprint, free between them, and an end."""
    assert play(tape(recorded), asked, kind) == told


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (READ, ["1", "3", "3*", "3*", "2", "?"]),
        (EFFECT, ["1", "3", "x2/3", "x2/3", "2", "?"]),
        (INFERENCE, ["1", "3", "x2/3", "x2/3", "2", "?"]),
    ],
)
def test_a_rule_repeats_the_last_answer_of_reads_alone(kind: RequestClass, told: list[str]) -> None:
    """Once every recorded answer has been served; never one to an effect or a model call."""
    cursor = tape("aba")
    assert play(cursor, "aaaabc", kind, repeat=True) == told
    assert cursor.count == 3


def test_finding_does_not_move() -> None:
    """Only taking does: a refusal uses nothing up."""
    cursor = tape("aa")
    fingerprint = Fingerprint(b"a")
    assert cursor.find(fingerprint, READ) == cursor.find(fingerprint, READ) == Hit(Seq(1))
    assert cursor.count == 0


def test_every_playback_has_its_own_place() -> None:
    """Two cursors on one tape do not know of each other."""
    first, second = tape("a"), tape("a")
    assert play(first, "a", READ) == play(second, "a", READ) == ["1"]


@given(st.text("abc", max_size=20), st.text("abcd", max_size=30))
def test_no_exchange_is_served_twice(recorded: str, asked: str) -> None:
    """What was served is counted once and remembered; nothing else is."""
    cursor = tape(recorded)
    told = play(cursor, asked, READ)
    served = [int(text) for text in told if text.isdigit()]
    assert len(served) == len(set(served)) == cursor.count
    assert [seq for seq in range(1, 21) if cursor.served(Seq(seq))] == sorted(served)
    for letter in "abc":
        assert sum(
            text.isdigit() for text, was in zip(told, asked, strict=True) if was == letter
        ) == min(recorded.count(letter), asked.count(letter))


@given(st.text("ab", min_size=1, max_size=10), st.text("ab", min_size=1, max_size=30))
def test_telemetry_repeats_its_last_answer(recorded: str, asked: str) -> None:
    """A repeat is not counted as another exchange of the tape."""
    cursor = tape(recorded)
    told = play(cursor, asked, TELEMETRY)
    assert not any(text.startswith("x") for text in told)
    assert cursor.count == sum(text.isdigit() for text in told)
