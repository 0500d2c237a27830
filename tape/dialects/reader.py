"""Find the dialect of a request, and read its request and response.

1. A request is told by its method, host, path and header fields; where these say too little, by the shape of
   its body.
2. A body is parsed once. Its codings are undone, and it is bounded in size and depth.
3. What is broken, unknown or beyond the bounds is None. Nothing here raises.
4. A stream that was cut gives what was there, marked incomplete.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate, batched, islice

from ..exchange import HttpRequest, HttpResponse
from ..records.content_coding import read_codings, undo_coding, undo_what_came
from . import (
    anthropic_complete,
    anthropic_messages,
    bedrock_converse,
    bedrock_invoke,
    cohere,
    cohere_generate,
    cohere_v1,
    gemini,
    mcp,
    mistral,
    ollama,
    openai_chat,
    openai_completions,
    openai_embeddings,
    openai_responses,
)
from .common.dialect import Claim, Dialect, Fold, Heard
from .common.drift_places import Places
from .common.inference import ApiError, InferenceRequest, InferenceResponse
from .common.provider_errors import find_error, read_error
from .common.untrusted_json import Json, as_object, find_json, find_json_lines
from .framing.split_stream import Framing, Piece, find_framing, read_pieces

MAX_STREAM = 64 * 1024 * 1024
"""Bytes of a stream beyond which it is not read; each of its pieces is bounded as JSON is."""

DIALECTS: tuple[Dialect, ...] = (
    mistral.DIALECT,
    openai_chat.DIALECT,
    openai_responses.DIALECT,
    openai_completions.DIALECT,
    openai_embeddings.DIALECT,
    anthropic_messages.DIALECT,
    anthropic_complete.DIALECT,
    gemini.DIALECT,
    bedrock_converse.DIALECT,
    bedrock_invoke.DIALECT,
    cohere.DIALECT,
    cohere_v1.DIALECT,
    cohere_generate.DIALECT,
    ollama.DIALECT,
    mcp.DIALECT,
)
"""In this order: the first that claims a request reads it."""

MAX_PIECES = 1_000_000
"""Pieces of a stream beyond which it is read no further; an answer has no more of them than tokens."""

_TOGETHER = 256
"""Pieces of a stream that are parsed together."""
_SILENT = (202, 204)
"""Taken note of, and nothing to say; some say so in a word."""


def find_dialect(request: HttpRequest) -> Dialect | None:
    """Find who can read a request and its answer."""
    return _find(request)[0]


def read_request(request: HttpRequest) -> InferenceRequest | None:
    """Read what was asked, or None where no dialect can."""
    dialect, tree, parsed = _find(request)
    if dialect is None:
        return None
    return dialect.read_request(tree if parsed else _request_json(request), request)


def read_places(request: HttpRequest) -> tuple[InferenceRequest, Places] | None:
    """Read what was asked, and where in the request stands what of it may drift."""
    dialect, tree, parsed = _find(request)
    if dialect is None:
        return None
    tree = tree if parsed else _request_json(request)
    asked = dialect.read_request(tree, request)
    return None if asked is None else (asked, dialect.find_places(tree))


def read_response(request: HttpRequest, response: HttpResponse) -> InferenceResponse | None:
    """Read what came back, streamed or not, or None where no dialect can.

    request: what it answers, which says who can read it.
    """
    dialect, _, _ = _find(request)
    if dialect is None:
        return None
    plain = _plain_response(response)
    if plain is None:
        return None
    answer = _read(dialect, request, response, plain)
    if answer is None:
        return None
    last = response.chunks[-1].at_us if response.chunks else response.head_us
    return replace(answer, dialect=dialect.name, status=response.status, total_us=last)


def read_tree(request: HttpRequest, response: HttpResponse) -> Json:
    """Give the JSON of an answer; of a stream what its pieces come to. None where no dialect can.

    request: what it answers.
    """
    dialect, _, _ = _find(request)
    plain = _plain_response(response)
    if dialect is None or plain is None:
        return find_json(plain) if plain is not None else None
    framing = find_framing(response.header(b"content-type") or b"", plain)
    if framing is Framing.WHOLE:
        return find_json(plain)
    fold = dialect.make_fold()
    return fold.whole() if _hear(fold, framing, plain).known else None


def _find(request: HttpRequest) -> tuple[Dialect | None, Json, bool]:
    """Find the dialect; with the body and whether it had to be parsed for that."""
    maybe = []
    for dialect in DIALECTS:
        claim = dialect.claim(request)
        if claim is Claim.YES:
            return dialect, None, False
        if claim is Claim.MAYBE:
            maybe.append(dialect)
    if not maybe:
        return None, None, False
    tree = _request_json(request)
    return next((dialect for dialect in maybe if dialect.has_shape(tree)), None), tree, True


def _request_json(request: HttpRequest) -> Json:
    body, coding = request.body, read_codings(request.headers)
    if coding:
        plain = undo_coding(body, coding, MAX_STREAM)
        body = body if plain is None else plain
    return find_json(body)


def _plain_response(response: HttpResponse) -> bytes | None:
    """Give a response's body with its codings undone, as far as it came."""
    body, coding = response.body, read_codings(response.headers)
    if coding:
        plain = undo_what_came(body, coding, MAX_STREAM)
        # What is no such coding may have been stored, or handed on, with its coding undone.
        body = body if plain is None else plain
    return body if len(body) <= MAX_STREAM else None


def _read(
    dialect: Dialect, request: HttpRequest, response: HttpResponse, body: bytes
) -> InferenceResponse | None:
    if response.status >= 400:
        error = read_error(find_json(body), body, response)
        return InferenceResponse(error=error, complete=response.complete)
    if response.status in _SILENT and find_json(body) is None:
        return InferenceResponse(complete=response.complete)
    framing = find_framing(response.header(b"content-type") or b"", body)
    if framing is Framing.MEMBERS and not dialect.by_members:
        framing = Framing.WHOLE
    if framing is Framing.WHOLE:
        tree = find_json(body)
        if tree is not None or not dialect.by_lines:
            return _read_whole(dialect, request, response, tree)
        framing = Framing.LINES
    return _read_stream(dialect, request, response, framing, body)


def _read_whole(
    dialect: Dialect, request: HttpRequest, response: HttpResponse, tree: Json
) -> InferenceResponse | None:
    if tree is None:
        return None
    answer = dialect.read_answer(tree, request, response)
    error = find_error(tree)
    if answer is None:
        return InferenceResponse(error=error, complete=response.complete) if error else None
    whole = answer.complete and response.complete
    return replace(answer, complete=whole, error=answer.error or error)


def _read_stream(
    dialect: Dialect, request: HttpRequest, response: HttpResponse, framing: Framing, body: bytes
) -> InferenceResponse | None:
    fold = dialect.make_fold()
    heard = _hear(fold, framing, body)
    cut_at_once = not response.complete and heard.pieces <= 1
    if heard.pieces + heard.broken and not heard.known and heard.error is None and not cut_at_once:
        return None  # a stream, but of nothing that is known here
    whole = fold.whole()
    answer = dialect.read_answer(whole, request, response) if heard.known else None
    answer = answer or InferenceResponse()
    return replace(
        answer,
        error=heard.error or answer.error or find_error(whole),
        streamed=True,
        complete=answer.complete and response.complete and fold.ended and not heard.broken,
        first_token_us=None if heard.first is None else _arrival(response, heard.first, body),
    )


@dataclass(slots=True)
class _Heard:
    """What the pieces of a stream were."""

    pieces: int = 0
    known: int = 0
    broken: int = 0
    first: int | None = None
    """Where the first that carries content ends in the body."""
    error: ApiError | None = None


def _hear(fold: Fold, framing: Framing, body: bytes) -> _Heard:
    """Hand each piece of a stream to its fold."""
    heard, end = _Heard(), 0
    pieces = read_pieces(framing, body)
    for some in batched(islice(pieces, MAX_PIECES), _TOGETHER):
        end = some[-1].end
        trees = find_json_lines([piece.data for piece in some])
        for piece, tree in zip(some, trees, strict=True):
            _hear_piece(heard, fold, piece, tree)
    if next(pieces, None) is not None or (framing is Framing.FRAMES and end < len(body)):
        heard.broken += 1  # more than is read, or what is no frame
    return heard


def _hear_piece(heard: _Heard, fold: Fold, piece: Piece, tree: Json) -> None:
    if not isinstance(tree, dict):
        data = piece.data.strip()
        if data == b"[DONE]":
            fold.ended = True
        elif data:
            heard.pieces += 1
            heard.broken += 1
        return
    heard.pieces += 1
    if piece.failed:
        heard.known += 1
        heard.error = heard.error or _frame_error(piece, tree)
        return
    kind = fold.add(piece.name, tree)
    heard.known += kind is not Heard.UNKNOWN
    if kind is Heard.CONTENT and heard.first is None:
        heard.first = piece.end
    if heard.error is None and "error" in tree:
        heard.error = find_error(tree)


def _frame_error(piece: Piece, tree: Json) -> ApiError:
    body = as_object(tree)
    message = body.get("message") or body.get("Message") or body.get("originalMessage")
    return ApiError(message if isinstance(message, str) else piece.name, piece.name or None)


def _arrival(response: HttpResponse, place: int, plain: bytes) -> int | None:
    """Say when a place of the plain body was there; None where the pieces were not noted."""
    if not response.chunks:
        return None
    coding = read_codings(response.headers)
    if plain is response.body or not coding:
        size = 0
        for chunk in response.chunks:
            size += chunk.size
            if size >= place:
                return chunk.at_us
        return response.chunks[-1].at_us
    ends = list(accumulate(chunk.size for chunk in response.chunks))
    # How much of the plain body a coded one gives grows with it, so halving finds the chunk.
    at = bisect_left(
        ends,
        place,
        key=lambda end: len(undo_what_came(response.body[:end], coding, MAX_STREAM) or b""),
    )
    return response.chunks[min(at, len(ends) - 1)].at_us
