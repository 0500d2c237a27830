"""Which texts are executable documents, by the whole grammar."""

import pytest

from playhead.tape.canonical.graphql import canonical_document

DOCUMENTS = (
    "{a}",
    "{a b,c}",
    "query{a}",
    "query Q{a}",
    "mutation M @d { a }",
    "subscription S($a: Int) { a(b: $a) }",
    "query Q($a: [Int!]! = [1, 2] @d, $b: T = {c: {d: [E, null, true]}}) @x(y: 1) { z }",
    '{ a: b(c: 1, d: -2.5e3, e: "f", g: """h""", i: [], j: {}, k: [[{l: $m}]]) @n @o(p: []) { q } }',
    "{ ...F ...on T { a } ... { b } ... @include(if: $c) { d } ...G @e }",
    "fragment F on T @d { a }  query { ...F }",
    "{ on }",
    "{ fragment: query }",
    "{ a { b { c { d } } } }",
    "query on { a }",
)
OTHERS = (
    "",
    "{",
    "{}",
    "{a{}}",
    "{1,2}",
    "{ ! }",
    "{{a}}",
    '{"name":{"glob":"x"}}',
    '{"app":"shop" # level\n}',
    "{a:}",
    "{:a}",
    "{a:b:c}",
    "{a()}",
    "{a(b)}",
    "{a(b:)}",
    "{a(b: !)}",
    "{a(b: [1)}",
    "{a(b: {c})}",
    "{a @}",
    "{...}",
    "{... on}",
    "{... on T}",
    "{$a}",
    "{a} b",
    "{a} }",
    "query",
    "query Q",
    "query Q() {a}",
    "query Q(a: Int) {a}",
    "query Q($a) {a}",
    "query Q($a: ) {a}",
    "query Q($a: [Int) {a}",
    "query Q($a: Int!!) {a}",
    "fragment on on T {a}",
    "fragment F {a}",
    "fragment F on T",
    "type T { a: Int }",
    "select a from b",
)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_is_read(text: str) -> None:
    """Layout aside."""
    assert canonical_document(text) is not None


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_none_is_compared_as_it_stands(text: str) -> None:
    """Search languages have braces and comments, too."""
    assert canonical_document(text) is None


def test_what_is_nested_deeply_is_read() -> None:
    """Without recursion."""
    assert canonical_document("{a" * 5000 + "}" * 5000) is not None
    assert canonical_document("{a(b: " + "[" * 5000 + "]" * 5000 + ")}") is not None
    assert canonical_document("{a" * 5000) is None
