"""Give the texts in which an answer says something, for a search for words: as it came, put together, and without escapes.

1. The content coding is undone, and the charset. A body in a file of its own is read.
2. What a stream says piece by piece is put together: by the dialect of a model call, and of any stream what its pieces say at one path.
3. Escapes (JSON, percent-encoding, entities of HTML) are undone up to as deep as redaction undoes them.
4. None stands for what was not searched: too large, not kept, or in an unknown coding. Then any word may be there.
"""

import codecs
import html
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import unquote

from ...store import Store
from ...tape.dialects.common.untrusted_json import find_json
from ...tape.dialects.framing.split_stream import Framing, find_framing, read_pieces
from ...tape.dialects.reader import MAX_PIECES, read_tree
from ...tape.exchange import UNSEARCHED, Exchange, HttpResponse
from ...tape.records.content_coding import read_charset, read_codings, undo_what_came
from ...tape.records.json_escapes import unescape

MOST_BYTES = 64 * 1024 * 1024
"""Of an answer, with and without its coding; nothing of a larger one is searched."""
_DEPTH = 4
_TAIL = 512
"""Characters of earlier messages at one path with which those of the next are put together."""
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_answer_texts(exchange: Exchange, store: Store | None = None) -> Iterator[bytes | None]:
    """Give the texts of an answer, header fields too, and None if not all of it can be searched. Blocking.

    store: has bodies in files of their own; without it these are not searched.
    Raises: LogCorrupt.
    """
    response = exchange.response
    if response is None:
        return
    fields = (value for _, value in (*response.headers, *response.trailers))
    yield from read_all_ways(b" ".join(fields))
    plain = _read_body(response, store)
    if plain is None:
        yield None
        return
    yield from read_all_ways(plain)
    framing = find_framing(response.header(b"content-type") or b"", plain)
    if framing is Framing.WHOLE:
        return
    answer = replace(response, body=plain, chunks=(), spilled=None, headers=_uncoded(response))
    tree = read_tree(exchange.request, answer)
    if tree is not None:
        yield from read_all_ways(_dump(tree))
    pieces = read_pieces(framing, plain)
    spelt: dict[str, list[str]] = {}
    for piece in islice(pieces, MAX_PIECES):
        for path, text in _leaves(piece.data):
            spelt.setdefault(path, []).append(text)
    if next(pieces, None) is not None:
        yield None
    for texts in spelt.values():
        if len(texts) > 1:
            yield from read_all_ways("".join(texts).encode("utf-8", "surrogatepass"))


class Spelling:
    """What the messages of a WebSocket say piece by piece, put together."""

    def __init__(self) -> None:
        self._tails: dict[str, str] = {}

    def add(self, message: bytes) -> Iterator[bytes]:
        """Give the texts of the next message: as it came, and each of its values behind those at the same path before."""
        yield from read_all_ways(message)
        for path, text in _leaves(message):
            before = self._tails.get(path, "")
            self._tails[path] = (before + text)[-_TAIL:]
            if before:
                yield from read_all_ways((before + text).encode("utf-8", "surrogatepass"))


def read_all_ways(text: bytes) -> Iterator[bytes]:
    """Give a text as it is, and once more for each depth of escapes that it has."""
    yield text
    if not any(sign in text for sign in (b"\\", b"%", b"&")):
        return
    plain = text.decode("utf-8", "replace")
    for _ in range(_DEPTH):
        before, plain = plain, unescape(plain)
        plain = html.unescape(plain) if "&" in plain else plain
        plain = unquote(plain) if "%" in plain else plain
        if plain == before:
            return
        yield plain.encode("utf-8", "surrogatepass")


def _read_body(response: HttpResponse, store: Store | None) -> bytes | None:
    """Read a body with its coding undone, in UTF-8; None where that cannot be done with all of it."""
    if response.body_bytes > MOST_BYTES or any(
        one.kind.startswith(UNSEARCHED) for one in response.secrets
    ):
        return None
    body = response.body
    if response.spilled is not None:
        if store is None:
            return None
        body = b"".join(data for _, data in store.bodies.read(response.spilled))
    coding = read_codings(response.headers)
    if coding and body:
        plain = undo_what_came(body, coding, MOST_BYTES)
        if plain is None and not _is_text(body):
            return None
        # A body with a secret may be stored with its coding undone.
        body = body if plain is None else plain
    return _recode(body, response.header(b"content-type") or b"")


def _recode(body: bytes, content_type: bytes) -> bytes:
    charset = "utf-16" if body.startswith(_BOMS) else read_charset(content_type) or "utf-8"
    try:
        if codecs.lookup(charset).name in ("utf-8", "ascii", "iso8859-1"):
            return body  # words have the same bytes
        return body.decode(charset, "replace").encode("utf-8", "surrogatepass")
    except (LookupError, ValueError):  # no charset that is known
        return body


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _uncoded(response: HttpResponse) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(
        (name, value) for name, value in response.headers if name.lower() != b"content-encoding"
    )


def _dump(tree: Any) -> bytes:
    try:
        return json.dumps(tree, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b""


def _leaves(data: bytes) -> Iterator[tuple[str, str]]:
    """Give the texts of a piece with their paths; all of it where it is no JSON."""
    tree = find_json(data)
    if isinstance(tree, dict | list):
        yield from _walk(tree, "$")
    else:
        yield "", tree if isinstance(tree, str) else data.decode("utf-8", "replace")


def _walk(tree: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from _walk(value, f"{path}.{name}")
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from _walk(value, f"{path}[{at}]")
