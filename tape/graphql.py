"""GraphQL over HTTP: what of an operation is only layout.

Rules:

1. A body is GraphQL where it is an object with a string `query` that is a document, and no keys but `query`,
   `operationName`, `variables` and `extensions`; or a list of such objects and nothing else.
2. A document counts by its tokens: white space, line ends, commas and comments between them do not count. Strings
   and block strings are tokens and stay as they are written.
3. `extensions` of such an object do not count: `query` says all. Without `query` (persisted queries) the body is
   plain JSON, and all of it counts.
4. What does not read as a document from its first to its last character is plain JSON.

Source: GraphQL specification (October 2021) sections 2.1 (lexical grammar; 2.1.7 insignificant commas) and 2.2;
GraphQL over HTTP, "Request Parameters".
"""

import re
from functools import lru_cache
from typing import Any

from .json_form import Swap, text_of

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
_BEGINS = frozenset({"{", "query", "mutation", "subscription", "fragment"})
_CLOSES = {")": "(", "]": "[", "}": "{"}
_MAX_NESTED = 500


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


@lru_cache(maxsize=64)
def canonical_document(text: str) -> str | None:
    """Give a document's tokens with one space between them, or None where it is no document."""
    tokens: list[str] = []
    at = 0
    while (found := _PIECE.match(text, at)) is not None:
        tokens.append(found[1])
        at = found.end()
    rest = _REST.match(text, at)
    if rest is None or rest.end() != len(text) or not _is_document(tokens):
        return None
    return " ".join(tokens)


def _is_document(tokens: list[str]) -> bool:
    """Say whether tokens are definitions that can be executed: each begins as one and ends with its braces."""
    open_: list[str] = []
    begins, before = True, ""
    for token in tokens:
        if begins:
            if token not in _BEGINS:
                return False
            begins = False
        if token in "([{":
            open_.append(token)
            if len(open_) > _MAX_NESTED:
                return False
        elif token in _CLOSES:
            if not open_ or open_.pop() != _CLOSES[token]:
                return False
            begins = token == "}" and not open_
            if begins and before == "{":
                return False  # it selects nothing
        before = token
    return begins and bool(tokens)
