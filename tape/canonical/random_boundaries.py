"""Random markers inside bodies: boundaries of nested multipart bodies, signatures of the chunks of an upload, ids of batched calls.

Pure. What does not read as it should stays as it is, and counts.

Source: RFC 2046 section 5.1 for multipart, RFC 5322 section 2.2.3 for folded lines; "Signature calculations for the
Authorization header: transferring payload in multiple chunks" of Amazon S3 for `aws-chunked`.
"""

import re
from collections.abc import Callable

from .multipart_delimiters import replace_delimiters

INNER = b"\x00inner"
"""Begins what stands for a boundary further in, with its depth."""
_DEEPEST = 5

_LINE_END = re.compile(rb"[ \t]*\r?\n")
_BLANK = re.compile(rb"\A\r?\n|\r?\n\r?\n")
_TYPE = re.compile(rb"^content-type:((?:[^\r\n]|\r?\n[ \t])*)", re.IGNORECASE | re.MULTILINE)
_MAYBE = re.compile(
    rb"^content-type:\s*(?:multipart/|message/rfc822|application/http)",
    re.IGNORECASE | re.MULTILINE,
)

_DRAWN = re.compile(
    rb"^(x-goog-api-client:[^\r\n]*\bgccl-invocation-id/|x-goog-gcs-idempotency-token:[ ]*)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE | re.MULTILINE,
)
"""Header fields in the parts of a batch that google-cloud-storage draws for each call; they are noise or linked outside of a body."""

Boundary = Callable[[bytes], tuple[bytes, bytes]]
"""Gives the media type of a `content-type` and the boundary in it, or nothing."""


def without_inner(bare: bytes, mark: bytes, boundary: Boundary) -> bytes:
    """Put constants in the place of the boundaries that the parts of a multipart body declare for themselves.

    mark: what stands for the boundary of the body by now.
    """
    if INNER in bare or _MAYBE.search(bare) is None:
        return bare
    return _parts(bare, mark, boundary, 1)


def _parts(bare: bytes, mark: bytes, boundary: Boundary, depth: int) -> bytes:
    line = b"--" + mark
    first, *parts = bare.split(line)
    made = [first]
    for part in parts:
        end = _LINE_END.match(part)
        at = end.end() if end is not None else len(part)
        made.append(part[:at] + _part(part[at:], boundary, depth))
    return line.join(made)


def _part(part: bytes, boundary: Boundary, depth: int) -> bytes:
    """Give a part, its head and what follows it, without what is drawn at random in it."""
    blank = _BLANK.search(part)
    if blank is None or not blank.start() or depth > _DEEPEST:
        return part
    head, content = part[: blank.end()], part[blank.end() :]
    found = _TYPE.search(head)
    if found is None:
        return part
    media, inner = boundary(re.sub(rb"\r?\n", b"", found[1]))
    if media == b"message/rfc822":
        # A letter: its own head stands where a part's would.
        return head + _part(content, boundary, depth + 1)
    if media == b"application/http":
        # A whole request, as in the batches of Google's APIs.
        ends = _BLANK.search(content)
        at = ends.end() if ends is not None else len(content)
        return head + _DRAWN.sub(rb"\1", content[:at]) + content[at:]
    if not inner or not media.startswith(b"multipart/") or inner not in found[1]:
        return part
    mark = b"%b%d" % (INNER, depth)
    marked = replace_delimiters(content, inner, mark)
    if marked is None:
        return part
    content = marked
    head = head[: found.start(1)] + found[1].replace(inner, mark, 1) + head[found.end(1) :]
    return head + _parts(content, mark, boundary, depth + 1)


_CHUNK = re.compile(rb"([0-9a-fA-F]{1,16})(;chunk-signature=[0-9a-f]{64})?\r\n")
_TRAILER_SIGNATURE = re.compile(
    rb"^(x-amz-trailer-signature:)[0-9a-f]{64}", re.IGNORECASE | re.MULTILINE
)


def without_signatures(body: bytes) -> bytes:
    """Leave the signatures out of an `aws-chunked` body: its data, its chunks and its trailer stay."""
    kept, at = [], 0
    while True:
        found = _CHUNK.match(body, at)
        if found is None:
            return body
        size = int(found[1], 16)
        end = found.end() + size
        kept.append(found[1])
        if size == 0:
            kept.append(_TRAILER_SIGNATURE.sub(rb"\1", body[found.end() - 2 :]))
            return b"".join(kept)
        if body[end : end + 2] != b"\r\n":
            return body
        kept.append(body[found.end() - 2 : end + 2])
        at = end + 2
