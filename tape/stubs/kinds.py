"""The kinds of stubs: what makes an answer to an effect that is not on the tape, and how it is named.

The keys of `KINDS` are stored in the log (`answered_by`). `docs/extending.md` says how to add one.
"""

from collections.abc import Callable
from typing import NamedTuple

from ...config import Answer
from ..exchange import Headers, Request
from .synthesize import Made


class StubKind(NamedTuple):
    """One kind of stub."""

    by: str
    """What answered, in one word, in the row of an effect."""
    words: str
    """The same for people; `{seqs}` are the exchanges of the tape after which it was made."""
    make: Callable[[Answer, Request], Made] | None = None
    """Makes the answer that a rule gives; None for an answer that is made after the tape."""


def _fill_template(given: Answer, asked: Request) -> Made:
    """Give the answer of a rule as it is configured."""
    return Made(given.status, _fields(given), given.body, (), True)


def _fields(given: Answer) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in given.headers)


KINDS = {
    "template": StubKind("template", "effect rule", _fill_template),
    "hypothetical": StubKind("hypothetical", "hypothetical answer", _fill_template),
    "tape": StubKind("recorded", "synthetic, as {seqs}"),
    "synthetic": StubKind("synthetic", "synthetic, after {seqs}"),
}
"""By `answered_by`; those with `make` are what `effects[].answer.kind` may say, but for `hypothetical`, which is a branch's."""


def make_configured(given: Answer, asked: Request) -> Made:
    """Make the answer that a rule gives to a request."""
    make = KINDS[given.kind].make
    assert make is not None
    return make(given, asked)
