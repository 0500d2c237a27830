"""What the name of a place says of the values there."""

import pytest

from playhead.tape.diff.field_name_meaning import (
    names_party,
    names_quantity,
    names_request,
    names_time,
)


@pytest.mark.parametrize(
    ("place", "is_time"),
    [
        ("body $.at", True),
        ("body $.meta.sentAt", True),
        ("body $.events[0].created_at", True),
        ("header x-amz-date", True),
        ("query timestamp", True),
        ("body $.client_time_ms", True),
        ("body $.meeting.at", False),
        ("body $.due_date", False),
        ("body $.expires_at", False),
        ("body $.filter.created", False),
        ("body $.order_time", False),
        ("body $.x", False),
        ("body byte 3", False),
    ],
)
def test_a_time_is_named_by_all_its_words(place: str, is_time: bool) -> None:
    """One that somebody has chosen has another word beside."""
    assert names_time(place) is is_time


@pytest.mark.parametrize(
    ("place", "party"),
    [
        ("body $.to", True),
        ("body $.from", True),
        ("body $.payee", True),
        ("body $.account_id", True),
        ("body $.customerId", True),
        ("body $.customer.id", True),
        ("body $.recipients[0]", True),
        ("body $.destination_account_number", True),
        ("form customer%5Bid%5D", True),
        ("query user", True),
        ("header x-account-id", True),
        ("body $.id", False),
        ("body $.ref", False),
        ("body $.user.session", False),
        ("body $.account.request_id", False),
        ("body $.token", False),
        ("body byte 3", False),
    ],
)
def test_a_party_is_named_by_its_last_word(place: str, party: bool) -> None:
    """Words that say how it is named stand behind it."""
    assert names_party(place) is party


@pytest.mark.parametrize(
    ("place", "tells"),
    [
        ("body $.request_id", True),
        ("body $.meta.requestId", True),
        ("body $[0].nonce", True),
        ("header x-request-id", True),
        ("header X-Req-Nonce", True),
        ("header x-req-id", True),
        ("body $.req_nonce", True),
        ("query req_nonce", True),
        ("query req_id", False),
        ("header x-payment-req-id", False),
        ("header amz-sdk-invocation-id", True),
        ("form idempotency_key", True),
        ("body $.clientToken", True),
        ("header x-trace-id", True),
        ("body $.meta.trace_id", True),
        ("body $.trace_id", False),
        ("body $.params.request_id", False),
        ("body $.sequence", False),
        ("body $.token", False),
        ("body $.meta.session_id", True),
        ("header x-session-id", True),
        ("body $.session_id", False),
        ("query request_id", False),
        ("query session_id", False),
        ("body $.variables.payroll_run_id", False),
        ("body $.variables.refund_request_id", False),
        ("header x-order-id", False),
        ("body $.id", False),
        ("body $.event_id", False),
        ("body $.message_id", False),
        ("body $.payment_request_id", False),
        ("body $.items[0].request_id", False),
        ("query filter%5Brequest_id%5D", False),
        ("body byte 3", False),
    ],
)
def test_a_request_is_told_by_its_own_identifier(place: str, tells: bool) -> None:
    """An id of something else may be what the request is about."""
    assert names_request(place) is tells


def test_a_sequence_tells_a_request_where_it_counts() -> None:
    """One of letters is something else."""
    assert names_request("body $.sequence", counts=True)
    assert not names_request("body $.order.sequence", counts=True)


@pytest.mark.parametrize(
    ("place", "quantity"),
    [
        ("body $.amount", True),
        ("body $.sellAmount", True),
        ("body $.amount_micros", True),
        ("form unit_price", True),
        ("body $.items[0].qty", True),
        ("body $.amount.id", False),
        ("body $.request_id", False),
        ("body byte 3", False),
    ],
)
def test_a_quantity_is_named_by_any_word(place: str, quantity: bool) -> None:
    """Of the last name of the place."""
    assert names_quantity(place) is quantity
