"""Normalize GraphQL documents: layout does not count in matching.

Rules:

1. A body is GraphQL where it is an object with a string `query` that is a document, and no keys but `query`,
   `operationName`, `variables` and `extensions`; or a list of such objects and nothing else.
2. A document counts by its tokens: white space, line ends, commas and comments between them do not count. Strings
   and block strings are tokens and stay as they are written.
3. `extensions` of such an object do not count: `query` says all. Without `query` (persisted queries) the body is
   plain JSON, and all of it counts.
4. What does not read as a document from its first to its last character, by the whole grammar, is plain JSON: search languages
   have braces, too.
5. The operation that a server executes is the one that `operationName` names, or else the only one.

Source: GraphQL specification (October 2021) sections 2.1 (lexical grammar; 2.1.7 insignificant commas) and 2.2;
GraphQL over HTTP, "Request Parameters".
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from .graphql_grammar import Reader, Syntax
from .json import Swap, text_of

MAX_DOCUMENT = 64 * 1024
"""Characters, of all documents of a body, beyond which it is compared as any JSON."""
MAX_OPERATIONS = 1000
"""Objects of a batch beyond which it is compared as any list."""

_KEYS = frozenset({"query", "operationName", "variables", "extensions"})

_IGNORED = r"(?:[\ufeff\t\n\r ,]|#[^\n\r]*+)*+"
_TOKEN = r"""(?x:
    \"{3} (?: [^"\\] | \\\"{3} | \\ (?!\"{3}) | \"(?!\"\") )*+ \"{3}     # block string
  | \" (?!\"\") (?: [^"\\\n\r] | \\["\\/bfnrt] | \\u[0-9A-Fa-f]{4} )*+ \"  # string
  | [_A-Za-z][_0-9A-Za-z]*+                                              # name
  | -?(?:0|[1-9][0-9]*+) (?:\.[0-9]++)? (?:[eE][+-]?[0-9]++)? (?![_A-Za-z0-9.])  # number
  | \.\.\. | [!$&()=:@\[\]{}|]                                           # punctuator
)"""
_PIECE = re.compile(rf"{_IGNORED}({_TOKEN})")
_REST = re.compile(_IGNORED)
_MAX_KEPT = 100
"""Operations of a document that are remembered."""


def find_swaps(tree: Any, exact: bool) -> tuple[Swap, ...]:
    """Give what is compared as something else in a parsed body; nothing where it is no GraphQL."""
    many = type(tree) is list
    if many and not 0 < len(tree) <= MAX_OPERATIONS:
        return ()
    found: list[Swap] = []
    length = 0
    for one in tree if many else (tree,):
        # Looked at in this order: nearly all bodies end here.
        if type(one) is not dict or "query" not in one or not _KEYS.issuperset(one):
            return ()
        text = text_of(one["query"], exact)
        length += len(text or "")
        form = None if text is None or length > MAX_DOCUMENT else canonical_document(text)
        if form is None:
            return ()
        if form != text:
            found.append(Swap(one, "query", form))
        if "extensions" in one:
            if type(one["extensions"]) is not dict and one["extensions"] is not None:
                return ()
            found.append(Swap(one, "extensions", None))
    return tuple(found)


class Operation(NamedTuple):
    """An operation of a document."""

    kind: str
    """`query`, `mutation` or `subscription`; `{` where it is a query that does not say so."""
    name: str
    """Empty where it has none."""


class Document(NamedTuple):
    """A document that was read."""

    form: str
    """Its tokens with one space between them."""
    operations: tuple[Operation, ...]
    """At most `_MAX_KEPT`."""


@lru_cache(maxsize=64)
def read_document(text: str) -> Document | None:
    """Read a document; None where it is none."""
    tokens: list[str] = []
    at = 0
    while (found := _PIECE.match(text, at)) is not None:
        tokens.append(found[1])
        at = found.end()
    rest = _REST.match(text, at)
    if rest is None or rest.end() != len(text):
        return None
    operations = _find_operations(tokens)
    return None if operations is None else Document(" ".join(tokens), operations)


def canonical_document(text: str) -> str | None:
    """Give a document's tokens with one space between them, or None where it is no document."""
    found = read_document(text)
    return found.form if found is not None else None


def find_executed(text: str, name: str | None) -> Operation | None:
    """Find the operation that is executed; None where that is not clear, or the text is no document of that size.

    name: as `operationName` says.
    """
    found = read_document(text) if len(text) <= MAX_DOCUMENT else None
    if found is None or len(found.operations) == _MAX_KEPT:
        return None
    named = [one for one in found.operations if not name or one.name == name]
    return named[0] if len(named) == 1 else None


def _find_operations(tokens: list[str]) -> tuple[Operation, ...] | None:
    """Find the operations of what is a document; None where the tokens are none."""
    found: list[Operation] = []
    reader = Reader(tokens)
    try:
        while reader.has_more:
            kind, name = reader.definition()
            if kind != "fragment" and len(found) < _MAX_KEPT:
                found.append(Operation(kind, name))
    except Syntax:
        return None
    return tuple(found) if tokens else None
