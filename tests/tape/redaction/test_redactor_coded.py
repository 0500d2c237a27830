"""Coded answers with a secret: a client reads what it read, and fails where it failed."""

import gzip
import json
import zlib
from dataclasses import replace
from importlib import import_module
from random import Random
from typing import Any

import pytest

from playhead.tape.exchange import Chunk, RawResponse, Response
from playhead.tape.records import zstd
from playhead.tape.records.content_coding import is_broken, read_codings, undo_what_came
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.rewriting.rewriter import Rewriter
from playhead.tests.support.exchanges import make_exchange

brotli: Any = import_module("brotli")  # It has no types.

_RNG = Random(4)
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"


def _draw(size: int) -> str:
    return "".join(_RNG.choices(_ALPHABET, k=size))


SECRET = "sk-" + "proj-" + _draw(64)
ITEMS = [{"id": at, "name": _draw(6)} for at in range(60)]
PLAIN = json.dumps({"api_key": SECRET, "items": ITEMS}).encode()
_ZSTD = zstd.ZstdCompressor()


def _in_blocks() -> bytes:
    """Of a block that has not come whole nothing is read."""
    half, rest = PLAIN[:300], PLAIN[300:]
    return _ZSTD.compress(half, mode=_ZSTD.FLUSH_BLOCK) + _ZSTD.compress(
        rest, mode=_ZSTD.FLUSH_FRAME
    )


CODED = {
    b"gzip": gzip.compress(PLAIN, mtime=0),
    b"deflate": zlib.compress(PLAIN),
    b"br": brotli.compress(PLAIN),
    b"zstd": _in_blocks(),
}
TWICE = b"gzip, br"


def _answer(coding: bytes, body: bytes, missing: int = 0, **more: Any) -> RawResponse:
    fields = (
        (b"content-type", b"application/json"),
        (b"content-encoding", coding),
        (b"content-length", b"%d" % (len(body) + missing)),
    )
    half = len(body) // 2
    chunks = (Chunk(1, half), Chunk(2, len(body) - half))
    return RawResponse(200, b"OK", "HTTP/1.1", fields, body, 1, chunks, **more)


def _keep(answer: RawResponse) -> Response:
    return Redactor(b"k" * 32).response(answer)[0]


def _declared(answer: Response) -> int:
    return int(answer.header(b"content-length") or b"")


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("missing", [1, 60])
def test_an_answer_that_was_cut_is_cut(coding: bytes, missing: int) -> None:
    """What it announces is as much more than what comes."""
    came = CODED[coding][:-missing]
    kept = _keep(_answer(coding, came, missing, complete=False))
    assert kept.header(b"content-encoding") is None
    assert SECRET.encode() not in kept.body
    assert kept.body[: len(b'{"api_key"')] == b'{"api_key"'
    assert _declared(kept) == len(kept.body) + missing
    assert sum(one.size for one in kept.chunks) == len(kept.body)


def test_an_answer_that_came_whole_before_it_failed_is_cut_all_the_same() -> None:
    """Its end was missing, not its body."""
    kept = _keep(_answer(b"gzip", CODED[b"gzip"], complete=False))
    assert _declared(kept) > len(kept.body)


@pytest.mark.parametrize("coding", CODED)
def test_an_answer_whose_coding_has_no_end_keeps_it(coding: bytes) -> None:
    """It came whole, and its client reads as far as it goes; at its placeholders the body has them."""
    came = CODED[coding][:-40]
    kept = _keep(_answer(coding, came))
    assert read_codings(kept.headers) == coding
    assert _declared(kept) == len(kept.body)
    assert sum(one.size for one in kept.chunks) == len(kept.body)
    assert kept.find_unsearched() is None
    before, after = undo_what_came(came, coding), undo_what_came(kept.body, coding)
    assert before is not None
    assert after is not None
    assert len(before) == len(after)
    assert SECRET.encode() not in kept.body
    assert SECRET.encode() in before
    at, size = before.index(SECRET.encode()), len(SECRET)
    assert after[at : at + size] in [kept.body[one.at : one.at + one.size] for one in kept.secrets]
    assert after[:at] == before[:at]


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
@pytest.mark.parametrize("complete", [True, False])
def test_an_answer_that_is_damaged_is_damaged(coding: bytes, complete: bool) -> None:
    """Its client fails there."""
    coder = zlib.compressobj(wbits=31 if coding == b"gzip" else 15)
    came = coder.compress(PLAIN) + coder.flush(zlib.Z_FULL_FLUSH) + b"\x07" * 50
    kept = _keep(_answer(coding, came, 0 if complete else 30, complete=complete))
    assert is_broken(kept.body, coding)
    assert SECRET.encode() not in kept.body
    assert len(undo_what_came(kept.body, coding) or b"") == len(PLAIN)
    assert (_declared(kept) > len(kept.body)) is not complete


def test_of_two_codings_without_an_end_nothing_is_kept() -> None:
    """They are not written again."""
    kept = _keep(_answer(TWICE, brotli.compress(CODED[b"gzip"])[:-5]))
    assert kept.find_unsearched() is not None
    assert SECRET.encode() not in kept.body


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("complete", [True, False])
def test_a_coded_answer_without_a_secret_stays(coding: bytes, complete: bool) -> None:
    """Byte by byte."""
    coders: dict[bytes, Any] = {
        b"gzip": gzip.compress,
        b"deflate": zlib.compress,
        b"br": brotli.compress,
        b"zstd": zstd.compress,
    }
    came = _answer(coding, coders[coding](json.dumps(ITEMS).encode())[:-30], complete=complete)
    kept = _keep(came)
    assert (kept.headers, kept.body) == (came.headers, came.body)


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("complete", [True, False])
def test_a_stored_answer_is_rewritten_in_the_same_way(coding: bytes, complete: bool) -> None:
    """It was stored before its secret was known; a second time nothing changes."""
    raw = _answer(coding, CODED[coding][:-40], 0 if complete else 40, complete=complete)
    parts = {name: getattr(raw, name) for name in RawResponse.__dataclass_fields__}
    before = make_exchange(response=Response(**parts))
    rewriter = Rewriter(b"k" * 32)
    after, places = rewriter.exchange(before)
    assert [one.place for one in places if one.place == "response.body"]
    assert after.response is not None
    expected = _keep(raw)
    assert after.response.body == expected.body
    assert after.response.headers == expected.headers
    assert after.response.secrets == expected.secrets
    again, places = rewriter.exchange(replace(after))
    assert places == ()
    assert again.response == after.response
