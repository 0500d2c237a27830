"""What one text of the configuration means."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import values
from playhead.config.schema import Listen, Mode

CASES: list[tuple[Callable[[str], object], str, object]] = [
    # durations
    (values.parse_duration, "10s", 10.0),
    (values.parse_duration, "500ms", 0.5),
    (values.parse_duration, "5m", 300.0),
    (values.parse_duration, "72h", 259_200.0),
    (values.parse_duration, "7d", 604_800.0),
    (values.parse_duration, "1.5", 1.5),
    (values.parse_duration, "0", 0.0),
    # pace
    (values.parse_pace, "instant", 0.0),
    (values.parse_pace, "recorded", 1.0),
    (values.parse_pace, "0.25", 0.25),
    # listen addresses
    (values.parse_listen, "127.0.0.1:8080", Listen("127.0.0.1", 8080)),
    (values.parse_listen, "Localhost:0", Listen("localhost", 0)),
    (values.parse_listen, "[::1]:8080", Listen("::1", 8080)),
    (values.parse_listen, "[0:0::1]:65535", Listen("::1", 65535)),
    # hosts
    (values.parse_host, "API.example.com", "api.example.com"),
    (values.parse_host, "redis_1", "redis_1"),
    (values.parse_host, "10.0.0.1", "10.0.0.1"),
    (values.parse_host, "[2001:DB8::1]", "2001:db8::1"),
    # names, paths and texts
    (values.parse_mode, "passthrough", Mode.PASSTHROUGH),
    (values.parse_run_name, "agent one~2", "agent one~2"),
    (values.parse_reason, " two\n lines ", "two lines"),
    (values.parse_place, "a b/c", Path("a b/c")),
    (values.parse_header_value, "", ""),
    (values.parse_header_value, "a\tb c", "a\tb c"),
    (values.parse_base64, "aGk\n =", b"hi"),
    # JSON paths
    (values.parse_json_path, "$.a", ("a",)),
    (values.parse_json_path, "$['a b.c'].d", ("a b.c", "d")),
    (values.parse_json_path, "$['']", ("",)),
    (values.parse_json_path, "$[3][*].*", (3, None, None)),
    (values.parse_json_path, "$.@type.x-y", ("@type", "x-y")),
]


@pytest.mark.parametrize(("parse", "text", "meaning"), CASES)
def test_a_text_has_one_meaning(parse: Callable[[str], object], text: str, meaning: object) -> None:
    """Each kind of value reads its documented forms."""
    assert parse(text) == meaning


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (values.parse_duration, "10x", "expected a number with ms, s, m, h or d"),
        (values.parse_duration, "-1s", "no duration"),
        (values.parse_duration, "1_0", "no duration"),
        (values.parse_duration, "1e3", "no duration"),
        (values.parse_duration, "\u0661s", "no duration"),
        (values.parse_duration, "inf", "no duration"),
        (values.parse_duration, "36501d", "at most 36500d"),
        (values.parse_pace, "0", "above 0"),
        (values.parse_pace, "nan", "no pace"),
        (values.parse_pace, "1001", "at most 1000"),
        (values.parse_listen, ":8080", "names no host"),
        (values.parse_listen, "[]:8080", "names no host"),
        (values.parse_listen, "8080", "expected HOST:PORT"),
        (values.parse_listen, "::1:8080", "expected HOST:PORT"),
        (values.parse_listen, "localhost:65536", "above 65535"),
        (values.parse_listen, "localhost:", "expected HOST:PORT"),
        (values.parse_listen, "[127.0.0.1]:1", "brackets are for IPv6"),
        (values.parse_listen, "[::1%lo]:1", "is no host"),
        (values.parse_listen, "http://localhost:1", "no listen address"),
        (values.parse_listen, "*:8080", "is no host"),
        (values.parse_host, "127.1", "is no host"),
        (values.parse_host, "256.0.0.1", "is no host"),
        (values.parse_host, "*.example.com", "is no host"),
        (values.parse_host, "example.com:443", "is no host"),
        (values.parse_host, "a\n", "is no host"),
        (values.parse_host, "", "is no host"),
        (values.parse_mode, "Record", "did you mean 'record'?"),
        (values.parse_run_name, "a:b", "without a colon"),
        (values.parse_run_name, "", "no run name"),
        (values.parse_run_name, "é" * 101, "at most 200 bytes"),
        (values.parse_reason, " \n", "empty"),
        (values.parse_place, "a\0b", "is no path"),
        (values.parse_place, "", "is no path"),
        (values.parse_pattern, "https://a/" + "b" * 3000, "longer than 2000"),
        (values.parse_header_name, "a b", "no header name"),
        (values.parse_header_value, "a\r\nb: c", "on one line"),
        (values.parse_header_value, "é", "printable ASCII"),
        (values.parse_base64, "a", "is no base64"),
        (values.check_regex, "a" * 1001, "longer than 1000 characters"),
        (values.check_regex, "[a", "no regular expression"),
        (values.check_regex, "a{99999999999999}", "no regular expression"),
        (values.check_regex, "a{1,99999}", "more than 1000 repetitions"),
        (values.check_regex, "a(?=b)", "invalid perl operator: (?= (patterns are RE2's)"),
        (values.check_regex, r"(a)\1", "invalid escape sequence"),
        (values.check_regex, r"a\Cb", "a part of a character"),
        (values.check_regex, "\ud800", "half of a character"),
        (values.check_regex, "*a", "no argument for repetition operator: *"),
        (values.parse_json_path, "a", "expected $ and then"),
        (values.parse_json_path, "$", "expected $ and then"),
        (values.parse_json_path, "$" + ".a" * 500, "no JSON path"),
        (values.parse_json_path, "$..a", "from its character 2 on"),
        (values.parse_json_path, "$.a[-1]", "from its character 4 on"),
        (values.parse_json_path, "$.a b", "from its character 4 on"),
    ],
)
def test_a_wrong_text_is_told_what_would_be_right(
    parse: Callable[[str], object], text: str, says: str
) -> None:
    """What is wrong is said, in one line of sane length."""
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_wrong_secret_is_not_shown() -> None:
    """Tokens and header values stay out of messages."""
    for parse in (values.parse_token, values.parse_header_value):
        with pytest.raises(ValueError, match="not usable") as caught:
            parse("hunter2\n")
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback_is_decided_without_a_resolver(host: str, loopback: bool) -> None:
    """Of names only `localhost` is loopback."""
    assert values.is_loopback(host) is loopback


@given(st.text(max_size=80))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    """No parser raises anything but ValueError."""
    for parse, _, _ in CASES:
        with suppress(ValueError):
            parse(text)


@given(st.from_regex(r"\[?[0-9a-fA-F:.]{1,20}\]?:[0-9]{1,5}", fullmatch=True))
def test_a_listen_address_means_what_it_is_printed_as(text: str) -> None:
    """What was parsed parses again to the same."""
    try:
        listen = values.parse_listen(text)
    except ValueError:
        return
    assert values.parse_listen(str(listen)) == listen
