"""What one text of the configuration means."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import parse_values
from playhead.config.schema import Listen, Mode

CASES: list[tuple[Callable[[str], object], str, object]] = [
    # durations
    (parse_values.parse_duration, "10s", 10.0),
    (parse_values.parse_duration, "500ms", 0.5),
    (parse_values.parse_duration, "5m", 300.0),
    (parse_values.parse_duration, "72h", 259_200.0),
    (parse_values.parse_duration, "7d", 604_800.0),
    (parse_values.parse_duration, "1.5", 1.5),
    (parse_values.parse_duration, "0", 0.0),
    # pace
    (parse_values.parse_pace, "instant", 0.0),
    (parse_values.parse_pace, "recorded", 1.0),
    (parse_values.parse_pace, "0.25", 0.25),
    # listen addresses
    (parse_values.parse_listen, "127.0.0.1:8080", Listen("127.0.0.1", 8080)),
    (parse_values.parse_listen, "Localhost:0", Listen("localhost", 0)),
    (parse_values.parse_listen, "[::1]:8080", Listen("::1", 8080)),
    (parse_values.parse_listen, "[0:0::1]:65535", Listen("::1", 65535)),
    # hosts
    (parse_values.parse_host, "API.example.com", "api.example.com"),
    (parse_values.parse_host, "redis_1", "redis_1"),
    (parse_values.parse_host, "10.0.0.1", "10.0.0.1"),
    (parse_values.parse_host, "[2001:DB8::1]", "2001:db8::1"),
    # names, paths and texts
    (parse_values.parse_mode, "passthrough", Mode.PASSTHROUGH),
    (parse_values.parse_run_name, "agent one~2", "agent one~2"),
    (parse_values.parse_run_name, "latest", "latest"),
    (parse_values.parse_new_run_name, "agent one", "agent one"),
    (parse_values.parse_new_run_name, "latest-1", "latest-1"),
    (parse_values.parse_new_run_name, "me@home", "me@home"),
    (parse_values.parse_new_run_name, "a@1.x", "a@1.x"),
    (parse_values.parse_reason, " two\n lines ", "two lines"),
    (parse_values.parse_place, "a b/c", Path("a b/c")),
    (parse_values.parse_header_value, "", ""),
    (parse_values.parse_header_value, "a\tb c", "a\tb c"),
    (parse_values.parse_base64, "aGk\n =", b"hi"),
    # JSON paths
    (parse_values.parse_json_path, "$.a", ("a",)),
    (parse_values.parse_json_path, "$['a b.c'].d", ("a b.c", "d")),
    (parse_values.parse_json_path, "$['']", ("",)),
    (parse_values.parse_json_path, "$[3][*].*", (3, None, None)),
    (parse_values.parse_json_path, "$.@type.x-y", ("@type", "x-y")),
]


@pytest.mark.parametrize(("parse", "text", "meaning"), CASES)
def test_a_text_has_one_meaning(parse: Callable[[str], object], text: str, meaning: object) -> None:
    """Each kind of value reads its documented forms."""
    assert parse(text) == meaning


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (parse_values.parse_duration, "10x", "expected a number with ms, s, m, h or d"),
        (parse_values.parse_duration, "-1s", "no duration"),
        (parse_values.parse_duration, "1_0", "no duration"),
        (parse_values.parse_duration, "1e3", "no duration"),
        (parse_values.parse_duration, "\u0661s", "no duration"),
        (parse_values.parse_duration, "inf", "no duration"),
        (parse_values.parse_duration, "36501d", "at most 36500d"),
        (parse_values.parse_pace, "0", "above 0"),
        (parse_values.parse_pace, "nan", "no pace"),
        (parse_values.parse_pace, "1001", "at most 1000"),
        (parse_values.parse_listen, ":8080", "names no host"),
        (parse_values.parse_listen, "[]:8080", "names no host"),
        (parse_values.parse_listen, "8080", "expected HOST:PORT"),
        (parse_values.parse_listen, "::1:8080", "expected HOST:PORT"),
        (parse_values.parse_listen, "localhost:65536", "above 65535"),
        (parse_values.parse_listen, "localhost:", "expected HOST:PORT"),
        (parse_values.parse_listen, "[127.0.0.1]:1", "brackets are for IPv6"),
        (parse_values.parse_listen, "[::1%lo]:1", "is no host"),
        (parse_values.parse_listen, "http://localhost:1", "no listen address"),
        (parse_values.parse_listen, "*:8080", "is no host"),
        (parse_values.parse_host, "127.1", "is no host"),
        (parse_values.parse_host, "256.0.0.1", "is no host"),
        (parse_values.parse_host, "*.example.com", "is no host"),
        (parse_values.parse_host, "example.com:443", "is no host"),
        (parse_values.parse_host, "a\n", "is no host"),
        (parse_values.parse_host, "", "is no host"),
        (parse_values.parse_mode, "Record", "did you mean 'record'?"),
        (parse_values.parse_run_name, "a:b", "without a colon"),
        (parse_values.parse_run_name, "", "no run name"),
        (parse_values.parse_run_name, "é" * 101, "at most 200 bytes"),
        (parse_values.parse_new_run_name, "a:b", "without a colon"),
        (parse_values.parse_new_run_name, "latest", "it stands for the newest recording"),
        (
            parse_values.parse_new_run_name,
            "x@1",
            "reserved: Playhead itself gives names that end in '@1' to play",
        ),
        (
            parse_values.parse_new_run_name,
            "x~2",
            "reserved: Playhead itself gives names that end in '~2' to later",
        ),
        (parse_values.parse_new_run_name, "@7", "reserved"),
        (
            parse_values.parse_new_run_name,
            "--",
            "begins with `-`, as an option does: was the name left out?",
        ),
        (parse_values.parse_new_run_name, "-x", "Expected a name, as in --run refund"),
        (parse_values.parse_reason, " \n", "empty"),
        (parse_values.parse_place, "a\0b", "is no path"),
        (parse_values.parse_place, "", "is no path"),
        (parse_values.parse_pattern, "https://a/" + "b" * 3000, "longer than 2000"),
        (parse_values.parse_header_name, "a b", "no header name"),
        (parse_values.parse_header_value, "a\r\nb: c", "on one line"),
        (parse_values.parse_header_value, "é", "printable ASCII"),
        (parse_values.parse_base64, "a", "is no base64"),
        (parse_values.check_regex, "a" * 1001, "longer than 1000 characters"),
        (parse_values.check_regex, "[a", "no regular expression"),
        (parse_values.check_regex, "a{99999999999999}", "no regular expression"),
        (parse_values.check_regex, "a{1,99999}", "more than 1000 repetitions"),
        (parse_values.check_regex, "a(?=b)", "invalid perl operator: (?= (patterns are RE2's)"),
        (parse_values.check_regex, r"(a)\1", "invalid escape sequence"),
        (parse_values.check_regex, r"a\Cb", "a part of a character"),
        (parse_values.check_regex, "\ud800", "half of a character"),
        (parse_values.check_regex, "*a", "no argument for repetition operator: *"),
        (parse_values.parse_json_path, "a", "expected $ and then"),
        (parse_values.parse_json_path, "$", "expected $ and then"),
        (parse_values.parse_json_path, "$" + ".a" * 500, "no JSON path"),
        (parse_values.parse_json_path, "$..a", "from its character 2 on"),
        (parse_values.parse_json_path, "$.a[-1]", "from its character 4 on"),
        (parse_values.parse_json_path, "$.a b", "from its character 4 on"),
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
    for parse in (parse_values.parse_token, parse_values.parse_header_value):
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
    assert parse_values.is_loopback(host) is loopback


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
        listen = parse_values.parse_listen(text)
    except ValueError:
        return
    assert parse_values.parse_listen(str(listen)) == listen
