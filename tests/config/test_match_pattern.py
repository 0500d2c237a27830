"""Match patterns: which requests a rule speaks of."""

import posixpath
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.config import parse_match
from playhead.config.match_pattern import Match, _fits
from playhead.config.targets.host_interpretations import Place
from playhead.config.targets.path_interpretations import upper_triplets
from playhead.config.targets.request_interpretations import More, Ways, find_ways


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
    ("method", "meant"),
    [
        ("PSOT", "POST"),
        ("post,gte", "GET"),
        ("DELET", "DELETE"),
        ("PTU", "PUT"),
        ("PURGE", ""),  # of caches
        ("BCOPY", ""),  # of WebDAV in Exchange
        ("NOTIFY", ""),
        ("COMPUTE", ""),  # a server's own: nothing is like it
        ("*", ""),
    ],
)
def test_a_mistyped_method_is_refused(method: str, meant: str) -> None:
    """It would match nothing, and a gate would hold nothing; a server's own method is like none."""
    text = f"{method} https://a.example/x"
    if not meant:
        assert parse_match(text).text == text
        return
    with pytest.raises(ValueError, match=f"is no method of HTTP; did you mean '{meant}'"):
        parse_match(text)


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


@pytest.mark.parametrize(
    ("pattern", "normal"),
    [
        ("https://a.example/v1/../x", "https://a.example/x"),
        ("POST https://a.example/v1/%2e%2e/x", "POST https://a.example/x"),
        ("https://a.example//v1", "https://a.example/v1"),
        ("https://a.example/%76%31", "https://a.example/v1"),
        ("https://a.example/a%2fb", "https://a.example/a/b"),
        ("https://a.example/a\\b", "https://a.example/a/b"),
        ("https://a.example/a;b=1/c", "https://a.example/a/c"),
        ("https://a.example/a#b", "https://a.example/a"),
        ("https://a.example/a?b#c", "https://a.example/a?b"),
        ("https://a.example/*/../x", "https://a.example/x"),
        ("https://a.example/é", "https://a.example/%C3%A9"),
        ("https://127.1/a", "https://127.0.0.1/a"),
        ("https://0x7f000001/a", "https://127.0.0.1/a"),
        ("https://you@a.example/a", "https://a.example/a"),
    ],
)
def test_a_pattern_that_can_never_match_is_refused(pattern: str, normal: str) -> None:
    """Requests are looked at in normal form too, so the message gives that."""
    with pytest.raises(ValueError, match="can never match") as caught:
        parse_match(pattern)
    assert repr(normal) in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("https://A.Example.", "a.example"),
        ("https://bücher.example", "xn--bcher-kva.example"),
        ("https://*.bücher.example", "*.xn--bcher-kva.example"),
        ("https://[0:0::1]", "::1"),
        ("https://[::ffff:127.0.0.1]", "127.0.0.1"),
    ],
)
def test_a_host_is_brought_into_normal_form(pattern: str, host: str) -> None:
    """A person writes a name as they know it."""
    assert parse_match(pattern).host == host


def _ways(method: str, target: str, host: str = "a.example", **more: object) -> Ways:
    return find_ways(method, "https", host, 443, target, More(**more))  # type: ignore[arg-type]


RULE = parse_match("POST https://a.example/v1/refunds")
WIDE = parse_match("POST https://a.example/v1/*")
ASKED = parse_match("POST https://a.example/api?action=refund")


SOCKET = parse_match("wss://a.example/v1/*")
READ = parse_match("GET https://a.example/v1/*")
ANY = parse_match("https://a.example/v1/*")


@pytest.mark.parametrize(
    ("rule", "ways", "surely", "maybe"),
    [
        (SOCKET, _ways("GET", "/v1/x", websocket=True, handshake=True), True, True),
        (SOCKET, _ways("GET", "/v1/x", websocket=True), False, True),
        (SOCKET, _ways("GET", "/v1/x"), False, False),
        (READ, _ways("GET", "/v1/x", websocket=True), False, True),
        (READ, _ways("GET", "/v1/x"), True, True),
        (ANY, _ways("GET", "/v1/x", websocket=True), True, True),
        (SOCKET, _ways("GET", "/v1/x", websocket=True, methods=("DELETE",)), False, True),
        (WIDE, _ways("POST", "/v1/x", methods=("*",)), False, True),
        (WIDE, _ways("DELETE", "/v1/x", methods=("*",)), False, True),
        (ANY, _ways("POST", "/v1/x", methods=("*",)), True, True),
        (WIDE, _ways("POST", "/v1/x", schemes=("http",)), False, True),
        (WIDE, _ways("POST", "/v1/x", "b.example", anywhere=True), False, True),
        (WIDE, _ways("POST", "/v1/x", "b.example", places=(Place("a.example", 1),)), False, True),
        (RULE, _ways("POST", "/v1/refunds;/x"), False, True),
        (RULE, _ways("POST", "/v1/r%C3%A9funds"), False, True),
        (RULE, _ways("POST", "/v1/refunds%E4%BD%A0x"), False, True),
        (RULE, _ways("POST", "/v1/%E4%BD%A0%E5%A5%BD"), False, False),
        (RULE, _ways("POST", "/v1%E2%88%95refunds"), False, True),
        (WIDE, _ways("POST", "/v1/Caf%C3%A9/%E4%BD%A0"), True, True),
        (WIDE, _ways("POST", "/v1/a%E2%88%95..%E2%88%95b"), False, True),
        (WIDE, _ways("POST", "/v1/.%C3%A9./b"), False, True),
        (WIDE, _ways("POST", "/v1/a%01b"), False, True),
        (ASKED, _ways("POST", "/api?action=%2572efund"), False, True),
        (ASKED, _ways("POST", "/api?+action=refund%00x"), False, True),
        (ASKED, _ways("POST", "/api?x=%C3%A9&action=r%C3%A9fund"), False, True),
        (ASKED, _ways("POST", "/api?action=list&n=%C3%A9"), False, False),
        (ASKED, _ways("POST", "/x", paths=("/api?action=refund",)), False, True),
    ],
)
def test_what_cannot_be_listed_may_be_anything(
    rule: Match, ways: Ways, surely: bool, maybe: bool
) -> None:
    """It fits what holds and does not fit what lets out; letters stay letters."""
    assert (rule.surely(ways), rule.maybe(ways)) == (surely, maybe)


@pytest.mark.parametrize(
    ("rule", "ways", "surely", "clearly", "maybe"),
    [
        (RULE, _ways("POST", "/v1/refunds"), True, True, True),
        (RULE, _ways("POST", "/v1/refunds?a=%2e%2e"), True, True, True),
        (RULE, _ways("POST", "/v1/%72efunds"), False, True, True),
        (RULE, _ways("POST", "/v1//refunds"), False, True, True),
        (RULE, _ways("POST", "/v1/refunds/"), False, True, True),
        (RULE, _ways("POST", "/V1/Refunds"), False, False, True),
        (RULE, _ways("POST", "/v1/x/..%2frefunds"), False, False, True),
        (RULE, _ways("POST", "/v1/refunds/x"), False, False, False),
        (RULE, _ways("POST", "/v1/refunds", "A.example."), True, True, True),
        (RULE, _ways("POST", "/v1/refunds", "b.example"), False, False, False),
        (RULE, _ways("POST", "/v1/refunds", places=(Place("b.example", 443),)), False, False, True),
        (RULE, _ways("POST", "/v1/refunds", methods=("DELETE",)), False, False, True),
        (RULE, _ways("GET", "/v1/refunds", methods=("POST",)), False, False, True),
        (RULE, _ways("POST", "/v1/refunds", paths=("/admin",)), False, False, True),
        (RULE, _ways("POST", "/x", paths=("/v1/refunds",)), False, False, True),
        (WIDE, _ways("POST", "/v1/a%20b%3Ac"), True, True, True),
        (WIDE, _ways("POST", "/v1/a%2Fb"), True, True, True),
        (WIDE, _ways("POST", "/v1/"), True, True, True),
        (WIDE, _ways("POST", "/v1/../admin"), False, False, True),
        (WIDE, _ways("POST", "/v1/..%2fadmin"), False, False, True),
        (WIDE, _ways("POST", "/v1/%252e%252e/admin"), False, False, True),
        (WIDE, _ways("POST", "/v1/..;/admin"), False, False, True),
        (WIDE, _ways("POST", "/admin/../v1/x"), False, True, True),
        (WIDE, _ways("POST", "/v1/" + "%2e/" * 2000), False, False, True),
        (ASKED, _ways("POST", "/api?action=refund"), True, True, True),
        (ASKED, _ways("POST", "/api?action=%72efund"), False, False, True),
        (ASKED, _ways("POST", "/api?x=1&action=refund"), False, False, True),
        (ASKED, _ways("POST", "/api?x=1;Action=refund"), False, False, True),
        (ASKED, _ways("POST", "/a%70i?action=refund#x"), False, False, True),
        (ASKED, _ways("POST", "/api?action=pay"), False, False, False),
        (ASKED, _ways("POST", "/api"), False, False, False),
        (parse_match("https://a.example"), _ways("PUT", "/../%2e%00"), True, True, True),
        (
            parse_match("https://a.example/m/x-v1%3a0/y"),
            _ways("POST", "/m/x-v1%3A0/y"),
            True,
            True,
            True,
        ),
    ],
)
def test_a_rule_looks_at_every_way(
    rule: Match, ways: Ways, surely: bool, clearly: bool, maybe: bool
) -> None:
    """What lets out has to fit in each, what holds in one."""
    assert (rule.surely(ways), rule.clearly(ways), rule.maybe(ways)) == (surely, clearly, maybe)


@given(st.text("/v1.%2e5crefunds;#\\", max_size=20), st.sampled_from([RULE, WIDE, ASKED]))
def test_what_is_sure_is_clear_and_what_is_clear_may_be(path: str, rule: Match) -> None:
    """A rule that lets a request out would have held it, too."""
    ways = _ways("POST", f"/{path}")
    assert rule.maybe(ways) or not rule.clearly(ways)
    assert rule.clearly(ways) or not rule.surely(ways)


_SERVERS: tuple[Callable[[str], str], ...] = (
    unquote,
    posixpath.normpath,
    lambda path: path.replace("\\", "/"),
    lambda path: re.sub(r";[^/]*", "", path),
    lambda path: re.sub("/+", "/", path),
    lambda path: re.sub("[\t\r\n]", "", path),
    lambda path: path.partition("#")[0],
    lambda path: path.partition("\0")[0],
)
"""What servers do to a path, by other means than ours."""
_PIECES = st.sampled_from(
    [
        "a",
        "..",
        ".",
        "/",
        "\\",
        ";",
        "%2e",
        "%2F",
        "%5c",
        "%25",
        "2e",
        "%252e",
        "#",
        "%00",
        "%0a",
        "%20",
    ]
)
OPEN = parse_match("*://a.example/open/*")


@settings(max_examples=500)
@given(st.lists(_PIECES, max_size=9), st.lists(st.sampled_from(_SERVERS), max_size=6))
def test_no_server_takes_what_is_let_out_for_something_else(
    pieces: list[str], servers: list[Callable[[str], str]]
) -> None:
    """Whatever decodes, resolves and cuts in whatever order: the path stays within what the rule names."""
    path = "/open/" + "".join(pieces)
    if not OPEN.surely(_ways("GET", path)):
        return
    for serve in servers:
        path = serve(path) or "/"
    assert f"{path}/".startswith("/open/")


@settings(max_examples=500)
@given(st.lists(_PIECES, max_size=9), st.lists(st.sampled_from(_SERVERS), max_size=6))
def test_what_some_server_takes_for_it_is_held(
    pieces: list[str], servers: list[Callable[[str], str]]
) -> None:
    """A gate on what a server makes of a path holds the path."""
    path = asked = "/" + "".join(pieces)
    for serve in servers:
        path = serve(path) or "/"
    try:
        rule = parse_match(f"*://a.example{path}")
    except ValueError:
        return  # in no normal form yet: another server goes on from there
    assert rule.maybe(_ways("GET", asked)), path


@given(st.text(alphabet="ab/*.%2Ee~;", max_size=12))
def test_the_path_of_a_pattern_fits_itself(path: str) -> None:
    """So a pattern that is taken as it is written alone can match, and no glob is needed to see it."""
    assert _fits(f"/{path}", upper_triplets(f"/{path}"))
