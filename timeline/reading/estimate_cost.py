"""What a model call can cost, estimated before it is sent, and where its answer does not state what it used.

1. Input: a token for three bytes of the body. Text in English has fewer. Data in base64 counts as an image.
2. Output: the most that the request allows, but not above twice what a call of the model was seen to use, or 4,096 where none was.
3. In all at least as much as the dearest call of the model so far.

A call may cost more than that. Caps say so.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...tape.dialects import InferenceRequest, Usage, read_request
from ...tape.exchange import HttpRequest
from ...tape.policy.branch import ModelUse
from ...tape.policy.limits import NANO
from .call_cost import find_price
from .stated_usage import is_free

UNSEEN_OUTPUT = 4096
"""Tokens of output where no call of the model was seen."""
_BYTES_PER_TOKEN = 3
_BASE64 = re.compile(rb"[A-Za-z0-9+/=_-]{2048,}")
_IMAGE_TOKENS = 2000


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
        input_tokens=_count_input(request.body),
        output_tokens=max(least_output, _find_output(asked, seen)),
    )
    price = find_price(request, asked.dialect, asked.model, usage, started_ns)
    dearest = seen.nano_usd if seen is not None else 0
    if price is None:
        return Estimate(asked.model, dearest) if dearest else None
    return Estimate(asked.model, max(round(price * NANO), dearest))


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
