"""What a path can be taken for."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config.targets.path_interpretations import normal_path, path_readings, query_readings

SAME = (
    "/v1/%72efunds",
    "/v1//refunds",
    "//v1/refunds",
    "/v1/./refunds",
    "/v1/x/../refunds",
    "/v1/x/%2e%2e/refunds",
    "/v1/x/.%2E/refunds",
    "/v1/x/..%2frefunds",
    "/v1/x/..%5crefunds",
    "/v1%2frefunds",
    "/v1\\refunds",
    "/v1/x\\..\\refunds",
    "/v1/refunds;a=1",
    "/v1;a/refunds",
    "/v1/x/..;/refunds",
    "/v1/refunds#part",
    "/v1/refunds/.",
    "/v1/refunds/x/..",
)
"""Spellings with one normal form."""
OTHERWISE = (
    "/v1/%2572efunds",
    "/v1/%25252e/refunds",
    "/v1/x/%252e%252e/refunds",
    "/v1/x/%c0%ae%c0%ae/refunds",
    "/v1/x/..%c0%afrefunds",
    "/v1/x/%e0%80%ae%e0%80%ae/refunds",
    "/v1/%ef%bd%92efunds",
    "/v1%ef%bc%8frefunds",
    "/v1/%u0072efunds",
    "/v1/refunds%00.png",
    "/v1/refunds%3fa=1",
    "/v1/refunds%23a",
    "/v1/refunds.",
    "/v1/x/..%20/refunds",
    "/v1/ref\tunds",
    "/v1/ref%0aunds",
    "/v1/refunds%20",
    "//host/v1/refunds",
    "http://host/v1/refunds",
    "/x/..//..\\v1/%252e/refunds;a#b",
)
"""Spellings that some server takes for it."""


@pytest.mark.parametrize("path", SAME)
def test_spellings_have_one_normal_form(path: str) -> None:
    """And it is in normal form itself."""
    assert normal_path(path) == "/v1/refunds"
    assert "/v1/refunds" in {one.rstrip("/") for one in path_readings(path).paths}


@pytest.mark.parametrize("path", OTHERWISE)
def test_what_some_server_takes_for_it_is_a_reading(path: str) -> None:
    """Whatever is decoded, resolved or cut, in whatever order."""
    assert "/v1/refunds" in path_readings(path).paths
    assert len(path_readings(path).paths) > 1


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/refunds",
        "/v1/refunds/",
        "/.well-known/a.b",
        "/v1/models/a:generate",
        "/a@b/~c/(d)'e'!,$&+=*",
        "/v1/...x",
        "*",
    ],
)
def test_a_plain_path_is_read_in_one_way(path: str) -> None:
    """Nearly all paths are, and cost one regular expression."""
    assert path_readings(path).paths == (path,)


def test_too_many_readings_are_not_whole() -> None:
    """Then nobody knows what it may be taken for."""
    assert not path_readings("/%2e\\a;b//c%252f\t./d%00%3f\xef\xbd\x92#e./../x").whole
    assert not path_readings("/" + "%2e/" * 2000).whole
    assert path_readings("/" + "a/" * 5000).whole


def test_a_long_path_takes_no_time() -> None:
    """Whatever an agent asks for holds nothing up."""
    began = time.perf_counter()
    for part in ("%2e/", "a;b/", "\\", "..%2f", "a.", "%25", "/", "."):
        path_readings("/" + part * (1000 // len(part)))
        path_readings("/" + part * 60_000)
        normal_path("/" + part * 20_000)
    assert time.perf_counter() - began < 5


@given(st.text("ab/.%25eEfF;#\\\x00?\xc0\xae ", max_size=16))
def test_a_normal_form_stays(text: str) -> None:
    """Any path has a normal form that is its own, and is among its readings or ends them."""
    normal = normal_path(f"/{text}")
    assert normal_path(normal) == normal
    assert path_readings(f"/{text}").paths[0]


@given(st.text("ab=&%2561+#;", max_size=16))
def test_a_query_has_readings(text: str) -> None:
    """As sent first, but for the case of percent-encodings."""
    assert query_readings(text).paths[0].lower() == text.lower()
