"""What it takes to rewrite a text grows with its size, however often a secret is in it."""

from collections.abc import Callable

import pytest

from playhead.config import RedactRule
from playhead.tape.exchange import Message, MessageKind, Request, Response
from playhead.tape.redaction.rewriting.merge_spans import merge
from playhead.tape.redaction.rewriting.rewriter import Rewriter
from playhead.tape.redaction.search import Search, Searched, Span
from playhead.tests.tape.redaction.rewriting.test_rewriter_corpus import _exchange

VALUE = "ACMEq" + "abcdefghjkmn"
RULES = (RedactRule(pattern="ACMEq[a-z]+"),)


def _answer(text: str) -> object:
    response = Response(200, b"OK", "HTTP/1.1", (), text.encode(), 1)
    return _rewritten(Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", ()), response)


def _target(text: str) -> object:
    target = "/" + text.replace(" ", "/")
    return _rewritten(Request("GET", "https", "api.test", 443, target, "HTTP/1.1", ()), None)


def _header(text: str) -> object:
    fields = ((b"x-note", text.encode()),)
    return _rewritten(Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", fields), None)


def _message(text: str) -> object:
    message = Message(1, False, MessageKind.TEXT, text.encode())
    return Rewriter(b"k" * 32, RULES).stored_message(message, 0)


def _file(text: str) -> object:
    body = Rewriter(b"k" * 32, RULES).body((), (), "response.body")
    assert body is not None
    body.feed(text.encode())
    return body.finish()[2]


def _rewritten(request: Request, response: Response | None) -> object:
    return Rewriter(b"k" * 32, RULES).exchange(_exchange(request, response))[1]


@pytest.mark.parametrize("rewrite", [_answer, _target, _header, _message, _file])
def test_a_text_is_searched_as_often_whatever_it_repeats(
    monkeypatch: pytest.MonkeyPatch, rewrite: Callable[[str], object]
) -> None:
    """Bytes that are searched for one value 300 times are about ten times those of 30 times."""
    searched: list[int] = []
    search = Search.search

    def counted(self: Search, data: bytes, *told: object, **named: object) -> Searched | None:
        searched.append(len(data))
        return search(self, data, *told, **named)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Search, "search", counted)
    sums = []
    for repeats in (30, 300):
        searched.clear()
        assert rewrite(f"say {VALUE} ok " * repeats)
        sums.append(sum(searched))
    assert sums[1] < 15 * sums[0]


class _Counted(int):
    """Where a placeholder begins: counts how often it is asked where it ends."""

    asked = 0

    def __add__(self, other: int) -> int:
        type(self).asked += 1
        return int(self) + other


def _count_asked(monkeypatch: pytest.MonkeyPatch, spans: int) -> int:
    """Merge as many placeholders that stand, each with a find that reaches beyond it."""
    monkeypatch.setattr(_Counted, "asked", 0)
    old = [Span(_Counted(10 * at), 4, "old") for at in range(spans)]
    found = [Span(10 * at + 2, 4, "new") for at in range(spans)]
    made = merge(b"a" * (10 * spans), old, b"b" * (10 * spans), found)
    assert len(made.fresh) == spans
    return _Counted.asked


def test_placeholders_and_finds_are_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many are asked some twice as often; a pass for each find would ask four times as often."""
    assert 0 < _count_asked(monkeypatch, 400) < 3 * _count_asked(monkeypatch, 200)
