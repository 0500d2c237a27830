"""Recorded traffic of many services is read whole, with usage as it is stated; where a corpus is there."""

import base64
import gzip
import os
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import playhead
from playhead.tape.dialects import Usage, find_dialect, read_request, read_response
from playhead.tape.dialects.framing.aws_event_stream import read_frames
from playhead.tape.exchange import Chunk, Headers, Request, Response
from playhead.tape.records.content_coding import undo_coding

ROOT = Path(playhead.__file__).resolve().parent
CORPUS = ROOT.parent / "shared" / "corpus"
NAMES = (
    "coding",
    "crewai",
    "langsmith",
    "llm-anthropic",
    "logfire",
    "openllmetry",
    "otel",
    "tickets",
)
_LONG = ("coding", "tickets")
"""Whose requests grow and grow: without full counts every tenth is read."""
needs_corpus = pytest.mark.skipif(
    not (CORPUS / "expand.py").exists(), reason="no corpus beside the repository"
)

OTHERS = (
    # Files, images, sound and vectors of other kinds
    "/v1/files",
    "/v1/images/generations",
    "/v1/audio/transcriptions",
    ":predict",
    "/api/show",
    # OpenAI's assistants
    "/v1/assistants",
    "/v1/threads",
    # no models at all
    "/token",
    "/opamp",
    "/v2/query",
    "/read-token-info",
    "/tracing/batches",
    "/agent-card.json",
)
"""What no dialect is for. Agents of another protocol stand at the root of a host."""


def _headers(headers: Any) -> Headers:
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple(
        (name.encode(), str(value).encode())
        for name, values in pairs
        for value in (values if isinstance(values, list) else [values])
    )


def _exchanges(name: str) -> Iterator[tuple[str, Request, Response]]:
    # Not imported: that would leave compiled code beside it.
    expand = runpy.run_path(str(CORPUS / "expand.py"))
    for run, seq, meta, asked, answered in expand["exchanges"](name):
        url = meta["path"]
        if url.startswith("/"):
            url = f"https://{dict(meta['rq'])['host']}{url}"
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        host = parts.hostname or ""
        request = Request(
            meta["method"],
            parts.scheme,
            host,
            port,
            target,
            "HTTP/1.1",
            _headers(meta["rq"]),
            asked,
        )
        chunks = (Chunk(2000, len(answered)),) if answered else ()
        response = Response(
            meta["status"], b"", "HTTP/1.1", _headers(meta["rs"]), answered, 1000, chunks
        )
        yield f"{run} {seq}", request, response


# ---- usage, found in another way: by the last number beside each name ---------------------------------

_STATED = {
    "input_tokens": (
        *("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens"),
        *("prompt_eval_count", "prompt_token_count", "inputTextTokenCount"),
    ),
    "output_tokens": (
        *("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens"),
        *("eval_count", "generation_token_count", "totalOutputTextTokenCount", "tokenCount"),
    ),
    "cached_read_tokens": (
        *("cached_tokens", "cache_read_input_tokens", "cachedContentTokenCount"),
        *("cacheReadInputTokens", "cacheReadInputTokenCount", "prompt_cache_hit_tokens"),
    ),
    "cached_write_tokens": (
        *("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount"),
    ),
    "reasoning_tokens": ("reasoning_tokens", "thoughtsTokenCount", "thinking_tokens"),
    "total_tokens": ("total_tokens", "totalTokenCount", "totalTokens"),
}
_BEDROCK = {"cached_read": "cache-read-input", "cached_write": "cache-write-input"}


def _plain(response: Response) -> str:
    coding = response.header(b"content-encoding")
    body = undo_coding(response.body, coding) if coding else None
    body = response.body if body is None else body
    frames = [frame.payload for frame in read_frames(body)]
    if frames:
        inner = [re.search(rb'"bytes":"([^"]*)"', frame) for frame in frames]
        frames = [
            base64.b64decode(found[1]) if found else frame
            for found, frame in zip(inner, frames, strict=True)
        ]
        body = b"\n".join(frames)
    return body.decode("utf-8", "replace")


def _stated(text: str, names: tuple[str, ...]) -> list[int]:
    found = []
    for name in names:
        numbers = re.findall(rf'"{name}"\s*:\s*(\d+(?:\.0)?)\b', text)
        if name == "tokenCount" and '"outputText"' not in text:
            continue  # Gemini's, by modality
        if numbers:
            found.append(int(float(numbers[-1])))
    return found


def _check_usage(usage: Usage | None, response: Response, where: str) -> bool:
    """Compare what was read with what stands there; True where something does."""
    text = _plain(response)
    any_stated = False
    for field, names in _STATED.items():
        stated = _stated(text, names)
        read = getattr(usage, field) if usage is not None else None
        any_stated |= bool(stated)
        if stated:
            assert read in stated, (where, field, read, stated)
        else:
            # Bedrock's own figures, in the head or in the last frame
            figure = field.removesuffix("_tokens")
            named = _BEDROCK.get(figure, figure)
            header = response.header(b"x-amzn-bedrock-%b-token-count" % named.encode())
            metric = re.findall(rf'"{figure}TokenCount"\s*:\s*(\d+)', text)
            known: set[int | None] = {int(value) for value in (header, *metric) if value}
            assert read in (known or {None}), (where, field, read)
    return any_stated


@needs_corpus
@pytest.mark.parametrize("name", NAMES)
def test_every_payload_is_read_with_usage_as_stated(name: str) -> None:
    """All of it but what no dialect is for; `-s` shows how much, by dialect."""
    counts: Counter[str] = Counter()
    step = 1 if name not in _LONG or os.environ.get("PLAYHEAD_FULL") else 10
    for where, request, response in islice(_exchanges(name), 0, None, step):
        dialect = find_dialect(request)
        if dialect is None:
            assert any(part in request.path for part in OTHERS) or request.path == "/", where
            continue
        counts[dialect.name] += 1
        asked, found = read_request(request), read_response(request, response)
        assert found is not None, where
        assert asked is not None or not request.body, where
        if response.status >= 400:
            assert found.error is not None, where
            assert found.usage is None, where
            continue
        assert found.complete, where
        counts["with usage"] += _check_usage(found.usage, response, where)
        if dialect.name != "openai-embeddings":
            assert found.choices or found.error, where
            assert all(choice.message.parts or choice.finish for choice in found.choices), where
    assert counts["with usage"] > 0
    print(name, dict(counts))


@needs_corpus
def test_the_corpus_is_all_of_it() -> None:
    """A new file in it would be read by nobody."""
    found = {path.name.split(".")[0] for path in CORPUS.glob("*.jsonl.gz")}
    assert found == set(NAMES)
    for path in CORPUS.glob("*.jsonl.gz"):
        with gzip.open(path) as file:
            assert file.read(1) == b"{"
