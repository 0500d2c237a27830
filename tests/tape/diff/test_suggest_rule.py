"""The rule that is proposed for a changed request."""

import copy
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import IgnoreRule, loads, parse_match
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.diff.request_differences import differences
from playhead.tape.diff.suggest_rule import note_on, propose_rule
from playhead.tape.exchange import Headers, Request, RequestClass

RULES = compile_rules((IgnoreRule(parse_match("*://*"), json=("$.ts",)),))
JSON: Headers = ((b"content-type", b"application/json"),)
FORM: Headers = ((b"content-type", b"application/x-www-form-urlencoded"),)
READ = RequestClass.READ


def ask(body: object = b"", target: str = "/v1/x", headers: Headers = JSON) -> Request:
    """Give a request."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", "https", "api.example.com", 8443, target, "HTTP/1.1", headers, raw)


def proposed(recorded: Request, asked: Request) -> str:
    """Give the rule for two requests."""
    return propose_rule(recorded, asked, differences(recorded, asked, RULES, READ), RULES, READ)


def is_matched(rule: str, recorded: Request, asked: Request) -> bool:
    """Load a rule as a configuration and say whether the two requests are the same then."""
    rules = compile_rules((*loads(rule).ignore, IgnoreRule(parse_match("*://*"), json=("$.ts",))))
    one, other = (fingerprint(canonical(request, READ, rules)) for request in (recorded, asked))
    return one == other


CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello"}, {"a b": 1, "its own": [1.5, None]}],
    "meta": {"id": "x", "at": 1, "more": {"deep": True}},
}

RULED = [
    (ask({"a": 1}), ask({"a": 2}), "json", "$.a"),
    (ask({"a": [1, {"b c": 1}]}), ask({"a": [1, {"b c": 2}]}), "json", "$.a[1]['b c']"),
    (ask({"é": 1}), ask({"é": 2}), "json", "$.é"),
    (ask(b"", "/x?a=1&b=2"), ask(b"", "/x?a=1&b=3"), "query", "b"),
    (ask(b"", "/x?a%20b=1"), ask(b"", "/x?a%20b=2"), "query", "a b"),
    (ask(b"a=1&b=2", headers=FORM), ask(b"a=1&b=3", headers=FORM), "form", "b"),
    (ask(b"a+b=1", headers=FORM), ask(b"a+b=2", headers=FORM), "form", "a b"),
    (
        ask(headers=((b"Accept", b"a/b"),)),
        ask(headers=((b"Accept", b"a/c"),)),
        "header",
        "accept",
    ),
]


@pytest.mark.parametrize(("recorded", "asked", "key", "name"), RULED)
def test_a_rule_makes_the_two_match(recorded: Request, asked: Request, key: str, name: str) -> None:
    """It names the place and the endpoint, and loading it is enough."""
    rule = proposed(recorded, asked)
    assert rule.splitlines()[:2] == [
        "ignore:",
        f'  - match: "POST https://api.example.com:8443{asked.path}"',
    ]
    (loaded,) = loads(rule).ignore
    assert getattr(loaded, key) == (name,)
    assert not is_matched("ignore: []", recorded, asked)
    assert is_matched(rule, recorded, asked)


UNDECIDED = [
    # Places that only one of them has count by being there
    (ask({"a": 1}), ask({"a": 1, "b": 2})),
    (ask({"a": [1]}), ask({"a": [1, 2]})),
    (ask(b"", "/x?a=1"), ask(b"", "/x?a=1&a=2")),
    # Places that no rule can name
    (ask(b"1"), ask(b"2")),
    (ask({"a'b": 1}), ask({"a'b": 2})),
    (ask(b"abc", headers=()), ask(b"abd", headers=())),
    (ask(target="/a"), ask(target="/b")),
    # One of two is not enough
    (ask({"a": 1}, "/x?q=1"), ask({"a": 2}, "/x")),
    # Too many
    (ask([[n] for n in range(40)]), ask([[n + 1] for n in range(40)])),
    # No difference, no rule
    (ask({"a": 1}), ask({"a": 1})),
]


@pytest.mark.parametrize(("recorded", "asked"), UNDECIDED)
def test_no_rule_is_proposed_where_none_would_do(recorded: Request, asked: Request) -> None:
    """Rather none than one that does not help."""
    assert proposed(recorded, asked) == ""


def test_several_places_are_one_rule() -> None:
    """In lists, each place once."""
    recorded = ask({"a": 1, "b": [1]}, "/x?q=1")
    asked = ask({"a": 2, "b": [2]}, "/x?q=2")
    rule = proposed(recorded, asked)
    assert is_matched(rule, recorded, asked)
    (loaded,) = loads(rule).ignore
    assert (loaded.json, loaded.query) == (("$.a", "$.b[0]"), ("q",))


def test_ignoring_a_place_of_an_effect_is_warned_of() -> None:
    """Another deed would get the recorded answer."""
    assert "effect" in note_on(RequestClass.EFFECT)
    assert note_on(READ) == ""


def _leaves(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found += _leaves(item) if isinstance(item, dict | list) else [(value, key)]
    return found


# A place is told on one line of 200 characters, so a name that is longer as a URL writes it has no rule.
_names = st.text(
    st.characters(exclude_characters="'", exclude_categories=("C", "Z")), min_size=1, max_size=8
)
_trees = st.dictionaries(
    _names,
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(_trees, st.data())
def test_any_single_value_that_changed_has_a_rule(
    tree: dict[str, Any], data: st.DataObject
) -> None:
    """Wherever it stands in a JSON body, a query or a form, and whatever the names are."""
    body = {**copy.deepcopy(CHAT), **tree}
    changed = copy.deepcopy(body)
    where = data.draw(st.sampled_from(["json", "query", "form"]))
    name = data.draw(_names)
    if where == "json":
        holder, key = data.draw(st.sampled_from(_leaves(changed)))
        holder[key] = "another value"
        recorded, asked = ask(body), ask(changed)
    elif where == "query":
        recorded, asked = (ask(body, f"/x?a=1&{quote(name)}={value}") for value in "12")
    else:
        raws = (f"a=1&{quote(name)}={value}".encode() for value in "12")
        recorded, asked = (ask(raw, headers=FORM) for raw in raws)
    rule = proposed(recorded, asked)
    assert rule
    assert is_matched(rule, recorded, asked)
