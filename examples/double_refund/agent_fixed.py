"""The support agent after the incident: a refund that was not answered is looked for, not repeated.

    python -m playhead.examples.double_refund.agent_fixed

Only the refund differs; the environment is that of `agent`.
"""

import json

import httpx
from openai import OpenAI

from .agent import SupportAgent, main, say


class Unsure(Exception):
    """Nobody can tell whether a refund happened: a human has to look."""


class CarefulAgent(SupportAgent):
    """Never pay twice for want of an answer."""

    def __init__(self, model: OpenAI, payments: httpx.Client) -> None:
        super().__init__(model, payments)
        self.unanswered: set[tuple[str, int]] = set()

    def refund(self, charge: str, amount: int) -> str:
        """Refund, unless an earlier try that timed out went through after all.

        Raises: Unsure, if that cannot be found out.
        """
        if (charge, amount) in self.unanswered:
            earlier = self.find_refund(charge, amount)
            if earlier:
                return earlier
        result = super().refund(charge, amount)
        if "timed out" in result:
            self.unanswered.add((charge, amount))
        return result

    def find_refund(self, charge: str, amount: int) -> str | None:
        """Ask the payment API for a refund of this amount, as JSON."""
        try:
            response = self.payments.get("/v1/refunds", params={"charge": charge})
            response.raise_for_status()
            refunds = response.json()["data"]
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise Unsure(f"refunds of {charge} cannot be listed") from error
        return next((json.dumps(found) for found in refunds if found["amount"] == amount), None)

    def help(self, complaint: str) -> None:
        """Handle one complaint, or hand it over."""
        try:
            super().help(complaint)
        except Unsure as unsure:
            say("unsure", str(unsure))
            say("agent", "I cannot see whether your refund went through. A colleague will look.")


if __name__ == "__main__":
    main(CarefulAgent)
