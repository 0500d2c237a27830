"""A value of the tape stands for nothing but itself: which ones are another one's now."""

import pytest

from playhead.tape.headers.compared_fields import Linked, Space
from playhead.tape.headers.swapped_values import RecordedValues
from playhead.tape.redaction.credential_fields import is_credential

_A, _B, _C = "s3Kq9LmZ2xVb7NpW", "r8Tf4HjY6cQd1GsE", "n5Wd8QzX3mKf6RtY"


def _values(*values: str, space: Space = Space.CREDENTIAL) -> list[Linked]:
    return [Linked(space, f"x-{number}", one.encode()) for number, one in enumerate(values)]


@pytest.mark.parametrize(
    ("recorded", "present", "moved"),
    [
        ((_A, _B), (_B, _A), [0, 1]),
        ((_A, _B), (_B, _C), [0]),
        ((_A, _B), (_B, _B), [0]),
        ((_A, _B), (_C, _A), [1]),
        ((_A, _B), (_A, _C), []),
        ((_A, _B), (_C, _C), []),
        (("k1", "k2"), ("k2", "k1"), [0, 1]),
        (("k1", "dummy"), ("dummy", "dummy"), []),
        ((_A, _A, _B), (_C, _C, _A), [2]),
    ],
)
def test_what_is_moved_within_a_request(
    recorded: tuple[str, ...], present: tuple[str, ...], moved: list[int]
) -> None:
    """Any value of it that is in another one's place, but for a word that is there for all."""
    values = RecordedValues(is_credential)
    found = values.find_moved(_values(*recorded), _values(*present))
    assert [int(old.place[2:]) for old, _ in found] == moved


def test_ids_of_runs_need_not_look_like_credentials() -> None:
    """They are drawn, whatever their form is."""
    values = RecordedValues(is_credential)
    pairs = (_values(*one, space=Space.RUN) for one in (("s", "t"), ("t", "t")))
    assert [old.value for old, _ in values.find_moved(*pairs)] == [b"s"]


def test_a_word_is_no_key_of_the_tape() -> None:
    """Nor is what no request had."""
    values = RecordedValues(is_credential)
    values.add(_values(_A, "dummy"))
    assert [values.has(one) for one in _values(_A, "dummy", _B)] == [True, False, False]


def test_a_user_is_one_of_the_tape_and_no_password() -> None:
    """Short parts of credentials are compared with those of their own place."""
    values = RecordedValues(is_credential)
    user = Linked(Space.CREDENTIAL, "authorization#1", b"bob", part=True)
    values.add([user])
    assert values.has(user)
    assert not values.has(user._replace(place="authorization#2"))


def test_what_an_answer_gave_first_is_not_the_tapes_own() -> None:
    """An agent may have it from the run before, and show it first."""
    values = RecordedValues(is_credential)
    values.add(_values(_A))
    values.give([_A.encode(), _B.encode()])
    values.add(_values(_A, _B))
    assert [values.has(one) for one in _values(_A, _B)] == [True, False]


@pytest.mark.parametrize(
    ("recorded", "present", "moved"),
    [((_A, _B), (_B, _A), 2), (("acme", "en"), ("en", "acme"), 0), ((_A, _B), (_C, _B), 0)],
)
def test_a_key_in_a_cookie_is_one_in_any_place(
    recorded: tuple[str, str], present: tuple[str, str], moved: int
) -> None:
    """Two cookies, or a cookie and a field, that have changed places; a setting is none."""
    for places in (("cookie a", "cookie b"), ("cookie a", "x-api-key")):
        old, new = (
            [
                Linked(Space.CREDENTIAL, place, one.encode())
                for place, one in zip(places, values, strict=True)
            ]
            for values in (recorded, present)
        )
        found = list(RecordedValues(is_credential).find_moved(old, new))
        assert len(found) == moved
