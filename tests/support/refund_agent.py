"""A scripted support agent, and the shop and the model that it asks: what it does follows from what it is answered.

    python -m playhead.tests.support.refund_agent URL

Its tape: 1 the model, 2 the order, 3 the model, 4 the refund (an effect), 5 the model.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

SYSTEM = "You refund orders."
CAREFUL = "You are careful: list the refunds first."
"""A system prompt under which the model lists refunds before it makes one."""
CHAT = "/v1/chat/completions"
Send = Callable[[str, str, Any], tuple[int, Any]]
"""(method, path, body or None) -> status and what was answered, as JSON."""


class Agent:
    """Asks its model what to do, and does that."""

    def __init__(self, send: Send, task: str = "Refund order 7") -> None:
        """Begin with a task."""
        self._send = send
        self.statuses: list[int] = []
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": task},
        ]

    def run(self) -> str:
        """Go on until there is no more to do, or the model does not answer; give what was said last."""
        for _ in range(8):
            said = self._ask("POST", CHAT, {"model": "gpt-4o", "messages": self.messages})
            if "choices" not in said:
                return "no answer"
            message = said["choices"][0]["message"]
            self.messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                self._use(call["id"], call["function"])
        return "no end"

    def _use(self, name: str, function: dict[str, str]) -> None:
        given = json.loads(function["arguments"])
        match function["name"]:
            case "look_up":
                result = self._ask("GET", f"/orders/{given['order']}", None)
            case "list_refunds":
                result = self._ask("GET", f"/v1/refunds?order={given['order']}", None)
            case _:
                result = self._ask("POST", "/v1/refunds", given)
        self.messages.append({"role": "tool", "tool_call_id": name, "content": json.dumps(result)})

    def _ask(self, method: str, path: str, body: Any) -> Any:
        status, said = self._send(method, path, body)
        self.statuses.append(status)
        return said


def answer(method: str, path: str, asked: Any) -> Any:
    """Answer as the shop and the model do."""
    if path == CHAT:
        return _completion(asked["messages"])
    if path.startswith("/orders/"):
        return {"order": 7, "amount": 4900}
    if method == "GET":
        return {"refunds": []}
    return {"id": "re_1Qx8", "order": asked["order"], "amount": asked["amount"], "status": "paid"}


def _completion(messages: list[dict[str, Any]]) -> dict[str, Any]:
    careful = messages[0]["content"] == CAREFUL
    last = messages[-1]
    if last["role"] != "tool":
        return _call("list_refunds" if careful else "look_up", {"order": 7})
    told = json.loads(last["content"])
    if told.get("refunds") == []:
        return _call("look_up", {"order": 7})
    if told.get("refunds") or "id" in told:
        return _say(f"Refunded: {last['content'][:80]}")
    return _call("refund", {"order": told["order"], "amount": told["amount"]})


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{name}", "type": "function", "function": function}
    return _whole({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def _say(text: str) -> dict[str, Any]:
    return _whole({"role": "assistant", "content": text}, "stop")


def _whole(message: dict[str, Any], why: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choice = {"index": 0, "message": message, "finish_reason": why}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
    return {**head, "choices": [choice], "usage": usage}


def lists_refunds() -> bytes:
    """Give a completion in which the model lists refunds."""
    return json.dumps(_call("list_refunds", {"order": 7})).encode()


@cache
def _opener(proxy: str) -> urllib.request.OpenerDirector:
    """Make what opens URLs, once: it reads the roots of the machine."""
    handler = urllib.request.ProxyHandler({"http": proxy} if proxy else None)
    return urllib.request.build_opener(handler)


def send_by_urllib(
    method: str,
    url: str,
    body: Any,
    headers: Mapping[str, str] = MappingProxyType({}),
    proxy: str = "",
) -> tuple[int, Any]:
    """Ask by way of a proxy, or of the environment's."""
    data = None if body is None else json.dumps(body).encode()
    fields = {"content-type": "application/json", **headers}
    request = urllib.request.Request(url, data, fields, method=method)
    try:
        with _opener(proxy).open(request, timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


if __name__ == "__main__":
    base = sys.argv[1]
    agent = Agent(lambda method, path, body: send_by_urllib(method, base + path, body))
    print(agent.run(), flush=True)
    sys.exit(0 if agent.statuses[-1] == 200 else 3)
