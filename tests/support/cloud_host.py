"""A host that stands in for clouds: Azure Blob, Cloud Storage, S3, Stripe, Anthropic; `answer` is its one handler.

An answer depends on each field by which its client tells requests apart, so that a wrong answer of a replay shows.
"""

import hashlib
import json
import re
from base64 import b64encode

from aiohttp import web

WHEN = "Mon, 02 Nov 2026 10:00:00 GMT"
BLOB = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(512))
"""16 KiB, no two pieces of which are equal."""
_CASTAGNOLI = 0x82F63B78


def _table() -> list[int]:
    rows = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (_CASTAGNOLI if number & 1 else 0)
        rows.append(number)
    return rows


_TABLE = _table()


def crc32c(data: bytes) -> str:
    """Give the checksum that Cloud Storage names, in base64."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return b64encode((value ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()


def _tag(*parts: object) -> str:
    return f'"{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"'


class CloudHost:
    """What the clouds have been sent."""

    def __init__(self) -> None:
        self._uploads: dict[str, bytearray] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Say what the client of a cloud wants to hear."""
        sent = await request.read()
        first = request.path.split("/")[1]
        if first == "azure":
            return _azure(request, sent)
        if first in ("storage", "upload", "download"):
            return self._storage(request, sent)
        if first == "s3":
            return _s3(request, sent)
        if first == "stripe":
            return _stripe(request)
        return _anthropic(request)

    def _storage(self, request: web.Request, sent: bytes) -> web.Response:
        if request.path.startswith("/download/"):
            headers = {"x-goog-hash": f"crc32c={crc32c(BLOB)}", "x-goog-generation": "7"}
            return _piece(request, request.headers.get("range", ""), headers)
        if not request.path.startswith("/upload/"):
            return web.json_response({"kind": "storage#bucket", "name": "b", "location": "EU"})
        if request.method == "POST":
            number = f"upload-{len(self._uploads) + 1:024d}"
            self._uploads[number] = bytearray()
            place = f"{request.url.origin()}{request.path}?uploadType=resumable&upload_id={number}"
            return web.Response(headers={"location": place})
        kept = self._uploads[request.query["upload_id"]]
        kept += sent
        if request.headers["content-range"].endswith(f"/{len(kept)}"):
            asked = dict(request.query)
            told = {"name": "o.bin", "bucket": "b", "size": str(len(kept)), "asked": asked}
            return web.json_response({**told, "crc32c": crc32c(bytes(kept)), "generation": "7"})
        return web.Response(status=308, headers={"range": f"bytes=0-{len(kept) - 1}"})


def _piece(request: web.Request, asked: str, headers: dict[str, str]) -> web.Response:
    """Give a piece of the blob, or all of it."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
    kind = "application/octet-stream"
    if found is None:
        return web.Response(body=BLOB, headers=headers, content_type=kind)
    start, end = int(found[1]), min(int(found[2] or len(BLOB)), len(BLOB) - 1)
    headers = {**headers, "content-range": f"bytes {start}-{end}/{len(BLOB)}"}
    return web.Response(body=BLOB[start : end + 1], status=206, headers=headers, content_type=kind)


def _azure(request: web.Request, sent: bytes) -> web.Response:
    headers = {
        "etag": _tag(request.path, sent),
        "last-modified": WHEN,
        "x-ms-version": request.headers["x-ms-version"],
        "x-ms-blob-type": "BlockBlob",
    }
    if request.method == "PUT":
        return web.Response(status=201, headers=headers)
    headers["etag"] = _tag(request.path)
    return _piece(request, request.headers.get("x-ms-range", ""), headers)


def _s3(request: web.Request, sent: bytes) -> web.Response:
    names = ("x-amz-copy-source", "if-match", "if-none-match", "x-amz-expected-bucket-owner")
    tag = _tag(request.path, sent, *(request.headers.get(name) for name in names))
    if "x-amz-copy-source" in request.headers:
        when = "2026-11-02T10:00:00.000Z"
        told = f"<LastModified>{when}</LastModified><ETag>{tag}</ETag>"
        return web.Response(
            text=f"<CopyObjectResult>{told}</CopyObjectResult>", content_type="application/xml"
        )
    headers = {"etag": tag, "last-modified": WHEN}
    if request.method == "PUT":
        return web.Response(headers=headers)
    return _piece(request, request.headers.get("range", ""), headers)


def _stripe(request: web.Request) -> web.Response:
    account = request.headers.get("stripe-account", "platform")
    if request.path.endswith("/balance"):
        amount = int(hashlib.sha256(account.encode()).hexdigest()[:4], 16)
        funds = [{"amount": amount, "currency": "eur"}]
        return web.json_response({"object": "balance", "available": funds})
    return web.json_response({"id": f"re_{account}", "object": "refund", "amount": 4900})


def _anthropic(request: web.Request) -> web.Response:
    text = json.dumps(
        [request.headers.get(name) for name in ("anthropic-beta", "anthropic-version")]
    )
    return web.json_response(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-fake",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
