"""Secrets in the bytes of a content coding that are no content."""

import gzip
import io
import zlib
from importlib import import_module
from typing import Any

import pytest

from playhead.tape.records import zstd
from playhead.tape.records.content_coding import undo_coding
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.dialects import make_request
from playhead.tests.support.exchanges import make_response

brotli: Any = import_module("brotli")  # It has no types.
KEY = b"sk-proj-hT7bQ2mXv9KcLw4RzN8pYd3GfJ6sAe5UoVqWkBtCxM1nEiPrHyDgZuTaSbFlQjRw"
PLAIN = b'{"ok":1}'


def _named(name: bytes) -> bytes:
    into = io.BytesIO()
    with gzip.GzipFile(filename=name.decode(), mode="wb", fileobj=into, mtime=0) as file:
        file.write(PLAIN)
    return into.getvalue()


def _skipped(data: bytes) -> bytes:
    return b"\x50\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data + zstd.compress(PLAIN)


CODED = {
    "a name in gzip": (b"gzip", _named(b"export-%s.json" % KEY)),
    "a second member of gzip": (b"gzip", gzip.compress(b"", mtime=0) + _named(KEY)),
    "a frame of zstd that is skipped": (b"zstd", _skipped(KEY)),
    "behind the end of br": (b"br", brotli.compress(PLAIN) + KEY),
    "behind the end of deflate": (b"deflate", zlib.compress(PLAIN) + KEY),
    "an inner coding": (b"gzip, br", brotli.compress(_named(KEY))),
}


@pytest.mark.parametrize("how", CODED)
def test_a_secret_beside_the_content_of_a_coding_is_not_kept(how: str) -> None:
    """The body is kept without these bytes, and its place is declared, in requests and answers."""
    coding, body = CODED[how]
    request = make_request("https://a.test/", body, {"content-encoding": coding.decode()})
    kept, places = Redactor(b"a test").request(request)
    response = make_response(body, headers=((b"Content-Encoding", coding),))
    answer, more, _ = Redactor(b"a test").response(response)
    for one in (kept, answer):
        codings = [value for name, value in one.headers if name.lower() == b"content-encoding"]
        layers = [one.body]
        for at in range(len(codings[0].split(b",")) if codings else 0):
            layers.append(undo_coding(one.body, b",".join(codings[0].split(b",")[at:])) or b"")
        assert not any(KEY in layer for layer in layers)
    assert "request.body" in {one.place for one in places}
    assert "response.body" in {one.place for one in more}


def test_a_value_that_is_known_is_found_there() -> None:
    """It has no form of its own."""
    value = "q8Zb3kTx7Vd2LmP9sWq4RfYh6NcJ0eAb"
    redactor = Redactor(b"a test")
    redactor.request(make_request("https://a.test/", b"", {"authorization": f"Bearer {value}"}))
    response = make_response(
        _named(f"session-{value}.json".encode()), headers=((b"Content-Encoding", b"gzip"),)
    )
    answer, _, warnings = redactor.response(response)
    assert (answer.body, bool(warnings)) == (PLAIN, True)


def test_a_coded_body_without_a_secret_stays_as_it_came() -> None:
    """A name of a file is none."""
    body = _named(b"report-2026.json")
    answer, _, _ = Redactor(b"a test").response(
        make_response(body, headers=((b"Content-Encoding", b"gzip"),))
    )
    assert answer.body == body
