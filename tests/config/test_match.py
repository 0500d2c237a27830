"""Match patterns: which requests a rule speaks of."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import parse_match


@pytest.mark.parametrize(
    ("pattern", "url", "meant"),
    [
        # method
        ("POST https://a.example/x", "POST https a.example 443 /x", True),
        ("POST https://a.example/x", "GET https a.example 443 /x", False),
        ("get,post https://a.example/x", "GET https a.example 443 /x", True),
        ("https://a.example", "PUT https a.example 443 /any/thing", True),
        # scheme and port
        ("http://a.example", "GET https a.example 443 /", False),
        ("https://a.example", "GET https a.example 8443 /", False),
        ("https://a.example:8443", "GET https a.example 8443 /", True),
        ("https://a.example:*", "GET https a.example 8443 /", True),
        ("*://a.example", "GET http a.example 81 /", True),
        ("https://*", "GET https b.example 8443 /", True),
        # host
        ("https://*.a.example", "GET https b.A.example 443 /", True),
        ("https://*.a.example", "GET https a.example 443 /", False),
        ("https://a.example", "GET https aXexample 443 /", False),
        ("https://[::1]", "GET https ::1 443 /", True),
        # path and query
        ("https://a.example/v1/*", "GET https a.example 443 /v1/b/c?d", True),
        ("https://a.example/v1", "GET https a.example 443 /v1?d=1", True),
        ("https://a.example/v1?d=1", "GET https a.example 443 /v1?d=1", True),
        ("https://a.example/v1?d=1", "GET https a.example 443 /v1", False),
        ("https://a.example/V1", "GET https a.example 443 /v1", False),
    ],
)
def test_a_pattern_means_these_requests(pattern: str, url: str, meant: bool) -> None:
    """Method, scheme, host, port and path all have to match."""
    method, scheme, host, port, target = url.split()
    assert parse_match(pattern).matches(method, scheme, host, int(port), target) is meant


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a.example",
        "ftp://a.example",
        "GET a.example/x",
        "https://",
        "https://a:0",
        "https://a:99999",
    ],
)
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    """The message shows the pattern."""
    with pytest.raises(ValueError, match=r"expected|65535"):
        parse_match(pattern)


@given(
    st.text("ab/*", max_size=7).filter(lambda text: not text.startswith("/") and "//" not in text),
    st.text("ab/", max_size=9),
)
def test_a_star_stands_for_any_characters(pattern: str, path: str) -> None:
    """As in the names of files, slashes too."""
    match = parse_match(f"http://api.test/{pattern}")
    meant = fnmatchcase(f"/{path}", f"/{pattern}")
    assert match.matches("GET", "http", "api.test", 80, f"/{path}") is meant


def test_a_long_path_costs_its_length_alone() -> None:
    """Whatever an agent asks for, a pattern with some stars holds nothing up: this took minutes."""
    match = parse_match("http://api.test/*/a/*/b")
    assert not match.matches("GET", "http", "api.test", 80, "/x" + "/a" * 120_000)
