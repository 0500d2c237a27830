"""Sorts of personal data that have a form: what is one, and what only looks like it."""

import pytest

from playhead.timeline.destinations.personal_data import as_said, count_personal_data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to ana@shop.test, and ben.o+x@mail.example.org.", {"email": 2}),
        ("git@github.com is one by its form", {"email": 1}),
        ("@ana, a@b, ana@localhost, 5 @ 3.50", {}),
        ("call +44 20 7946 0958 or +1 (212) 555-0100", {"phone": 2}),
        ("1 + 2, +5, C++17, 020 7946 0958", {}),
        # test numbers of the card networks
        ("4111 1111 1111 1111, 5500-0000-0000-0004, 378282246310005", {"card": 3}),
        ("4111 1111 1111 1112, 4444444444444444444444, order 4000000000000", {}),
        ("GB82 WEST 1234 5698 7654 32 and DE89370400440532013000", {"iban": 2}),
        ("GB82 WEST 1234 5698 7654 33, AB12 3456 7890", {}),
        # an IBAN with wrong check digits, whose digits pass as those of a card, and a card behind one
        ("DE89 3704 0044 0532 0130 01", {}),
        ("AT61 1904 3002 3457 3201, 4111 1111 1111 1111", {"iban": 1, "card": 1}),
        (
            "ana@shop.test, Ana@shop.test, 4111 1111 1111 1111, 4111-1111-1111-1111",
            {"email": 1, "card": 1},
        ),
        ("123-45-6789", {"ssn": 1}),
        ("000-12-3456, 666-12-3456, 2026-11-24, 123-45-67890", {}),
        ("", {}),
    ],
)
def test_what_has_the_form_is_counted(text: str, expected: dict[str, int]) -> None:
    """Check digits are looked at, and what is a part of something longer is nothing."""
    assert dict(count_personal_data(text.encode())) == expected


def test_hostile_text_takes_no_time() -> None:
    """Long runs of what a form may begin with are read once."""
    for piece in (b"a@", b"+1 ", b"4111 ", b"GB82 ", b"1-", b"a.b.", b"GB82WEST"):
        count_personal_data(piece * 20_000)


@pytest.mark.parametrize(
    ("text", "is_form", "expected"),
    [
        ("mail=kim%40shop.test&p=%2B4915112345678", True, {"email": 1, "phone": 1}),
        ("p=%2B49+151+12345678&card=4111+1111+1111+1111", True, {"phone": 1, "card": 1}),
        # A plus that should have been encoded.
        ("p=+4915112345678&q=a+b%40shop.test", True, {"phone": 1, "email": 1}),
        ("/u/kim%2bx%40shop.test/x", False, {"email": 1}),
        ("/u/kim%2540shop.test/x", False, {"email": 1}),
        (r'{"m":"kim\u0040shop.test","n":"\nkim@shop.test"}', False, {"email": 1}),
        (r'{"in":"{\"m\":\"kim\\u0040shop.test\"}"}', False, {"email": 1}),
        ("payload=%7B%22m%22%3A%22kim%5Cu0040shop.test%22%7D", True, {"email": 1}),
        ("100% of 5%4 \\x \\u00", False, {}),
    ],
)
def test_what_clients_encode_is_counted(text: str, is_form: bool, expected: dict[str, int]) -> None:
    """Every client encodes an `@` in a URL and in a form."""
    assert dict(count_personal_data(as_said(text.encode(), is_form=is_form))) == expected
