"""Agents and the services that they ask, with a fault that can be planted into one answer; what else is answered differs from run to run.

    python -m playhead.tests.support.planted_agent URL KIND STEPS

`reads` reads things one after the other, whose texts differ in each recording. `talk` asks a model which thing to look up next, and pays
what one costs. `choice` lets the model say where to look. `summary` reads things, and has the model judge all of them. Each ends with 3
where it came upon the fault.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .refund_agent import CHAT, send_by_urllib

if TYPE_CHECKING:
    from aiohttp import web

KINDS = ("reads", "talk", "choice")
"""Those whose tapes alone can tell."""
Send = Callable[[str, str, Any], tuple[int, Any]]
BAD = 3
_PRICE, _WRONG = 10, 99


@dataclass
class World:
    """The services. What they answer differs by `seed`, and at one place by the fault."""

    kind: str = "reads"
    seed: int = 0
    fault: int = 0
    """The step whose answer is wrong; 0 for none."""
    steps: int = 1

    def _word(self, *parts: object) -> str:
        told = repr((self.seed, self.kind, *parts)).encode()
        return hashlib.blake2b(told, digest_size=5).hexdigest()

    async def serve(self, request: "web.Request") -> "web.Response":
        """Answer as the services do."""
        from aiohttp import web  # which the agent does without: it would take most of its start

        asked = json.loads(await request.read() or b"null")
        if request.path == CHAT:
            return web.json_response(self._model(asked["messages"]))
        if request.path.startswith("/items/"):
            return web.json_response(self._item(int(request.path.rpartition("/")[2])))
        return web.json_response({"id": "re_1", "paid": asked["amount"]})

    def _item(self, number: int) -> dict[str, Any]:
        wrong = number == self.fault
        if self.kind in ("reads", "summary"):
            return {"text": f"thing {self._word(number)}", "fits": not wrong}
        price = _WRONG if wrong and self.kind == "talk" else _PRICE
        return {"id": f"item_{number}{self._word(number)}", "price": price}

    def _model(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        told = [json.loads(one["content"]) for one in messages if one["role"] == "tool"]
        last = messages[-1]
        if self.kind == "summary":
            return _say("wrong" if '"fits": false' in str(last["content"]) else "right")
        if any("paid" in one for one in told):
            return _say("done")
        number = len(told) + 1
        words = f"let me look, {self._word('words', number)}"
        if number <= self.steps:
            where = "us" if number == self.fault and self.kind == "choice" else "eu"
            return _call(words, "look", {"item": number, "where": where})
        if self.kind == "choice":
            return _say("done")
        return _call(words, "pay", {"amount": max(one["price"] for one in told)})


def _call(text: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{name}", "type": "function", "function": function}
    return _whole({"role": "assistant", "content": text, "tool_calls": [call]}, "tool_calls")


def _say(text: str) -> dict[str, Any]:
    return _whole({"role": "assistant", "content": text}, "stop")


def _whole(message: dict[str, Any], why: str) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": why}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    return {**head, "choices": [choice]}


def run(send: Send, kind: str, steps: int) -> int:
    """Run the agent; give its exit code."""
    return _read(send, kind, steps) if kind in ("reads", "summary") else _talk(send)


def _read(send: Send, kind: str, steps: int) -> int:
    found = [send("GET", f"/items/{number}", None)[1] for number in range(1, steps + 1)]
    if kind == "reads":
        return 0 if all(one.get("fits") for one in found) else BAD
    said = send("POST", CHAT, _body([{"role": "user", "content": json.dumps(found)}]))[1]
    if "choices" not in said:
        return 1
    return 0 if said["choices"][0]["message"]["content"] == "right" else BAD


def _talk(send: Send) -> int:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "buy it"}]
    code = 0
    while True:
        status, said = send("POST", CHAT, _body(messages))
        if status != 200:
            return 1
        message = said["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return code
        for call in message["tool_calls"]:
            given = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "pay":
                code = BAD if given["amount"] == _WRONG else code
                result = send("POST", "/v1/refunds", given)[1]
            else:
                code = BAD if given["where"] == "us" else code
                result = send("GET", f"/items/{given['item']}", None)[1]
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})  # fmt: skip


def _body(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": messages}


if __name__ == "__main__":
    base, wanted, count = sys.argv[1:4]
    sys.exit(run(lambda method, path, body: send_by_urllib(method, base + path, body), wanted, int(count)))  # fmt: skip
