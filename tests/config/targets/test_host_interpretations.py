"""What a host or an authority can be taken for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config.targets.host_interpretations import (
    NO_PORT,
    Place,
    embedded,
    host_readings,
    normal_host,
    places,
    read_addresses,
)


@pytest.mark.parametrize(
    ("host", "readings"),
    [
        ("api.example.com", ["api.example.com"]),
        ("API.Example.COM", ["api.example.com"]),
        ("api.example.com.", ["api.example.com"]),
        ("bücher.example", ["xn--bcher-kva.example"]),
        ("XN--BCHER-KVA.example", ["xn--bcher-kva.example"]),
        ("api\u3002example\uff0ecom", ["api.example.com"]),
        ("\uff41pi.example", ["api.example"]),
        ("straße.example", ["strasse.example", "xn--strae-oqa.example"]),
        ("127.0.0.1", ["127.0.0.1"]),
        ("127.1", ["127.1", "127.0.0.1"]),
        ("0.0.0.0", ["0.0.0.0", "127.0.0.1", "::1"]),
        ("0", ["0", "0.0.0.0", "127.0.0.1", "::1"]),
        ("[::]", ["::", "127.0.0.1", "::1"]),
        ("0x7f.0.0.1", ["0x7f.0.0.1", "127.0.0.1"]),
        ("0177.0.0.1", ["0177.0.0.1", "127.0.0.1", "177.0.0.1"]),
        ("2130706433", ["2130706433", "127.0.0.1"]),
        ("[::1]", ["::1"]),
        ("0:0::0:1", ["::1"]),
        ("::ffff:127.0.0.1", ["127.0.0.1"]),
        ("[::ffff:7f00:1]", ["127.0.0.1"]),
        ("[fe80::1%25eth0]", ["fe80::1"]),
        ("a%2eexample", ["a%2eexample", "a.example"]),
        ("good@evil.example", ["good@evil.example", "evil.example"]),
    ],
)
def test_a_host_is_read_in_these_ways(host: str, readings: list[str]) -> None:
    """The first is its normal form; where programs differ about it there are more."""
    assert list(host_readings(host)) == readings
    assert normal_host(host) == readings[0]


@pytest.mark.parametrize(
    ("text", "scheme", "found"),
    [
        ("a.example", "https", [("a.example", 443)]),
        ("A.example.:443", "https", [("a.example", 443)]),
        ("a.example:0443", "https", [("a.example", 443)]),
        ("a.example:", "http", [("a.example", 80)]),
        ("a.example:443", "http", [("a.example", 443)]),
        ("[::1]:8080", "http", [("::1", 8080)]),
    ],
)
def test_an_authority_is_one_place(text: str, scheme: str, found: list[tuple[str, int]]) -> None:
    """Case, a trailing dot, the scheme's own port and zeros before a port make no difference."""
    assert list(places(text, scheme)) == found


@pytest.mark.parametrize(
    "text", ["", "a@b", "a,b", "a b", "a\tb", "a/b", "a:b", "a:99999", "::1", "a#b", "a?b"]
)
def test_a_malformed_authority_is_several_places(text: str) -> None:
    """As written it is none, so it never agrees with anything; what may be meant is among the others."""
    found = places(text, "https")
    assert found[0] == Place(text, NO_PORT)
    named = {place.host for place in found}
    assert not text or named & {"a", "::1"}


@given(st.text(max_size=30))
def test_any_text_is_read_and_its_normal_form_is_its_own(text: str) -> None:
    """Nothing makes this raise; what is in normal form stays."""
    first = host_readings(text)[0]
    assert host_readings(first)[0] == first
    assert places(text, "https")


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("127.1", {"127.0.0.1"}),
        ("::127.0.0.1", {"::7f00:1", "127.0.0.1"}),
        ("64:ff9b::7f00:1", {"64:ff9b::7f00:1", "127.0.0.1"}),
        ("2002:7f00:1::", {"2002:7f00:1::", "127.0.0.1"}),
        ("::1", {"::1"}),
        ("localhost", set()),
    ],
)
def test_an_address_is_found_however_it_is_written(host: str, addresses: set[str]) -> None:
    """Also where it stands in another one."""
    found = {str(one) for address in read_addresses(host) for one in embedded(address)}
    assert found == addresses
