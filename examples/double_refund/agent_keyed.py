"""The support agent after the incident, mended another way: it names each refund, and repeats it under the same name.

    python -m playhead.examples.double_refund.agent_keyed

A payment API that honours idempotency keys answers the second request with the first refund. Only the refund differs from `agent`.
"""

import json
import uuid

import httpx
from openai import OpenAI

from .agent import REFUND_TIMEOUT_S, SupportAgent, main


class KeyedAgent(SupportAgent):
    """Never pay twice for want of an answer: a refund has one idempotency key, however often it is asked for."""

    def __init__(self, model: OpenAI, payments: httpx.Client) -> None:
        super().__init__(model, payments)
        self.keys: dict[tuple[str, int], str] = {}

    def refund(self, charge: str, amount: int) -> str:
        """Refund `amount` cents of a charge; the refund as JSON, or what went wrong."""
        key = self.keys.setdefault((charge, amount), str(uuid.uuid4()))
        form, headers = {"charge": charge, "amount": amount}, {"Idempotency-Key": key}
        try:
            return self.payments.post(
                "/v1/refunds", data=form, headers=headers, timeout=REFUND_TIMEOUT_S
            ).text
        except httpx.TimeoutException:
            return json.dumps({"error": {"message": "the payment API timed out"}})


if __name__ == "__main__":
    main(KeyedAgent)
