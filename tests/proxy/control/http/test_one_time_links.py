"""Links: valid once, for ten minutes, with the rights that they were made with, and no others."""

import base64

import pytest

from playhead.proxy.control.http.one_time_links import VALID_S, Links, Rights

_KEY = b"k" * 32


def test_a_link_is_taken_once() -> None:
    """Also by another process with the same key, each by itself."""
    made = Links(_KEY, lambda: 1000.0).make(Rights.READ | Rights.RULE)
    taker = Links(_KEY, lambda: 1000.0)
    assert taker.take(made) == Rights.READ | Rights.RULE
    assert taker.take(made) is None


def test_a_link_grows_old() -> None:
    """What was used before is forgotten then."""
    now = [1000.0]
    links = Links(_KEY, lambda: now[0])
    made = links.make(Rights.READ)
    now[0] += VALID_S + 1
    assert links.take(made) is None
    assert links.take(links.make(Rights.READ)) is Rights.READ


def _with_all_rights(token: str) -> str:
    data = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    data[8] = 255
    return base64.urlsafe_b64encode(bytes(data)).decode().rstrip("=")


@pytest.mark.parametrize("token", ["", "A", "AAAA", "é", "x" * 5000, "====", "-_-_"])
def test_what_is_no_link_is_not_taken(token: str) -> None:
    """Whatever it is."""
    assert Links(_KEY, lambda: 1000.0).take(token) is None


def test_rights_cannot_be_added() -> None:
    """Nor is a link of another key taken."""
    links = Links(_KEY, lambda: 1000.0)
    made = links.make(Rights.READ)
    assert links.take(_with_all_rights(made)) is None
    assert Links(b"o" * 32, lambda: 1000.0).take(made) is None
    assert links.take(made) is Rights.READ
