"""GraphQL operations as they are compared: by their tokens and variables."""

import json
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.canonical.graphql import MAX_DOCUMENT, canonical_document
from playhead.tape.canonical.json import canonical_json
from playhead.tape.diff.request_differences import differences
from playhead.tape.exchange import Request, RequestClass

RULES = compile_rules()


def post(body: Any) -> Request:
    """Give a POST of a JSON value, or of JSON as it stands."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = ((b"content-type", b"application/json"),)
    return Request("POST", "https", "api.test", 443, "/graphql", "HTTP/1.1", headers, data)


def print_of(body: Any) -> bytes:
    return fingerprint(canonical(post(body), RequestClass.EFFECT, RULES))


def ask(query: str, **more: Any) -> dict[str, Any]:
    return {"query": query, **more}


SAME = [
    (ask("{a}"), ask("{ a }")),
    (ask("{a b}"), ask("\ufeff{\ta,\r\nb,,,}\n# the end: -1")),
    (ask("query Q{a#x:-\n b}"), ask("query Q { a b }")),
    (ask("{a(b:1,c:[1,2])}"), ask("{a(b:1 c:[1 2])}")),
    (ask("mutation{a}fragment F on T{...G}"), ask("mutation { a }\nfragment F on T { ... G }")),
    (ask('{a(b:"""x\n  "y" \\""" z""")}'), ask('{ a ( b : """x\n  "y" \\""" z""" ) }')),
    (ask("{a}", extensions={"x": ["1:-", -1.5]}), ask("{a}")),
    (ask("{a}", extensions=None, variables={"v": -1}), ask("{ a }", variables={"v": -1})),
    ([ask("{a}"), ask("{b}")], [ask("{ a }"), ask("{ b }", extensions={})]),
    # Where only the exact reader sees all
    (b'{"query":"{a}","variables":{"x":1,"x":2}}', b'{"query":"{ a }","variables":{"x":1,"x":2}}'),
    (b'{"query":"{a #\\u003a\\n}","variables":1}', b'{"query":"{ a }","variables":1}'),
]

DIFFERENT = [
    (ask("{a}"), ask("{b}")),
    (ask("{a b}"), ask("{b a}")),
    (ask("{ab}"), ask("{a b}")),
    (ask("{a}"), ask("query{a}")),
    (ask('{a(b:"x y")}'), ask('{a(b:"x  y")}')),
    (ask('{a(b:"x,y")}'), ask('{a(b:"xy")}')),
    (ask('{a(b:"# c")}'), ask('{a(b:"")}')),
    (ask('{a(b:"""x""")}'), ask('{a(b:"x")}')),
    (ask('{a(b:"""x y""")}'), ask('{a(b:"""x\ny""")}')),
    (ask("{a(b:1)}"), ask("{a(b:1.0)}")),
    (ask("{a}", operationName="A"), ask("{a}", operationName="B")),
    (ask("{a}", operationName=None), ask("{a}")),
    (ask("{a}", variables={"x": 1}), ask("{a}", variables={"x": 2})),
    (ask("{a}", variables={"x": "{a}"}), ask("{a}", variables={"x": "{ a }"})),
    ([ask("{a}"), ask("{b}")], [ask("{b}"), ask("{a}")]),
    ([ask("{a}")], ask("{a}")),
    # Persisted queries: the hash says which
    ({"extensions": {"persistedQuery": {"h": 1}}}, {"extensions": {"persistedQuery": {"h": 2}}}),
    # No GraphQL: plain JSON
    (ask("{a}", page=1), ask("{ a }", page=1)),
    (ask("{a}", extensions=1), ask("{a}")),
    (ask("cats, dogs"), ask("cats dogs")),
    (ask("query performance"), ask("query  performance")),
    (ask("{}"), ask("{ }")),
    (ask("{a}}"), ask("{ a}}")),
    (ask("{a(b:]}"), ask("{ a(b:]}")),
    (ask('{a(b:"x)}'), ask('{ a(b:"x)}')),
    (ask("{a(b:01)}"), ask("{ a(b:01)}")),
    (ask("type T{a:B}"), ask("type T { a: B }")),
    (ask("{" + "a" * MAX_DOCUMENT + "}"), ask("{ " + "a" * MAX_DOCUMENT + "}")),
    ([ask("{" + "a" * 40_000 + "}")] * 2, [ask("{ " + "a" * 40_000 + "}")] * 2),
    ([ask("{a}"), 1], [ask("{ a }"), 1]),
    ({"query": ["{a}"]}, {"query": ["{ a }"]}),
    (b'{"query":"{a}","query":"{b}"}', b'{"query":"{ a }","query":"{b}"}'),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_layout_and_extensions_of_an_operation_do_not_count(one: Any, other: Any) -> None:
    """Two ways to write one operation are one question."""
    assert print_of(one) == print_of(other)
    assert not differences(post(one), post(other), RULES)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_everything_else_of_an_operation_counts(one: Any, other: Any) -> None:
    """Tokens, their order, operation name and variables; and what is no GraphQL, as it stands."""
    assert print_of(one) != print_of(other)
    assert differences(post(one), post(other), RULES)


_LEAVES = [
    st.from_regex(r"[_A-Za-z][_0-9A-Za-z]{0,5}", fullmatch=True),
    st.from_regex(r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,2})?([eE][+-]?[0-9])?", fullmatch=True),
    st.from_regex(r'"([ -!#-\[\]-~]|\\["\\nt]|\\u00[0-9a-f]{2}){0,6}"', fullmatch=True).filter(
        lambda text: not text.startswith('""') or text == '""'
    ),
    st.from_regex(r'"""([ -!#-\[\]-~\n]|\\"""){0,6}"""', fullmatch=True),
]
_leaf = st.one_of(*_LEAVES)
_name = _LEAVES[0]
_field = st.recursive(
    st.builds(lambda name: [name], _name)
    | st.builds(lambda name, key, value: [name, "(", key, ":", value, ")"], _name, _name, _leaf)
    | st.builds(lambda name: ["...", name], _name),
    lambda inner: st.builds(
        lambda name, fields: [name, "{", *[token for one in fields for token in one], "}"],
        _name,
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
_document = st.builds(
    lambda begin, fields: [*begin, "{", *[token for one in fields for token in one], "}"],
    st.sampled_from([[], ["query"], ["query", "Q"], ["mutation", "M", "(", "$", "x", ":", "I", "!", ")"]]),
    st.lists(_field, min_size=1, max_size=3),
)  # fmt: skip
_GAPS = (" ", ",", "\n", "\t", ", ", '#c {:-"\n', "\ufeff", "\r\n")
_layouts = st.integers(0, 2**32).map(random.Random)
_TIGHT = frozenset("()[]{}:!$")


def _write(tokens: list[str], layout: random.Random) -> str:
    """Write tokens with any layout between them."""
    text = tokens[0]
    for before, token in pairwise(tokens):
        tight = before in _TIGHT or token in _TIGHT
        text += layout.choice((*_GAPS, "") if tight else _GAPS) + token
    return text


@settings(deadline=None)
@given(_document, _layouts)
def test_a_document_counts_by_its_tokens_alone(tokens: list[str], layout: random.Random) -> None:
    """However it is laid out."""
    one, other = _write(tokens, layout), _write(tokens, layout)
    assert canonical_document(one) == canonical_document(other) == " ".join(tokens)
    assert print_of(ask(one)) == print_of(ask(other))


_put = st.lists(_leaf | st.sampled_from(["{", "}", "(", ")", "...", "$"]), max_size=2)


@settings(deadline=None)
@given(_document, st.integers(0, 10_000), _put, _layouts)
def test_any_change_of_a_token_counts(
    tokens: list[str], at: int, put: list[str], layout: random.Random
) -> None:
    """Another name, number or string, one more, or one less."""
    at %= len(tokens)
    changed = [*tokens[:at], *put, *tokens[at + 1 :]]
    if changed == tokens or not changed:
        return
    assert print_of(ask(_write(tokens, layout))) != print_of(ask(_write(changed, layout)))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(_json, _json)
def test_any_change_of_a_variable_counts(one: Any, other: Any) -> None:
    """As in any JSON, whatever the layout of the query."""
    first, second = ask("{a}", variables=one), ask("{ a }", variables=other)
    same = canonical_json(json.dumps(one).encode()) == canonical_json(json.dumps(other).encode())
    assert (print_of(first) == print_of(second)) is same
