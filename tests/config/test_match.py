"""Match patterns: which requests a rule speaks of."""

import pytest

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
