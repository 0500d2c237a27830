"""An answer of ours."""

import json
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from ..exchange import Exchange, Headers, Request, Response
from ..policy.faults import Injection
from ..policy.refusal import injected_headers, is_grpc
from .none import NoFault, give_nothing


class Status(NoFault):
    """An answer with a status, which says where it comes from."""

    replaces = True

    def make_answer(
        self, request: Request, injection: Injection
    ) -> tuple[int, Headers, bytes] | None:
        """Give the answer."""
        rule = injection.rule
        headers = injected_headers(request, rule.label, rule.retry_after_s)
        if is_grpc(request):
            return 200, headers, b""
        message = f"Playhead injected a fault here: {rule.label}"
        error = {"message": message, "type": "playhead_injected", "code": "injected", "param": None}
        body = {
            "type": "error",
            "error": error,
            "message": message,
            "playhead": {"injected": rule.label},
        }
        return rule.status, headers, json.dumps(body).encode("ascii")

    def give(
        self, found: Exchange, told: Mapping[str, Any], name: str, tape: str
    ) -> Exchange | None:
        """Give it with our answer; without one in a log of an older version, which has none."""
        return replace(give_nothing(found), response=_read_answer(told), end_us=0)


def _read_answer(told: Mapping[str, Any]) -> Response | None:
    if "answer" not in told:
        return None
    status, headers, body = told["answer"]
    reason = HTTPStatus(status).phrase.encode() if status in set(HTTPStatus) else b""
    fields = tuple((bytes(one), bytes(value)) for one, value in headers)
    return Response(status, reason, "HTTP/1.1", fields, bytes(body), 0)
