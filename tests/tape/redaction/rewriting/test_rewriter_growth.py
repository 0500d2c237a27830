"""What it takes to rewrite a text grows with its size, however often a secret is in it."""

import time
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


def _merge_seconds(spans: int) -> float:
    """CPU time for as many placeholders that stand, each with a find that reaches beyond it."""
    old = [Span(10 * at, 4, "old") for at in range(spans)]
    found = [Span(10 * at + 2, 4, "new") for at in range(spans)]
    before, after = b"a" * (10 * spans), b"b" * (10 * spans)
    start = time.thread_time()
    made = merge(before, old, after, found)
    taken = time.thread_time() - start
    assert len(made.fresh) == spans
    return taken


def test_placeholders_and_finds_are_gone_through_once() -> None:
    """Sixteen times as many take less than 80 times as long; a pass for each would take 256 times."""
    few = min(_merge_seconds(500) for _ in range(5))
    assert min(_merge_seconds(8000) for _ in range(2)) < 80 * few
