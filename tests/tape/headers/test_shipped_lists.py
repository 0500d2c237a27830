"""The lists of header fields hold what they say, and nothing that means something."""

import pytest

from playhead.tape.canonical.canonical_request import SHIPPED_FIELDS
from playhead.tape.headers.compared_fields import count_fields, is_noise
from playhead.tape.headers.shipped_lists import (
    DECISIVE_NAMES,
    DIGESTS,
    KEYS_OF_EFFECTS,
    NOISE,
    NOISE_FAMILIES,
    REPORTED,
)

_DECISIVE = sorted(DECISIVE_NAMES)
_OTHERWISE = {b"content-encoding", b"upgrade"}
"""Count where a body cannot be read without them, and where they ask for a WebSocket."""


@pytest.mark.parametrize("name", [one.decode() for one in _DECISIVE if one not in _OTHERWISE])
def test_a_decisive_field_counts_by_its_value(name: str) -> None:
    """Two values of it are two requests, and so are one and none."""
    field = name.encode()
    first, second, none = (
        count_fields(headers, SHIPPED_FIELDS).counted
        for headers in (((field, b"a/1"),), ((field, b"b/2"),), ())
    )
    assert len({first, second, none}) == 3


def test_every_list_is_of_lower_case_names() -> None:
    """A name that is written otherwise would never be found."""
    names = [*NOISE, *NOISE_FAMILIES, *DIGESTS, *KEYS_OF_EFFECTS, *_DECISIVE]
    names += [one.name for one in REPORTED]
    assert [name for name in names if name != name.lower()] == []


def test_every_entry_names_who_needs_it() -> None:
    """A field is left out for a client that was seen, or for a documented format."""
    assert all([*NOISE.values(), *NOISE_FAMILIES.values(), *(one.client for one in REPORTED)])


@pytest.mark.parametrize(
    "name",
    [
        "x-amz-copy-source",
        "x-ms-range",
        "x-goog-user-project",
        "x-client-id",
        "api-version",
        "x-stainlesssteel",
        "x-b3",
        "account-id",
    ],
)
def test_no_family_swallows_what_means_something(name: str) -> None:
    """Wildcards stand for measured families alone."""
    assert not is_noise(name.encode())


def test_generic_names_are_reported_under_a_condition() -> None:
    """A chat service that keeps its state by such a name would answer one session with another's text."""
    generic = {b"session-id", b"thread-id", b"x-session-id", b"accept-language"}
    assert all(one.field for one in REPORTED if one.name in generic)
