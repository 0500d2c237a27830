"""Originals: what redaction replaced in an answer, as a value beside its exchange, so that a replay can give the answer as it came.

Only an encrypted store has them (`store/tables/redacted_originals.py`). An answer has all of its originals or none: none where a part was
not searched, or where a body in a file has more places than are remembered. Reading trusts nothing: originals that do not fit
their exchange raise `BadRecord`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from blake3 import blake3

from ..exchange import (
    BODY,
    Chunk,
    Close,
    Exchange,
    Headers,
    HttpResponse,
    Message,
    RawAnswer,
    RawClose,
    RawInterim,
    RawMessage,
    RawResponse,
    Response,
    Secret,
)
from .codec import BadRecord, pack_map, unpack

_CHECK_BYTES = 16
_Pieces = Sequence[tuple[int, bytes]]


def pack_originals(came: RawAnswer, kept: Exchange) -> bytes | None:
    """Pack what redaction replaced in an answer; None where that was nothing, or cannot all be given back."""
    row: dict[str, Any] = {}
    raw, response = came.response, kept.response
    if raw is not None and response is not None:
        if response.find_unsearched() is not None:
            return None
        for name in ("reason", "headers", "trailers"):
            if getattr(raw, name) != getattr(response, name):
                row[name] = getattr(raw, name)
        if response.spilled is not None:
            if response.secrets:
                if not _fit(came.pieces, response.secrets):
                    return None
                row["pieces"] = came.pieces
        elif raw.body != response.body:
            pieces = _pieces(raw.body, response.secrets)
            if put(response.body, pieces) == raw.body:
                row["pieces"] = pieces
            else:  # its coding was undone
                row |= {"body": raw.body, "chunks": raw.chunks}
    if [tuple(one) for one in came.interim] != [tuple(one) for one in kept.interim]:
        row["interim"] = came.interim
    if came.close is not None and came.close != _reasons(kept):
        row["close"] = came.close
    return pack_map({"check": _check(kept), **row}) if row else None


def restore_answer(kept: Exchange, data: bytes) -> RawAnswer:
    """Give an answer as it came, from its exchange and what `pack_originals` gave.

    Raises: BadRecord.
    """
    row = unpack(data)
    try:
        if row["check"] != _check(kept):
            raise ValueError("they are those of another exchange")
        response, pieces = kept.response, row.get("pieces", ())
        raw = None
        if response is not None:
            if pieces and not _fit(pieces, response.secrets):
                raise ValueError("they are not at its placeholders")
            in_file = response.spilled is not None
            body = response.body if in_file else put(response.body, pieces)
            chunks = response.chunks
            if "body" in row:
                body = _bytes(row["body"])
                chunks = tuple(Chunk(*map(_int, one)) for one in row["chunks"])
            if chunks and sum(one.size for one in chunks) != len(body):
                raise ValueError("their pieces do not add up to a body")
            raw = RawResponse(
                status=response.status,
                reason=_bytes(row.get("reason", response.reason)),
                http_version=response.http_version,
                headers=_pairs(row.get("headers", response.headers)),
                body=body,
                head_us=response.head_us,
                chunks=chunks,
                trailers=_pairs(row.get("trailers", response.trailers)),
                complete=response.complete,
                spilled=response.spilled,
                head_need=response.head_need,
                end_need=response.end_need,
                end_after=response.end_after,
                ragged=response.ragged,
                secrets=response.secrets if in_file else (),
            )
        interim = tuple(
            RawInterim(_int(at_us), _int(status), _bytes(reason), _pairs(headers))
            for at_us, status, reason, headers in row.get("interim", kept.interim)
        )
        close = row.get("close")
        if close is not None:
            first, second = close
            close = _text(first), _text(second)
        return RawAnswer(raw, interim, pieces if raw is not None and raw.spilled else (), close)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadRecord(f"its originals: {str(error)[:200]}") from error


def answer_of(kept: Exchange, raw: RawAnswer | None) -> HttpResponse | None:
    """Give the answer that an agent is given: as it came, where that was kept."""
    return kept.response if raw is None else raw.response


def restore_message(kept: Message, data: bytes) -> RawMessage:
    """Give a message of a WebSocket as it came, from itself and its bytes as they came.

    Raises: BadRecord.
    """
    if put(kept.data, _pieces(data, kept.secrets)) != data:
        raise BadRecord("its original is not that of this message")
    return RawMessage(kept.at_us, kept.from_client, kept.kind, data, kept.frames, kept.after)


def restore_close(close: Close, answer: RawAnswer | None) -> RawClose:
    """Give how a WebSocket ended, with the reasons that were given where they were kept."""
    given = close.reasons if answer is None or answer.close is None else answer.close
    answered = (close.answer[0], given[1]) if close.answer is not None else None
    return RawClose(close.at_us, close.by_client, close.code, given[0], answered)


def put(body: bytes, pieces: _Pieces, start: int = 0) -> bytes:
    """Put originals back into a body, or into a piece of one that begins at `start`."""
    parts: list[bytes] = []
    at, end = start, start + len(body)
    for first, data in pieces:
        last = first + len(data)
        if last <= at or first >= end:
            continue
        begin, stop = max(first, at), min(last, end)
        parts += (body[at - start : begin - start], data[begin - first : stop - first])
        at = stop
    return b"".join((*parts, body[at - start :])) if parts else body


def put_back(
    pieces: Iterator[tuple[Chunk, bytes]], originals: _Pieces
) -> Iterator[tuple[Chunk, bytes]]:
    """Put originals back into a body that is read piece by piece."""
    at = 0
    for chunk, data in pieces:
        yield chunk, put(data, originals, at)
        at += len(data)


def _pieces(body: bytes, secrets: Sequence[Secret]) -> list[tuple[int, bytes]]:
    return [(one.at, body[one.at : one.at + one.size]) for one in secrets if one.part == BODY]


def _fit(pieces: _Pieces, secrets: Sequence[Secret]) -> bool:
    return [(_int(at), len(_bytes(data))) for at, data in pieces] == [
        (one.at, one.size) for one in secrets if one.part == BODY
    ]


def _reasons(exchange: Exchange) -> tuple[str, str] | None:
    websocket = exchange.websocket
    return None if websocket is None or websocket.close is None else websocket.close.reasons


def _check(kept: Exchange) -> bytes:
    """Hash what an answer is without its secrets: its originals belong to nothing else."""
    response = kept.response
    found: dict[str, Any] = {"interim": kept.interim, "close": _reasons(kept)}
    if response is not None:
        spilled = response.spilled.digest if response.spilled is not None else b""
        found["head"] = (response.reason, response.headers, response.trailers)
        found["body"] = (spilled, response.body, _places(response))
    return blake3(pack_map(found)).digest(_CHECK_BYTES)


def _places(response: Response) -> list[tuple[int, int]]:
    return [(one.at, one.size) for one in response.secrets]


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise TypeError(f"expected bytes, found {type(value).__name__}")
    return value


def _int(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"expected a whole number, found {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _pairs(value: Any) -> Headers:
    return tuple((_bytes(name), _bytes(text)) for name, text in value)
