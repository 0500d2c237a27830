"""The tokens of a model call that no dialect reads: images, audio, rerankings, embeddings of other providers ...

1. Which model it was is as the request or the answer states it.
2. Tokens are as the answer states them, by the names of the provider that it can be. What they cost is not known: those of images and
   audio have prices of their own.
3. Who states none was paid for all the same; only what is known to be free is free.

Source: OpenAI API reference, "Images", "Audio", "Moderations"; Gemini API reference, "Embeddings"; Cohere's, Voyage's and Jina's API
references.
"""

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

from ...tape.dialects import (
    Usage,
    anthropic_messages,
    cohere,
    gemini,
    openai_chat,
    openai_responses,
)
from ...tape.dialects.common.untrusted_json import (
    Json,
    JsonObject,
    as_count,
    as_object,
    as_text,
    find_json,
    first_set,
)
from ...tape.dialects.framing.split_stream import Framing, find_framing, read_pieces
from ...tape.dialects.reader import MAX_PIECES, MAX_STREAM
from ...tape.exchange import HttpRequest, HttpResponse
from ...tape.records.content_coding import read_codings, undo_coding, undo_what_came

_IN_PATH = re.compile(r"/(?:models?|deployments)/([^/:?]+)")
_FREE = (
    *("/count_tokens", ":counttokens", ":computetokens", "/input_tokens"),
    *("/tokenize", "/detokenize"),
)
_FREE_AT_OPENAI = "/v1/moderations"


def is_free(request: HttpRequest) -> bool:
    """Say whether nothing is billed for a request to a model: it has tokens counted, or asks OpenAI to moderate a text."""
    path = request.path.rstrip("/").lower()
    is_openai = request.host.lower() == "api.openai.com"
    return path.endswith(_FREE) or (is_openai and path == _FREE_AT_OPENAI)


def find_stated_model(request: HttpRequest, response: HttpResponse | None) -> str | None:
    """Find the model that an answer or its request names, in its body or in its path."""
    bodies = [_request_tree(request)]
    if response is not None and response.spilled is None:
        bodies.insert(0, next(_answer_trees(response), {}))
    for body in bodies:
        model = as_text(body.get("model"))
        if model:
            return model
    found = _IN_PATH.search(request.path)
    return unquote(found[1]) if found is not None else None


def find_stated_usage(response: HttpResponse) -> Usage | None:
    """Find the tokens that an answer states, in a stream what is stated last; None where it states none."""
    if response.spilled is not None or response.status >= 400:
        return None
    usage = None
    for tree in _answer_trees(response):
        usage = _read(tree) or usage
    return usage


def _read(tree: JsonObject) -> Usage | None:
    wholes = [tree, *(as_object(tree.get(name)) for name in ("response", "message"))]
    body = first_set([one.get("usage") for one in wholes])
    is_beside = any(name.startswith("cache_") for name in as_object(body))
    told = (
        anthropic_messages.read_usage(body, None) if is_beside else None,
        openai_responses.read_usage(body),
        openai_chat.read_usage(body),
        gemini.read_usage(tree.get("usageMetadata")),
        cohere.read_usage(tree.get("meta")),
        Usage(as_count(tree.get("prompt_eval_count")), as_count(tree.get("eval_count"))),
    )
    stated = [one for one in told if one is not None and one.count().is_stated]
    # A total alone says less than a reader of the provider's own names does.
    stated.sort(key=lambda one: (one.input_tokens, one.output_tokens) == (None, None))
    return stated[0] if stated else None


def _request_tree(request: HttpRequest) -> JsonObject:
    if request.spilled is not None:
        return {}
    body, coding = request.body, read_codings(request.headers)
    if coding:
        plain = undo_coding(body, coding, MAX_STREAM)
        body = body if plain is None else plain
    return as_object(find_json(body))


def _answer_trees(response: HttpResponse) -> Iterator[JsonObject]:
    """Give the answer, or the pieces of a stream."""
    body, coding = response.body, read_codings(response.headers)
    if coding:
        plain = undo_what_came(body, coding, MAX_STREAM)
        body = body if plain is None else plain
    if len(body) > MAX_STREAM:
        return
    framing = find_framing(response.header(b"content-type") or b"", body)
    for piece in islice(read_pieces(framing, body), MAX_PIECES):
        if framing is Framing.WHOLE or b"sage" in piece.data or b"model" in piece.data:
            tree: Json = find_json(piece.data)
            if isinstance(tree, dict):
                yield tree
