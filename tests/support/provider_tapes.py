"""Tapes of conversations that OpenAI keeps, under the ids of answers and of conversations."""

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from playhead.tape.exchange import (
    Exchange,
    Message,
    MessageKind,
    RequestClass,
    Response,
    WebSocketSummary,
)

from .agent_tapes import Tape
from .dialects import make_request, make_response, make_stream
from .in_memory import InMemory

RESPONSES = "https://api.openai.com/v1/responses"
CONVERSATIONS = "https://api.openai.com/v1/conversations"


def words(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    """Give an item of an input that says something."""
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
        **more,
    }


def said(text: str, id: str) -> dict[str, Any]:
    """Give an item of an answer that says something."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": id, "role": "assistant", "content": [part]}


def called(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Give a tool call."""
    given = json.dumps(arguments)
    return {
        "type": "function_call",
        "id": f"fc_{id}",
        "call_id": id,
        "name": name,
        "arguments": given,
    }


def result(id: str, output: str) -> dict[str, Any]:
    """Give the result of a tool call."""
    return {"type": "function_call_output", "call_id": id, "output": output}


def function(name: str) -> dict[str, Any]:
    """Give a tool."""
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}


class Kept:
    """Writes a run whose conversations a provider keeps; answers are `r1`, `r2` ..., by their exchanges."""

    def __init__(self, *, stream: bool = False) -> None:
        self.tape, self.stream = Tape("kept"), stream
        self.messages: dict[int, list[Message]] = {}
        self.always: dict[str, Any] = {}
        """Members of each request."""

    @property
    def exchanges(self) -> "KeptRun":
        """The run so far."""
        return KeptRun(self.tape.exchanges, self.messages)

    @property
    def next(self) -> int:
        """Seq of the next exchange."""
        return len(self.tape.exchanges) + 1

    def answer(self, output: list[Any] | None, status: str, id: str) -> dict[str, Any]:
        """Give a response."""
        output = [said(f"Answer of {id}.", f"m_{id}")] if output is None else output
        return {
            "id": id,
            "object": "response",
            "model": "gpt-5",
            "status": status,
            "output": output,
        }

    def ask(
        self,
        asked: Any,
        *,
        output: list[Any] | None = None,
        status: str = "completed",
        ends: bool = True,
        error: int = 0,
        **more: Any,
    ) -> None:
        """Ask the model.

        more: other members of the request.
        """
        body = {"model": "gpt-5", "input": asked, **self.always, **more}
        whole = self.answer(output, status, f"r{self.next}")
        if error:
            response = make_response({"error": {"message": "no"}}, status=error)
        elif self.stream or not ends:
            response = _stream(whole, ends=ends)
        else:
            response = make_response(whole)
        self.tape.model(make_request(RESPONSES, body), response)

    def ask_on_websocket(self, *bodies: dict[str, Any]) -> None:
        """Ask the model several times on one WebSocket; the answers are `r1.1`, `r1.2` ..."""
        seq, messages = self.next, list[Message]()
        for part, body in enumerate(bodies, 1):
            asked = {"type": "response.create", "model": "gpt-5", **body}
            whole = self.answer(None, "completed", f"r{seq}.{part}")
            for event in (asked, *_events(whole, ends=True)):
                is_asked = event is asked
                data = json.dumps(event).encode()
                messages.append(
                    Message(10 * len(messages), is_asked, MessageKind.TEXT, data, after=seq)
                )
        self.tape.add(
            make_request(RESPONSES, b"", method="GET"),
            make_response(b"", status=101),
            RequestClass.INFERENCE,
        )
        size = sum(len(one.data) for one in messages)
        self.tape.exchanges[-1] = replace(
            self.tape.exchanges[-1], websocket=WebSocketSummary(len(messages), size, None)
        )
        self.messages[seq] = messages

    def create(self, name: str, *items: Any) -> None:
        """Begin a conversation."""
        self.tape.post(CONVERSATIONS, {"items": [*items]}, {"id": name, "object": "conversation"})

    def add(self, name: str, *items: Any) -> None:
        """Add items to a conversation; the ids are `added1` ..."""
        given = [one | {"id": f"added{at}"} for at, one in enumerate(items, 1)]
        self.tape.post(f"{CONVERSATIONS}/{name}/items", {"items": [*items]}, {"data": given})

    def delete(self, path: str, status: int = 200) -> None:
        """Delete something."""
        asked = make_request(f"https://api.openai.com/v1/{path}", b"", method="DELETE")
        self.tape.add(asked, make_response({"id": "x"}, status=status), RequestClass.EFFECT)

    def read(self, id: str, status: str, *output: Any, stream: bool = False) -> None:
        """Read a response."""
        whole = self.answer([*output], status, id)
        response = _stream(whole, ends=True) if stream else make_response(whole)
        asked = make_request(
            f"{RESPONSES}/{id}{'?stream=true' if stream else ''}", b"", method="GET"
        )
        self.tape.add(asked, response, RequestClass.READ)

    def list(self, name: str, *items: Any) -> None:
        """Read the items of a conversation."""
        self.tape.get(f"{CONVERSATIONS}/{name}/items", {"object": "list", "data": [*items]})


def _events(whole: dict[str, Any], *, ends: bool) -> Iterator[dict[str, Any]]:
    begun = {**whole, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": begun}
    for at, item in enumerate(whole["output"]):
        if not ends and item["type"] == "message":
            text = item["content"][0]["text"]
            yield {
                "type": "response.output_item.added",
                "output_index": at,
                "item": {**item, "content": []},
            }
            delta = {"type": "response.output_text.delta", "output_index": at, "content_index": 0}
            yield {**delta, "delta": text[: len(text) // 2]}
            return
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    if ends:
        yield {"type": f"response.{whole['status']}", "response": whole}


def _stream(whole: dict[str, Any], *, ends: bool) -> Response:
    return make_stream(*_events(whole, ends=ends), named=True, complete=ends)


class KeptRun(InMemory):
    """Such a run, with the messages of its WebSockets."""

    def __init__(self, exchanges: list[Exchange], messages: dict[int, list[Message]]) -> None:
        super().__init__(exchanges)
        self._messages = messages
        self.store = cast("Any", SimpleNamespace(events=SimpleNamespace(read=lambda *_: [])))

    def messages(self, exchange: Exchange) -> Iterator[Message]:
        """Give the messages of a WebSocket."""
        return iter(self._messages.get(exchange.seq, ()))
