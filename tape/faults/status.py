"""An answer of ours."""

import json

from ..exchange import Headers, Request
from ..policy.faults import Injection
from ..policy.refusal import injected_headers, is_grpc
from .none import NoFault


class Status(NoFault):
    """An answer with a status, which says where it comes from."""

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
