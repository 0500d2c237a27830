"""What a run may use up: which request would be one too many, and what is counted."""

from decimal import Decimal

import pytest

from playhead.config import Limits
from playhead.tape.exchange import RequestClass
from playhead.tape.policy.alike_effects import find_form_keys
from playhead.tape.policy.decide import Facts
from playhead.tape.policy.limits import NANO, CountedUsage, Row, Used, find_spent, show_usd

INFERENCE, READ, EFFECT, TELEMETRY = (
    RequestClass.INFERENCE,
    RequestClass.READ,
    RequestClass.EFFECT,
    RequestClass.TELEMETRY,
)
CALLS, TOKENS = Limits(calls=3), Limits(tokens=100)
USD, REPEATS = Limits(usd=Decimal("0.50")), Limits(repeats=2)


def used(calls: int = 0, tokens: int = 0, usd: str = "0", unknown: int = 0) -> Used:
    made = Used(calls=calls)
    made.add(CountedUsage(True, tokens, 0, 0, int(Decimal(usd) * NANO)))
    for _ in range(unknown):
        made.add(CountedUsage())
    return made


@pytest.mark.parametrize(
    ("limits", "so_far", "kind", "times", "limit"),
    [
        # Without limits nothing is refused.
        (Limits(), used(10**6, 10**9, "1000"), INFERENCE, 10**6, None),
        # Calls: whatever leaves, up to the number, and not one more.
        (CALLS, used(0), READ, 0, None),
        (CALLS, used(2), EFFECT, 0, None),
        (CALLS, used(3), EFFECT, 0, "calls"),
        (CALLS, used(3), READ, 0, "calls"),
        (CALLS, used(3), INFERENCE, 0, "calls"),
        (CALLS, used(0, 10**9, "1000"), INFERENCE, 9, None),
        # Tokens: model calls alone use more of them.
        (TOKENS, used(0, 99), INFERENCE, 0, None),
        (TOKENS, used(0, 100), INFERENCE, 0, "tokens"),
        (TOKENS, used(0, 5000), INFERENCE, 0, "tokens"),
        (TOKENS, used(0, 5000), EFFECT, 0, None),
        (TOKENS, used(0, 5000), READ, 0, None),
        # Money likewise; what has no price is not counted as any.
        (USD, used(0, 0, "0.499999"), INFERENCE, 0, None),
        (USD, used(0, 0, "0.50"), INFERENCE, 0, "usd"),
        (USD, used(0, 0, "0.50"), EFFECT, 0, None),
        (USD, used(0, 10**9, "0", 1000), INFERENCE, 0, None),
        # Repeats: the same in a row, so often and not once more.
        (REPEATS, used(), INFERENCE, 2, None),
        (REPEATS, used(), INFERENCE, 3, "repeats"),
        (REPEATS, used(), READ, 3, "repeats"),
        (REPEATS, used(), EFFECT, 3, "repeats"),
        # Nobody wrote telemetry, and no limit is its own.
        (CALLS, used(3), TELEMETRY, 0, None),
        (TOKENS, used(0, 100), TELEMETRY, 0, None),
        (REPEATS, used(), TELEMETRY, 9, None),
        # Of several the first in this order is told: calls, tokens, usd, repeats.
        (Limits(1, 1, Decimal(1), 1), used(1, 1, "1"), INFERENCE, 2, "calls"),
        (Limits(9, 1, Decimal(1), 1), used(1, 1, "1"), INFERENCE, 2, "tokens"),
        (Limits(9, 9, Decimal(1), 1), used(1, 1, "1"), INFERENCE, 2, "usd"),
        (Limits(9, 9, Decimal(1), 1), used(1, 1, "1"), EFFECT, 2, "repeats"),
    ],
)
def test_a_limit_refuses_what_would_use_more_of_it(
    limits: Limits, so_far: Used, kind: RequestClass, times: int, limit: str | None
) -> None:
    """And nothing else."""
    found = find_spent(limits, so_far, kind, times)
    assert (found and found.limit) == limit


@pytest.mark.parametrize(
    ("limits", "so_far", "text"),
    [
        (Limits(calls=1), used(1), "the run's limit of 1 call is exhausted"),
        (
            TOKENS,
            used(0, 120, "0", 2),
            "100 tokens is exhausted: 120, and 2 calls that stated none",
        ),
        (USD, used(0, 9, "0.5123", 1), "0.50 USD is exhausted: 0.5123 USD, and 1 call of unknown"),
        (USD, used(0, 9, "7"), "0.50 USD is exhausted: 7.00 USD"),
    ],
)
def test_what_is_exhausted_is_said_with_what_is_unknown(
    limits: Limits, so_far: Used, text: str
) -> None:
    """One line, with both numbers."""
    found = find_spent(limits, so_far, INFERENCE, 0)
    assert found is not None
    assert text in found.text


@pytest.mark.parametrize(
    ("known", "estimated", "reserved", "needed", "text"),
    [
        # What fits may leave, to the last billionth.
        ("0.20", "0", "0", "0.30", ""),
        ("0.20", "0.10", "0.10", "0.10", ""),
        ("0.20", "0", "0", "0.31", "the call can cost 0.31 USD, and the run's limit is 0.50 USD"),
        ("0.20", "0.25", "0", "0.10", "0.25 USD estimated for calls that stated no usage"),
        ("0.20", "0", "0.25", "0.10", "0.25 USD reserved for calls on their way"),
        # What nobody estimates is refused only behind the limit.
        ("0.20", "0.25", "0.25", "0", ""),
        ("0.50", "0", "0", "0", "the run's limit of 0.50 USD is exhausted"),
    ],
)
def test_a_call_that_can_pass_a_cap_is_not_sent(
    known: str, estimated: str, reserved: str, needed: str, text: str
) -> None:
    """By what is known, what is estimated, and what others on their way can cost."""
    so_far = Used()
    so_far.add(CountedUsage(True, 1, 1, 0, nano(known), estimated=nano(estimated)))
    found = find_spent(USD, so_far, INFERENCE, 0, needed=nano(needed), reserved=nano(reserved))
    assert (found is not None, text in (found.text if found else "")) == (bool(text), True)
    assert find_spent(USD, Used(), READ, 0, needed=10**12, reserved=10**12) is None


def nano(usd: str) -> int:
    return int(Decimal(usd) * NANO)


def test_counted_usage_replaces_an_earlier_count() -> None:
    """A stream is read twice: before the piece that an SDK acts on, and at its end."""
    first, last = CountedUsage(True, 3, 1, 0, None), CountedUsage(True, 3, 77, 2, 5)
    so_far = Used()
    so_far.add(first)
    so_far.add(first, -1)
    so_far.add(last)
    assert so_far == Used(0, 3, 77, 2, 5)


@pytest.mark.parametrize(
    "counted",
    [
        CountedUsage(),
        CountedUsage(True, 1, 2, 1, None),
        CountedUsage(True, 1, 2, 0, 7),
        CountedUsage(True),
    ],
)
def test_counted_usage_is_read_back_from_its_row(counted: CountedUsage) -> None:
    """As it stands in an event."""
    assert CountedUsage.from_row(counted.to_row()) == counted


def _asked(target: str, method: str = "GET") -> Facts:
    return Facts(method, "https", "api.test", 443, target, READ)


def test_the_same_in_a_row_is_counted_by_endpoint() -> None:
    """Another request there begins anew; others elsewhere come between without breaking the row."""
    row, one, two = Row(), frozenset({b"1"}), frozenset({b"2"})
    asked = _asked("/a?x=1")
    assert [row.note(asked, one) for _ in range(3)] == [1, 2, 3]
    assert row.note(_asked("/b"), two) == 1
    assert row.note(_asked("/a", "POST"), two) == 1
    assert row.note(asked, one) == 4
    assert row.note(_asked("/a?x=2"), two) == 1
    assert row.note(asked, one) == 1


@pytest.mark.parametrize(
    "spelled",
    [
        "/v1/A/x?b=2&a=1",
        "/v1//a/x?a=1&b=2",
        "/v1/a/./x?a=1&b=2",
        "/v1/%61/x?a=1&b=2",
        "/v1/a/x/?a=1&b=2",
        "/v1/a;p/x?a=1&b=2",
        "/v1/a%2fx?a=1&b=2",
        "/v1/a/x?a=%31&b=2",
        "/v1/a/x?b=2&a=1",
    ],
)
def test_another_spelling_is_the_same_request(spelled: str) -> None:
    """However it is alternated with others; another body, header field or place is another request."""
    row, rest = Row(), b"rest"

    def times(target: str, rest: bytes = rest, method: str = "GET") -> int:
        asked = _asked(target, method)
        own = frozenset({target.encode() + rest})
        return row.note(asked, own | find_form_keys(rest, asked.ways))

    plain = "/v1/a/x?a=1&b=2"
    assert [times(target) for target in (plain, spelled, plain, spelled, spelled)] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert times(plain, b"else") == 1
    assert times("/v1/b/x?a=1&b=2") == 1
    assert times(spelled, method="POST") == 1


def test_a_new_answer_begins_the_row_anew() -> None:
    """The same one does not, nor that to another request, or one at a place that nobody knows."""
    row, one, two, asked = Row(), frozenset({b"1"}), frozenset({b"2"}), _asked("/job")
    row.heard(asked, one, b"nobody asked")
    for answer, times in ((b"wait", 1), (b"wait", 2), (b"wait", 3), (b"half", 4), (b"half", 2)):
        assert row.note(asked, one) == times
        row.heard(asked, one, answer)
        row.heard(asked, two, b"else")
        row.heard(_asked("/other"), one, b"else")
    assert row.note(asked, one) == 3


def test_no_more_endpoints_are_remembered_than_there_is_room_for() -> None:
    """Those asked longest ago go first."""
    row, one = Row(), frozenset({b"1"})
    for number in range(10_001):
        row.note(_asked(f"/{number}"), one)
    assert row.note(_asked("/10000"), one) == 2
    assert row.note(_asked("/1"), one) == 2
    assert row.note(_asked("/0"), one) == 1


@pytest.mark.parametrize(
    ("amount", "text"),
    [("5", "5.00"), ("0.5", "0.50"), ("0.0125", "0.0125"), ("1000000", "1000000.00")],
)
def test_money_is_shown_with_two_digits_or_as_many_as_it_needs(amount: str, text: str) -> None:
    """Fractions of a cent are what one call costs."""
    assert show_usd(Decimal(amount)) == text
