"""A customer support agent: it looks up orders and refunds what went wrong.

    python -m playhead.examples.double_refund.agent

The environment names its services: OPENAI_BASE_URL, OPENAI_API_KEY, PAYMENTS_URL.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import httpx
from openai import OpenAI

MODEL = "gpt-4o-mini"
REFUND_TIMEOUT_S = float(os.environ.get("REFUND_TIMEOUT_S", "1.0"))
COMPLAINT = (
    "Order 1007 came with one of the three mugs broken. Please pay me back the 49.00 for it."
)
INSTRUCTIONS = "You help customers of a mug shop. Look up the order before you refund anything."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup_order",
            "description": "Get the payment of an order.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}},
                "required": ["order_id"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "refund",
            "description": "Pay back a part of a charge; amount in cents.",
            "parameters": {
                "type": "object",
                "properties": {"charge": {"type": "string"}, "amount": {"type": "integer"}},
                "required": ["charge", "amount"],
            },
        },
    },
]


class SupportAgent:
    """Talk to the model until it has nothing more to do."""

    def __init__(self, model: OpenAI, payments: httpx.Client) -> None:
        self.model = model
        self.payments = payments
        self.tools: dict[str, Callable[..., str]] = {
            "lookup_order": self.lookup_order,
            "refund": self.refund,
        }

    def lookup_order(self, order_id: str) -> str:
        """Get the charge of an order, as JSON."""
        return self.payments.get(f"/v1/charges/ch_{order_id}").text

    def refund(self, charge: str, amount: int) -> str:
        """Refund `amount` cents of a charge; the refund as JSON, or what went wrong."""
        form = {"charge": charge, "amount": amount}
        try:
            return self.payments.post("/v1/refunds", data=form, timeout=REFUND_TIMEOUT_S).text
        except httpx.TimeoutException:
            return json.dumps({"error": {"message": "the payment API timed out"}})

    def help(self, complaint: str) -> None:
        """Handle one complaint, from the first word to the last."""
        say("customer", complaint)
        messages: list[Any] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": complaint},
        ]
        while True:
            message = self.ask(messages)
            messages.append(message)
            say("agent", message["content"])
            if not message.get("tool_calls"):
                return
            for call in message["tool_calls"]:
                result = self.use(**call["function"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    def ask(self, messages: list[Any]) -> dict[str, Any]:
        """Get the model's next message, put together from its stream."""
        text = ""
        calls: dict[int, dict[str, Any]] = {}
        stream: Any = self.model.chat.completions.create(
            model=MODEL,
            messages=messages,
            tools=TOOLS,  # type: ignore[arg-type]  # plain dicts, as in the SDK's examples
            stream=True,
        )
        for chunk in stream:
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for piece in delta.tool_calls or ():
                if piece.id:
                    function = {"name": piece.function.name, "arguments": ""}
                    calls[piece.index] = {"id": piece.id, "type": "function", "function": function}
                calls[piece.index]["function"]["arguments"] += piece.function.arguments or ""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        return message | ({"tool_calls": list(calls.values())} if calls else {})

    def use(self, name: str, arguments: str) -> str:
        """Call the tool that the model asked for."""
        result = self.tools[name](**json.loads(arguments))
        say("tool", f"{name} {arguments} -> {outline(result)}")
        return result


def outline(result: str) -> str:
    """Shorten a tool's result to what matters in the log."""
    body = json.loads(result)
    return str(body["error"]["message"] if "error" in body else f"{body['id']} {body['status']}")


def say(who: str, text: str) -> None:
    """Write one line of the log."""
    print(f"{who:<9} {text}", flush=True)


def main(kind: type[SupportAgent] = SupportAgent) -> None:
    """Help one customer, with the services that the environment names."""
    with OpenAI(timeout=30) as model, httpx.Client(base_url=os.environ["PAYMENTS_URL"]) as payments:
        kind(model, payments).help(COMPLAINT)


if __name__ == "__main__":
    main()
