"""An agent of the double refund that puts time and chance into all it asks.

    python -m playhead.tests.support.punctual LOG

It writes each request that it sends, byte for byte, to LOG.
"""

import os
import random
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import httpx
from openai import OpenAI

from ...examples.double_refund.agent import COMPLAINT, SupportAgent

NAP_S = 2.0
"""How long it sleeps before it pays again, and between looks at the clock until then."""


class Punctual(SupportAgent):
    """Tells the model what time it is, gives each refund a key, and waits before it pays again."""

    tries = 0

    def refund(self, charge: str, amount: int) -> str:
        if self.tries:
            until = time.monotonic() + NAP_S
            while time.monotonic() < until:
                time.sleep(NAP_S / 4)
        self.tries += 1
        self.payments.headers["idempotency-key"] = str(uuid.uuid4())
        self.payments.headers["x-asked-at"] = datetime.now(UTC).isoformat()
        return super().refund(charge, amount)


def _main(log: Path) -> None:
    def note(request: httpx.Request) -> None:
        lines = [f"{request.method} {request.url}", *map(repr, request.headers.raw)]
        with open(log, "ab") as file:
            file.write("\n".join(lines).encode() + b"\n\n" + request.read() + b"\n")

    hooks = {"request": [note]}
    with (
        httpx.Client(event_hooks=hooks) as client,
        OpenAI(timeout=30, http_client=client) as model,  # type: ignore[arg-type]  # takes it, and says httpx2
        httpx.Client(base_url=os.environ["PAYMENTS_URL"], event_hooks=hooks) as payments,
    ):
        words = f"It is {time.ctime()}; ticket {random.randrange(10**9)}. {COMPLAINT}"
        Punctual(model, payments).help(words)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
