"""What a model call can cost, estimated before it is sent, and where its answer does not state what it used.

1. Input: a token for three bytes of the body, its codings undone. Text in English has fewer. Data in base64 counts as an image.
2. Output: the most that the request allows, but not above twice what a call of the model was seen to use, or 4,096 where none was.
3. In all at least as much as the dearest call of the model so far.

A call may cost more than that. Caps say so. Of a body that cannot be read nothing can be estimated, not even by its size: gzip makes a
thousandth of a text. Such a call does not leave under a cap.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...tape.dialects import InferenceRequest, Usage, read_request
from ...tape.dialects.common.untrusted_json import find_json
from ...tape.exchange import HttpRequest, Request
from ...tape.policy.branch import ModelUse
from ...tape.policy.limits import NANO
from ...tape.records.content_coding import read_codings, undo_coding
from .call_cost import find_price
from .stated_usage import is_free

UNSEEN_OUTPUT = 4096
"""Tokens of output where no call of the model was seen."""
_BYTES_PER_TOKEN = 3
_BASE64 = re.compile(rb"[A-Za-z0-9+/=_-]{2048,}")
_IMAGE_TOKENS = 2000
_MOST_SHOWN = 40


class Estimate(NamedTuple):
    """What a call can cost."""

    model: str
    """As asked for."""
    nano_usd: int


def estimate_cost(
    request: HttpRequest,
    started_ns: int,
    known_use: Mapping[str, ModelUse],
    *,
    otherwise: Iterable[HttpRequest] = (),
    least_output: int = 0,
) -> Estimate | None:
    """Estimate what a call can cost; None where it is no model call, or its price is not known.

    started_ns: when it is asked, since prices change.
    known_use: by model, as asked for.
    otherwise: the request in the other ways that it can be taken; looked at where nobody knows it as it is.
    least_output: tokens that have come already.
    """
    asked = read_request(request)
    if asked is None or not asked.model:
        for other in otherwise:
            asked = read_request(other)
            if asked is not None and asked.model:
                request = other
                break
    if asked is None or not asked.model or is_free(request):
        return None
    seen = known_use.get(asked.model)
    usage = Usage(
        input_tokens=_count_input(_plain(request)),
        output_tokens=max(least_output, _find_output(asked, seen)),
    )
    price = find_price(request, asked.dialect, asked.model, usage, started_ns)
    dearest = seen.nano_usd if seen is not None else 0
    if price is None:
        return Estimate(asked.model, dearest) if dearest else None
    return Estimate(asked.model, max(round(price * NANO), dearest))


def find_unreadable(request: HttpRequest) -> str:
    """Say why nothing can be estimated of a model call whose body cannot be read; empty where it can, or where nothing is billed.

    What is no JSON, as an upload of sound, names no model here, and has no price to estimate.
    """
    if is_free(request):
        return ""
    spilled = isinstance(request, Request) and request.spilled is not None
    if spilled:
        return "its body is too large"
    coding = read_codings(request.headers)
    # One that holds a secret is stored with its coding undone.
    if find_json(request.body) is not None:
        return ""
    plain = undo_coding(request.body, coding) if coding else request.body
    if plain is None:
        return f"its body is no whole {coding.decode('latin-1')[:_MOST_SHOWN]}, or too large"
    if plain.lstrip()[:1] in (b"{", b"[") and find_json(plain) is None:
        return "its body is no JSON, or too large"
    return ""


def _plain(request: HttpRequest) -> bytes:
    plain = undo_coding(request.body, read_codings(request.headers))
    return request.body if plain is None else plain


def count_pieces(body: bytes) -> int:
    """Count the pieces of an event stream: each has a token or more."""
    return body.count(b"data:")


def _count_input(body: bytes) -> int:
    data = [len(one.group()) for one in _BASE64.finditer(body)]
    return (len(body) - sum(data)) // _BYTES_PER_TOKEN + len(data) * _IMAGE_TOKENS


def _find_output(asked: InferenceRequest, seen: ModelUse | None) -> int:
    expected = 2 * seen.output_tokens if seen is not None else UNSEEN_OUTPUT
    allowed = asked.sampling.max_tokens
    return expected if allowed is None else min(allowed, expected)
