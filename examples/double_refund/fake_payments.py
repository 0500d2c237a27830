"""A payment API on loopback that does what it is told at once, and says so too late.

    python -m playhead.examples.double_refund.fake_payments --port 0 --delay 2.5

The first refund of a charge stands in the ledger the moment it is asked for, and is answered `--delay`
seconds later; further ones are answered promptly. That is how a slow day looks from outside: a client
that gives up in between cannot know that it succeeded. An `Idempotency-Key` is honoured, for clients
that send one.

Shapes: Stripe API reference, "Charges", "Refunds", "Idempotent requests"; amounts are in cents.
"""

import argparse
import asyncio
import math
from typing import Any

from aiohttp import web

from .serving import serve

CREATED = 1_760_000_000
"""Seconds since the epoch; the same for every object, so that runs can be compared."""
DELAY_S = 2.5

_CHARGES: dict[str, dict[str, Any]] = {
    "ch_1007": {"amount": 14700, "currency": "usd", "description": "Order 1007: three mugs"},
}


class Payments:
    """Charges, the ledger of refunds, and the habit of answering late."""

    def __init__(self, delay_s: float = DELAY_S) -> None:
        self._delay_s = delay_s
        self._refunds: list[dict[str, Any]] = []
        self._by_key: dict[str, dict[str, Any]] = {}

    def make_app(self) -> web.Application:
        """Make the application that serves this ledger."""
        app = web.Application()
        app.router.add_get("/v1/charges/{id}", self._charge)
        app.router.add_get("/v1/refunds", self._list)
        app.router.add_post("/v1/refunds", self._refund)
        app.router.add_get("/ledger", self._ledger)
        return app

    async def _charge(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        if name not in _CHARGES:
            return _error(404, f"No such charge: '{name}'")
        refunded = sum(refund["amount"] for refund in self._of(name))
        charge = {"id": name, "object": "charge", "created": CREATED, "status": "succeeded"}
        return web.json_response(charge | _CHARGES[name] | {"amount_refunded": refunded})

    async def _list(self, request: web.Request) -> web.Response:
        """List refunds, newest first."""
        charge = request.query.get("charge")
        found = self._of(charge) if charge else self._refunds
        listing = {"object": "list", "url": "/v1/refunds", "has_more": False}
        return web.json_response(listing | {"data": found[::-1]})

    async def _refund(self, request: web.Request) -> web.Response:
        fields = await _fields(request)
        charge = str(fields.get("charge", ""))
        if charge not in _CHARGES:
            return _error(404, f"No such charge: '{charge}'")
        key = request.headers.get("Idempotency-Key", "")
        if key and key in self._by_key:
            return web.json_response(self._by_key[key])
        earlier = self._of(charge)
        left = _CHARGES[charge]["amount"] - sum(refund["amount"] for refund in earlier)
        try:
            amount = int(fields.get("amount", left))
        except (TypeError, ValueError):
            return _error(400, "Invalid integer: amount")
        if not 0 < amount <= left:
            return _error(
                400, f"Refund amount ({amount}) is not between 1 and what is left ({left})"
            )
        refund = {
            "id": f"re_{len(self._refunds) + 1}",
            "object": "refund",
            "amount": amount,
            "charge": charge,
            "created": CREATED,
            "currency": _CHARGES[charge]["currency"],
            "status": "succeeded",
        }
        self._refunds.append(refund)
        if key:
            self._by_key[key] = refund
        if not earlier:
            await asyncio.sleep(self._delay_s)
        return web.json_response(refund)

    async def _ledger(self, _request: web.Request) -> web.Response:
        """Show the truth; for whoever checks the story, never asked by an agent."""
        return web.json_response({"refunds": self._refunds})

    def _of(self, charge: str) -> list[dict[str, Any]]:
        return [refund for refund in self._refunds if refund["charge"] == charge]


async def _fields(request: web.Request) -> dict[str, Any]:
    """Read a body as JSON or as a form, by its content type; anything else has no fields."""
    if request.content_type != "application/json":
        return dict(await request.post())
    try:
        value = await request.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _error(status: int, message: str) -> web.Response:
    error = {"type": "invalid_request_error", "message": message}
    return web.json_response({"error": error}, status=status)


def _seconds(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(text)
    return value


def main() -> None:
    """Run the payment API until a signal ends it."""
    parser = argparse.ArgumentParser(description="A payment API that succeeds and answers late.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument(
        "--delay",
        type=_seconds,
        default=DELAY_S,
        metavar="SECONDS",
        help="how late a charge's first refund is answered (default: %(default)s)",
    )
    arguments = parser.parse_args()
    serve(Payments(arguments.delay).make_app(), arguments.port)


if __name__ == "__main__":
    main()
