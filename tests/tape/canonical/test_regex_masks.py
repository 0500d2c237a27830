"""Parts of texts that patterns mask."""

import json
import time
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import IgnoreRule, parse_match
from playhead.tape.canonical.canonical_request import (
    MAX_PARSED,
    canonical,
    compile_rules,
    fingerprint,
)
from playhead.tape.canonical.regex_masks import Pattern, slow, what_is_left
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import Request, RequestClass

RULE = IgnoreRule(
    parse_match("*://api.test"),
    json=("$.masked",),
    form=("masked",),
    query=("masked",),
    regex=("id-[0-9]+", "at ([0-9:]+)!"),
)
RULES = compile_rules((RULE,))
JSON, FORM, TEXT = b"application/json", b"application/x-www-form-urlencoded", b"text/plain"
MULTIPART = b"multipart/form-data; boundary=B"


def ask(
    body: str | bytes = b"", content_type: bytes = JSON, target: str = "/v1", host: str = "api.test"
) -> Request:
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    headers = ((b"content-type", content_type),)
    return Request("POST", "https", host, 443, target, "HTTP/1.1", headers, data)


def print_of(request: Request) -> bytes:
    return fingerprint(canonical(request, RequestClass.EFFECT, RULES))


SAME = [
    (ask(target="/a/id-1/b"), ask(target="/a/id-22/b")),
    (ask(target="/?x=id-1"), ask(target="/?x=id-2")),
    (ask(target="/?x=a+id%2d1&y=1"), ask(target="/?y=1&x=a%20id-2")),
    (ask(target="/?x=at+1%3A2!"), ask(target="/?x=at+3:4!")),
    (ask('{"a":["x id-1"]}'), ask('{"a":["x id-2"]}')),
    (ask('{"a": "id\\u002d1 and at 1:2!"}'), ask('{"a": "id-2 and at 3:4!"}')),
    (ask('"id-1"'), ask('"id-2"')),
    (ask('{"a":"id-1","a":NaN}'), ask('{"a":"id-2","a":NaN}')),
    (ask('{"masked":"id-1"}'), ask('{"masked":"no"}')),
    (ask("a=id-1&b=x+at+1!", FORM), ask("a=id-2&b=x%20at%202!", FORM)),
    (ask("é id-1\x00", TEXT), ask("é id-2\x00", TEXT)),
    (ask(b"\xff id-1", TEXT), ask(b"\xff id-2", TEXT)),
    (ask("{broken id-1", JSON), ask("{broken id-2", JSON)),
    (ask("--B\r\n\r\nid-1\r\n--B--", MULTIPART), ask("--B\r\n\r\nid-2\r\n--B--", MULTIPART)),
    # The layout of GraphQL and the ids of JSON-RPC do not count beside it
    (ask('{"query":"{a(b:\\"id-1\\")}"}'), ask('{"query":"{ a(b:\\"id-2\\") }"}')),
    (
        ask('{"jsonrpc":"2.0","id":1,"method":"id-1"}'),
        ask('{"jsonrpc":"2.0","id":2,"method":"id-2"}'),
    ),
]

DIFFERENT = [
    # Around it, and that it is there
    (ask(target="/a/id-1/b"), ask(target="/a/id-1/c")),
    (ask(target="/a%2Fid-1"), ask(target="/a/id-1")),
    (ask(target="/id-1"), ask(target="/id-")),
    (ask(target="/?x=a%2Bid-1"), ask(target="/?x=a+id-1")),
    (ask(target="/?x=id-1"), ask(target="/?x=id-1&x=id-1")),
    (ask('{"a":"x id-1"}'), ask('{"a":"y id-1"}')),
    (ask('{"a":"id-1"}'), ask('{"a":""}')),
    (ask('{"a":"id-1 id-1"}'), ask('{"a":"id-1"}')),
    (ask('{"a":"at 1!"}'), ask('{"a":"at !"}')),
    # What a mask looks like
    (ask('{"a":"id-1"}'), ask('{"a":["",""]}')),
    (ask('{"a":"id-1"}'), ask('{"masked":1}')),
    (ask('{"a":"id-1"}'), ask('{"a":"\\u0000*"}')),
    (ask('{"a":"id-1"}'), ask('{"a":"\\u0000~[\\"\\",\\"\\"]"}')),
    (ask("id-1", TEXT), ask("\x00*", TEXT)),
    (ask("\x00id-1", TEXT), ask("id-1\x00", TEXT)),
    (ask("a=id-1", FORM), ask("a=%00*", FORM)),
    (ask(target="/?x=id-1"), ask(target="/?x=%00*")),
    (ask(target="/id-1"), ask(target="/%00*")),
    # Not keys, numbers, other hosts, nor what is too large to be read
    (ask('{"id-1":1}'), ask('{"id-2":1}')),
    (ask("id-1", TEXT, host="other.test"), ask("id-2", TEXT, host="other.test")),
    (ask(b"id-1" + b" " * MAX_PARSED, TEXT), ask(b"id-2" + b" " * MAX_PARSED, TEXT)),
    (ask("--B\r\n\r\nid-1\r\n--B--", MULTIPART), ask("--B\r\n\r\n\r\n--B--", MULTIPART)),
    # What GraphQL leaves out is not looked at, so it cannot hide that a key is repeated
    (
        ask('{"query":"{a}","variables":{"b":1,"b":2},"extensions":{"c":"at :!"}}'),
        ask('{"query":"{a}","variables":{"b":2},"extensions":{"c":"at :!"}}'),
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_a_pattern_matches_does_not_count(one: Request, other: Request) -> None:
    """In the path, in values and in texts."""
    assert print_of(one) == print_of(other)
    assert not differences(one, other, RULES)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_everything_else_of_a_text_counts(one: Request, other: Request) -> None:
    """What stands around it, and that it is there."""
    assert print_of(one) != print_of(other)
    assert differences(one, other, RULES)


@pytest.mark.parametrize(
    ("one", "other", "place", "recorded"),
    [
        (ask(target="/id-1/a"), ask(target="/id-1/b"), "path", "/(masked)/a"),
        (ask(target="/?x=id-1a"), ask(target="/?x=id-2b"), "query x", "(masked)a"),
        (ask('{"a":["id-1a"]}'), ask('{"a":["id-2b"]}'), "body $.a[0]", '"(masked)a"'),
        (ask("x=id-1a", FORM), ask("x=id-2b", FORM), "form x", "(masked)a"),
        (ask("id-1a", TEXT), ask("id-2b", TEXT), "body byte 2", "\\x00*a"),
    ],
)
def test_a_difference_beside_a_mask_is_named(
    one: Request, other: Request, place: str, recorded: str
) -> None:
    """The place, and what is left of the text."""
    (found,) = differences(one, other, RULES)
    assert (found.place, found.recorded) == (place, recorded)


@pytest.mark.parametrize(
    ("patterns", "text", "left"),
    [
        (("b",), "abc", ("a", "c")),
        (("[ab]", "b"), "abc", ("", "", "c")),
        (("ab", "bc"), "abcd", ("", "d")),
        (("a", "b"), "ab", ("", "", "")),
        (("x(b)?y",), "xyxby", ("xyx", "y")),
        (("x*",), "ab", ("ab",)),
        (("(?:b)",), "abc", ("a", "c")),
        ((), "abc", ("abc",)),
    ],
)
def test_the_pieces_between_masks(
    patterns: tuple[str, ...], text: str, left: tuple[str, ...]
) -> None:
    """The first group where it took part, never what is empty; parts that overlap are one."""
    assert what_is_left(text, tuple(map(Pattern, patterns))) == left


_text = st.text(st.sampled_from('ai-d019 :!*\x00~"\\'), max_size=12) | st.text(max_size=4)
_ways = st.sampled_from(["json", "form", "query", "text"])


def _say(text: str, way: str) -> Request:
    match way:
        case "json":
            return ask(json.dumps({"a": [text]}))
        case "form":
            return ask("a=" + quote_plus(text), FORM)
        case "query":
            return ask(target="/?a=" + quote_plus(text))
        case _:
            return ask(text, TEXT)


@given(_text, _text, _ways)
def test_two_texts_are_one_exactly_where_what_is_left_is(one: str, other: str, way: str) -> None:
    """Nothing that a text says is taken for a mask, and nothing is lost beside one."""
    if not one or not other:
        return
    patterns = tuple(map(Pattern, RULE.regex))
    same = what_is_left(one, patterns) == what_is_left(other, patterns)
    assert (print_of(_say(one, way)) == print_of(_say(other, way))) is same


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "(x+x+)+y"])
def test_a_pattern_cannot_backtrack_without_end(pattern: str) -> None:
    """What would take years elsewhere is searched in time that grows with the length alone."""
    rules = compile_rules((IgnoreRule(parse_match("*://api.test"), regex=(pattern,)),))
    form = canonical(ask("a" * 100_000 + "!", TEXT), RequestClass.EFFECT, rules)
    assert form.body == b"a" * 100_000 + b"!"
    assert slow(rules.searched) == []


def test_a_pattern_that_runs_out_of_time_masks_nothing_any_more() -> None:
    """It is left out whole, not in part, and says so; the others go on."""
    late, good = (Pattern(text, lambda: 0.0) for text in ("id-[0-9]+", "b"))
    assert what_is_left("id-1 b", (late, good)) == ("", " ", "")
    assert what_is_left("id-1 id-2", (late,), -1.0) == ("id-1 id-2",)
    assert what_is_left("id-1 b", (late, good)) == ("id-1 ", "")
    assert slow((late, good)) == [
        "the ignore pattern 'id-[0-9]+' took longer than 1 s of one request and masks nothing any more"
    ]


def test_a_pattern_that_reads_to_the_end_for_each_place_runs_out_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its work is the square of a text's length, and it is stopped for good."""
    monkeypatch.setattr("playhead.tape.canonical.regex_masks.LIMIT_S", 0.02)
    rules = compile_rules(
        (IgnoreRule(parse_match("*://api.test"), regex=("(?s)a.*b|a",)),), time.thread_time
    )
    body = b"a" * 1_000_000
    assert canonical(ask(body, TEXT), RequestClass.EFFECT, rules).body == body
    assert canonical(ask("a", TEXT), RequestClass.EFFECT, rules).body == b"a"
    assert len(slow(rules.searched)) == 1


@pytest.mark.parametrize("text", ["\ud800 id-1", "id-1\udfff", "\udc80id-1é", "é id-1 \U0001f600"])
def test_halves_of_characters_stay_beside_what_is_masked(text: str) -> None:
    """A text that is no Unicode keeps what it holds."""
    assert "id-1".join(what_is_left(text, (Pattern("id-[0-9]+"),))) == text
