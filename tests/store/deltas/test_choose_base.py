"""Which earlier exchange a new one is stored on."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.store.deltas.choose_base import (
    KEYFRAME_INTERVAL,
    MAX_CHAINS,
    MAX_KEYFRAME_DEPTH,
    DeltaChains,
    Placement,
    Stored,
    shared_prefix_name,
)
from playhead.store.deltas.record_codec import MAX_DEPTH, MAX_SEQ
from playhead.tape.exchange import Request
from playhead.tape.records.codec import encode_exchange
from playhead.tests.support.conversations import URL, bodies, step, words
from playhead.tests.support.exchanges import make_request


class Book:
    """What a store does with delta chains, without a store."""

    def __init__(self, **limits: int) -> None:
        self.chains = DeltaChains(**limits)
        self.prefixes: dict[bytes, Stored] = {}
        self.depth: dict[tuple[int, int | bytes], int] = {}
        self.seqs = itertools.count(1)

    def save(self, body: bytes, *, run: int = 1, final: bool = True) -> Placement:
        seq = next(self.seqs)
        exchange = step(seq, body)
        value = encode_exchange(exchange)
        stored = Stored(seq, value, len(value) - len(body))
        place = self.chains.place(run, stored, exchange.request, self.prefixes.get, final=final)
        if place.makes_prefix:
            assert place.base is not None
            assert place.base.value == value
            self.prefixes[shared_prefix_name(exchange.request)] = place.base
        assert place.stored.depth == (place.base.depth + 1 if place.base else 0) <= MAX_DEPTH
        return place


def base(place: Placement) -> int | str | None:
    """The seq that a place stands on, or `prefix`."""
    if place.base is None:
        return None
    return place.base.key if isinstance(place.base.key, int) else "shared prefix"


def test_a_conversation_is_stored_on_its_own_last_step() -> None:
    """The first step on a shared prefix, which it makes; each other on the one before."""
    book = Book()
    places = [book.save(body) for body in bodies("a", 6)]
    assert [base(place) for place in places] == ["shared prefix", 1, 2, 3, 4, 5]
    assert [place.makes_prefix for place in places] == [True, *[False] * 5]


def test_agents_that_take_turns_keep_to_their_own_chains() -> None:
    """Though they share a system prompt that is longer than all they say."""
    book = Book()
    conversations = [bodies(name, 10, system_size=30_000) for name in "abcd"]
    found = [base(book.save(body)) for turn in zip(*conversations, strict=True) for body in turn]
    own = [seq - 4 for seq in range(9, 41)]
    assert found[0] == "shared prefix"
    assert found[8:] == own


def test_a_second_run_uses_the_shared_prefix_of_the_first() -> None:
    """And on nothing else of that run."""
    book = Book()
    for body in bodies("a", 3):
        book.save(body, run=1)
    places = [book.save(body, run=2) for body in bodies("b", 3)]
    assert [base(place) for place in places] == ["shared prefix", 4, 5]
    assert not any(place.makes_prefix for place in places)


def test_a_changed_clock_and_a_dropped_half_are_followed() -> None:
    """Start and end of the body differ from step to step; what was said last is still in it."""
    book = Book()
    said = [words(f"said {number}", 400) for number in range(40)]
    system = words("system", 9000)
    found = []
    for number in range(2, 40):
        first = number // 3  # the oldest are dropped
        text = f"at {number:04} {system} {' '.join(said[first:number])} end {number * 77:04}"
        found.append(base(book.save(text.encode())))
    assert found[1:KEYFRAME_INTERVAL] == list(range(1, KEYFRAME_INTERVAL))


def test_keyframes_bound_the_depth() -> None:
    """Each so many steps one that stands on the keyframe before, and afresh where that lies deep."""
    book = Book()
    places = [
        book.save(body)
        for body in bodies("a", KEYFRAME_INTERVAL * (MAX_KEYFRAME_DEPTH + 2), said=20)
    ]
    keyframes = [place for place in places if place.stored.key in range(1, 9999, KEYFRAME_INTERVAL)]
    assert [place.stored.depth for place in keyframes] == [*range(1, MAX_KEYFRAME_DEPTH + 1), 1, 2]
    assert max(place.stored.depth for place in places) == MAX_DEPTH


def test_small_values_have_a_small_depth() -> None:
    """Reads, polls, and conversations that stay short: they are to be served at once."""
    book = Book()
    for number in range(200):
        poll = book.save(b"poll %d" % number)
        conversation = book.save(words(f"call {number % 7}", 3000).encode())
        assert poll.stored.depth <= 2
        assert conversation.stored.depth <= 2


def test_what_will_be_written_again_is_no_delta_base() -> None:
    """What has passed so far stands on another, and makes no shared prefix."""
    book = Book()
    one, two, three = bodies("a", 3)
    assert base(book.save(one, final=False)) is None
    assert base(book.save(one)) == "shared prefix"
    assert base(book.save(two, final=False)) == 2
    assert base(book.save(two)) == 2
    assert base(book.save(three)) == 4


def test_a_value_that_is_written_anew_is_no_base_any_more() -> None:
    """Its delta chain begins again."""
    book = Book()
    one, two, three = bodies("a", 3)
    book.save(one)
    book.save(two)
    book.seqs = itertools.count(2)
    assert base(book.save(two)) == "shared prefix"
    assert base(book.save(three)) == 2


def test_small_requests_push_no_conversation_out() -> None:
    """They stand on each other, by host and path."""
    book = Book()
    one, two = bodies("a", 2)
    book.save(one)
    polls = [book.save(b"poll %d" % number) for number in range(3 * MAX_CHAINS)]
    assert [base(place) for place in polls[1:4]] == [2, 2, 2]
    assert base(book.save(two)) == 1


def test_what_is_held_is_bounded() -> None:
    """For a run and for all; what falls out begins again, and the books are right."""
    book = Book(most_bytes=100_000, most_run_bytes=40_000)
    conversations = {(run, name): bodies(f"{run}{name}", 8) for run in range(1, 6) for name in "ab"}
    for _ in range(8):
        for (run, _), conversation in conversations.items():
            book.save(next(conversation), run=run)
            held = [known.size for known in book.chains._runs.values()]
            assert sum(held) == book.chains.size <= 100_000
            assert max(held) <= 40_000
    for run in range(1, 6):
        book.chains.drop(run)
    assert book.chains.size == 0


@pytest.mark.parametrize("what", ["a value of 17 MB", "a seq beyond four bytes"])
def test_what_cannot_be_a_base_stands_alone(what: str) -> None:
    """And is none."""
    chains = DeltaChains()
    request = make_request(URL, words("a", 3000).encode())
    value = b"x" * (17 << 20) if "MB" in what else b"x" + request.body
    seq = 1 if "MB" in what else MAX_SEQ + 1
    stored = Stored(seq, value, len(value) - len(request.body))
    place = chains.place(1, stored, request, lambda _: None, final=True)
    assert place.base is None
    assert chains.size == 0


def test_requests_share_a_prefix_by_path_start_and_end() -> None:
    """Not by what stands between, and not by their query."""

    def key(body: bytes, what: str = URL) -> bytes:
        request: Request = make_request(what, body)
        return shared_prefix_name(request)

    body = words("body", 500).encode()
    assert key(body) == key(body[:48] + b"else" + body[-64:]) == key(body, URL + "?beta=true")
    assert key(body) != key(b"!" + body)
    assert key(body) != key(body + b"!")
    assert key(body) != key(body, URL + "/more")


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans(), st.integers(0, 5000)),
        max_size=60,
    )
)
def test_any_order_of_steps_has_bounded_depth(steps: list[tuple[str, int, bool, int]]) -> None:
    """And no base that is not final, or of another run."""
    book = Book(most_bytes=60_000, most_run_bytes=30_000)
    final: dict[int, set[int]] = {}
    for name, run, done, size in steps:
        place = book.save(words(name, size).encode(), run=run, final=done)
        if place.base is not None and isinstance(place.base.key, int):
            assert place.base.key in final[run]
        if done:
            assert isinstance(place.stored.key, int)
            final.setdefault(run, set()).add(place.stored.key)
