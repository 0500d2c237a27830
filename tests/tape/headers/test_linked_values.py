"""One recorded value stands for one present value, for the whole run and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.headers.compared_fields import Linked, Space
from playhead.tape.headers.linked_values import LinkedValues
from playhead.tape.redaction.credential_fields import is_credential


def key(value: str, place: str = "authorization") -> tuple[Linked]:
    return (Linked(Space.CREDENTIAL, place, value.encode()),)


def play(*pairs: tuple[str, str]) -> list[str]:
    """Compare pairs of recorded and present values in their order; give what each came to."""
    links, found = LinkedValues(is_credential), []
    for old, new in pairs:
        told = links.compare(key(old), key(new))
        links.note(key(old), key(new))
        found.append("merged" if told.merged else "split" if told.split else "")
    return found


@given(st.lists(st.sampled_from("abcd")), st.permutations("wxyz"))
def test_other_names_for_the_same_values_agree(said: list[str], others: list[str]) -> None:
    """Any renaming that keeps them apart."""
    names = dict(zip("abcd", others, strict=True))
    assert set(play(*((one, names[one]) for one in said))) <= {""}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))))
def test_all_else_is_found(pairs: list[tuple[str, str]]) -> None:
    """Whatever is no renaming is told at the first pair that breaks it."""
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for (old, new), told in zip(pairs, play(*pairs), strict=True):
        agrees = there.setdefault(old, new) == new and back.setdefault(new, old) == old
        if not agrees:
            assert told
            return
        assert not told


@given(st.permutations("abc"), st.lists(st.sampled_from("abc")))
def test_values_of_both_runs_stand_for_themselves(names: list[str], more: list[str]) -> None:
    """Values that changed places are found, whichever was met first, even where each stands for one other."""
    renamed = dict(zip("abc", names, strict=True))
    told = play(*((one, renamed[one]) for one in ("a", "b", "c", *more)))
    assert any(told) is (names != ["a", "b", "c"])


def test_a_value_in_the_place_of_one_that_is_known_is_no_merged_one() -> None:
    """Both stood for themselves before."""
    assert play(("a", "a"), ("b", "b"), ("a", "b")) == ["", "", "split"]


@pytest.mark.parametrize(
    ("pairs", "told"),
    [("ax bx", "merged"), ("ax ay", "split"), ("ax by", ""), ("ax ax", "")],
)
def test_ids_of_runs_are_compared_within_one_request(pairs: str, told: str) -> None:
    """A request may name its session in two fields, and may be the first of its run."""
    links = LinkedValues(is_credential)
    old, new = (
        tuple(
            Linked(Space.RUN, f"x-{number}", pair[at].encode())
            for number, pair in enumerate(pairs.split())
        )
        for at in (0, 1)
    )
    found = links.compare(old, new)
    assert (bool(found.merged), bool(found.split)) == (told == "merged", told == "split")


@pytest.mark.parametrize("key", ["", "sk1live2key3of4a5tape6"], ids=["short", "long"])
def test_one_recorded_value_for_two_present_ones_is_split(key: str) -> None:
    """The first stands for one already, whatever else the second stands for."""
    renamed = (("a", f"x{key}"), ("b", f"y{key}"), ("a", f"y{key}"))
    assert play(*renamed) == ["", "", "split"]


SECRET = "sk1live2key3of4a5tape6"


@pytest.mark.parametrize(
    "pairs", [[("a", SECRET), (SECRET, SECRET)], [(SECRET, SECRET), ("a", SECRET)]]
)
def test_a_credential_of_the_tape_is_no_dummy(pairs: list[tuple[str, str]]) -> None:
    """Another account's own key in the place of a key was taken for it; a word for all keys was not."""
    assert play(*pairs) == ["", "split"]
    word = {SECRET: "dummy"}
    assert play(*((word.get(old, old), word.get(new, new)) for old, new in pairs)) == ["", "merged"]


def test_a_value_stands_for_one_wherever_it_is() -> None:
    """The same key in another field is the same key."""
    links = LinkedValues(is_credential)
    links.note(key("a"), key("x"))
    assert links.compare(key("a", "x-api-key"), key("y", "x-api-key")).split
    assert not links.compare(key("a", "x-api-key"), key("x", "x-api-key")).rank


def test_cookies_are_apart() -> None:
    """A `1` in one cookie is no `1` in another."""
    links = LinkedValues(is_credential)
    links.note(key("1", "cookie a"), key("2", "cookie a"))
    assert not links.compare(key("3", "cookie b"), key("2", "cookie b")).merged


def test_what_follows_has_to_be_known() -> None:
    """A lease is the recorded one, or the one that was proposed."""
    links = LinkedValues(is_credential)
    proposed = Linked(Space.RUN, "x-ms-proposed-lease-id", b"recorded")
    links.note((proposed,), (proposed._replace(value=b"present"),))
    lease = Linked(Space.RUN, "x-ms-lease-id", b"recorded", follows=True)
    assert not links.compare((lease,), (lease,)).rank
    assert not links.compare((lease,), (lease._replace(value=b"present"),)).rank
    assert links.compare((lease,), (lease._replace(value=b"another"),)).split


def test_what_an_answer_gave_stands_for_nothing_else() -> None:
    """A token that was issued to one is not another's, even where neither was used before; nor is one that nobody issued."""
    links = LinkedValues(is_credential)
    for old, new in (("a", "x"), ("b", "y")):
        links.give(*key(old), new.encode())
    assert not links.compare(key("a"), key("x")).rank
    assert links.compare(key("a"), key("y")).split
    assert links.compare(key("a"), key("own")).split
    links.note(key("a"), key("own"))
    assert not links.compare(key("a"), key("x")).rank


def give(links: LinkedValues, recorded: str, present: str, place: str = "") -> None:
    links.give(Linked(Space.CREDENTIAL, place, recorded.encode()), present.encode())


@pytest.mark.parametrize("place", ["authorization", "cookie session"])
@pytest.mark.parametrize(
    ("present", "agrees"), [("given", True), ("token", True), ("invented", False)]
)
def test_what_an_answer_gave_is_sent_back(place: str, present: str, agrees: bool) -> None:
    """As it came, or as the tape has it; a value that nobody gave is somebody else's."""
    links = LinkedValues(is_credential)
    give(links, "token", "given", place if place.startswith("cookie") else "")
    assert bool(links.compare(key("token", place), key(present, place)).split) is not agrees


def test_a_credential_that_was_used_before_an_answer_named_it_stays_linked() -> None:
    """As an account's answer may name its own key, and a replay goes with another one."""
    links = LinkedValues(is_credential)
    links.note(key("recorded"), key("other"))
    give(links, "recorded", "given")
    assert not links.compare(key("recorded"), key("other")).split


def test_an_answer_that_says_a_request_back_gives_nothing() -> None:
    """Whatever stands for the value now, in the request or in a later one."""
    links = LinkedValues(is_credential)
    links.ask(key("own"))
    give(links, "own", "given")
    assert not links.compare(key("own"), key("other")).split
    assert not links.is_mistaken(key("own"), *key("other"))


def test_of_cookies_that_were_given_at_one_time_any_may_be_sent() -> None:
    """Which answer came last is another thing in each run."""
    links = LinkedValues(is_credential)
    for number in ("1", "2"):
        give(links, f"then{number}", f"now{number}", "cookie balance")
    found = links.compare(key("then2", "cookie balance"), key("now1", "cookie balance"))
    assert not found.split


@pytest.mark.parametrize("account", ["sk1live2key3of4a5tape6", "short"])
def test_inner_values_that_changed_places_are_mistaken(account: str) -> None:
    """Whether they read like credentials or not; one for all does so only where it reads like one."""
    links = LinkedValues(is_credential)
    links.note(key(account), key("other"))
    assert links.is_mistaken(key("other"), *key(account))
    for_all = LinkedValues(is_credential)
    for_all.note(key(account), key(account))
    assert for_all.is_mistaken(key("other"), *key(account)) is (account != "short")


def test_an_inner_value_that_nobody_gave_is_mistaken() -> None:
    """Where an answer of the tape gave the recorded one; unless it stands for that one already."""
    links = LinkedValues(is_credential)
    give(links, "token", "given")
    assert not links.is_mistaken(key("token"), *key("given"))
    assert not links.is_mistaken(key("token"), *key("token"))
    assert links.is_mistaken(key("token"), *key("invented"))
    links.note(key("token"), key("own"))
    assert not links.is_mistaken(key("token"), *key("own"))


def test_one_inner_value_for_several_recorded_ones_is_merged() -> None:
    """A word for all is no mistake, and is named."""
    links = LinkedValues(is_credential)
    assert not links.is_merged(key("one"), *key("dummy"))
    links.note(key("one"), key("dummy"))
    assert not links.is_merged(key("one"), *key("dummy"))
    assert links.is_merged(key("two"), *key("dummy"))


@pytest.mark.parametrize(
    ("recorded", "split"), [("sk1live2key3of4a5tape6", True), ("short", False)]
)
def test_another_value_for_an_inner_credential_that_was_linked_is_split(
    recorded: str, split: bool
) -> None:
    """A word may stand for several things."""
    links = LinkedValues(is_credential)
    links.note(key(recorded), key("now"))
    assert not links.is_split(*key(recorded), *key("now"))
    assert links.is_split(*key(recorded), *key("other")) is split


def test_a_session_that_was_used_is_no_other_one() -> None:
    """What both sessions ask says nothing; once one asked what only it has asked, it stands for itself."""
    links = LinkedValues(is_credential)
    one, other = (
        Linked(Space.RUN, "mcp-session-id", value, follows=True) for value in (b"1", b"2")
    )
    for session in (one, other):
        links.open(session, b"same")
    links.note((one,), (one,))
    assert links.compare((other,), (one,)).rank < 2
    links.note((one,), (one,), lambda _: True)
    assert not links.compare((one,), (one,)).rank
    assert links.compare((other,), (one,)).rank == 2
    assert links.compare((one,), (other,)).rank == 2
    assert links.compare((other,), (other,)).rank < 2


def test_sessions_that_were_opened_alike_may_be_given_in_either_order() -> None:
    """Two clients that begin at one time: each keeps the session that it was given."""
    links = LinkedValues(is_credential)
    one, other, third = (
        Linked(Space.RUN, "mcp-session-id", value, follows=True) for value in (b"1", b"2", b"3")
    )
    for session, asked in ((one, b"same"), (other, b"same"), (third, b"else")):
        links.open(session, asked)
    assert links.compare((one,), (other,)).rank == 1
    assert links.compare((one,), (third,)).split
    links.note((one,), (other,))
    assert not links.compare((one,), (other,)).rank
    assert links.compare((one,), (one,)).rank == links.compare((other,), (other,)).rank == 2
    assert links.compare((other,), (one,)).rank < 2
