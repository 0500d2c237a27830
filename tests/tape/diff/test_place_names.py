"""What the name of a place says of the values there."""

import pytest

from playhead.tape.diff.place_names import names_counter, names_party


@pytest.mark.parametrize(
    ("place", "counts"),
    [
        ("body $.id", True),
        ("body $[3].id", True),
        ("body $.seq", True),
        ("body $.meta.requestId", True),
        ("body $['request-id']", True),
        ("body $.params.sequence_number", True),
        ("query nonce", True),
        ("header x-request-id", False),
        ("query id", False),
        ("form index", False),
        ("body $.order.id", False),
        ("body $.items[*].index", False),
        ("body $.order_id", False),
        ("body $.items[0].qty", False),
        ("body $.x", False),
        ("body $.amount", False),
        ("body $.n", False),
        ("query offset", False),
        ("query page", False),
        ("body byte 3", False),
        ("body", False),
    ],
)
def test_only_a_name_that_says_so_counts(place: str, counts: bool) -> None:
    """Quantities, pages and coordinates grow, too."""
    assert names_counter(place) is counts


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
