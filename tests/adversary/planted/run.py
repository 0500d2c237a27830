"""Runs that are written as their agents act: a clock, exchanges, and agents with their conversations."""

import json
import pickle
from collections.abc import Sequence
from random import Random
from typing import Any

from .streams import request_id, stream
from .wire import (
    MODELS,
    Plain,
    answer,
    call_id,
    encode,
    request,
    request_headers,
    result,
    said,
    url,
    usage,
    user,
)

START_MS = 1_790_000_000_000


def _copy(data: Any) -> Any:
    """Copy plain data, in a sixth of the time of `copy.deepcopy`: these run to tens of megabytes."""
    return pickle.loads(pickle.dumps(data))


class Run:
    """Exchanges in the order of arrival; seq counts from 1. `exchanges` is plain data."""

    def __init__(self, rng: Random, start_ms: int = START_MS) -> None:
        self.rng = rng
        self.now_ms = start_ms
        self.exchanges: list[Plain] = []

    def add(
        self,
        method: str,
        url: str,
        request: Any = None,
        response: Any = None,
        status: int = 200,
        *,
        request_headers: dict[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
        process: int | None = None,
        took_ms: int | None = None,
        beside: bool = False,
    ) -> int:
        """Append an exchange and give its seq; `beside` has the next one begin before this one ends."""
        took = self.rng.randint(20, 400) if took_ms is None else took_ms
        kind = "application/json"
        if isinstance(response, str):
            kind = "text/html; charset=utf-8" if response.startswith("<") else "text/plain"
        elif isinstance(response, list):
            kind = "text/event-stream; charset=utf-8"
        given = {"content-type": "application/json"} if request is not None else {}
        exchange: Plain = {
            "seq": len(self.exchanges) + 1,
            "method": method,
            "url": url,
            "request_headers": given if request_headers is None else request_headers,
            "request": _copy(request),
            "status": status,
            "response_headers": {"content-type": kind} | (response_headers or {}),
            "response": _copy(response),
            "started_ms": self.now_ms,
            "took_ms": took,
        }
        if process is not None:
            exchange["process"] = process
        self.exchanges.append(exchange)
        self.now_ms += 3 if beside else took + self.rng.randint(5, 60)
        return int(exchange["seq"])

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self.now_ms += int(seconds * 1000)

    def __getitem__(self, seq: int) -> Plain:
        return self.exchanges[seq - 1]


class Agent:
    """One agent or sub-agent: its prompt, its tools and its conversation so far."""

    def __init__(
        self,
        run: Run,
        dialect: str,
        system: str,
        tools: Sequence[Plain] = (),
        *,
        model: str = "",
        process: int = 4100,
        streams: bool = False,
        first: str = "",
    ) -> None:
        self.run, self.dialect, self.system = run, dialect, system
        self.tools = list(tools)
        self.model = model or MODELS[dialect]
        self.process, self.streams = process, streams
        self.messages: list[Plain] = [user(first)] if first else []

    def hear(self, text: str) -> None:
        """Take in a message of the user."""
        self.messages.append(user(text))

    def call(self, name: str, arguments: Plain) -> Plain:
        """Give a tool call with an id of its own."""
        call = {"id": call_id(self.dialect, self.run.rng), "name": name}
        return call | {"arguments": arguments}

    def turn(
        self,
        text: str,
        *calls: Plain,
        counts: Plain | None = None,
        beside: bool = False,
        took_ms: int | None = None,
    ) -> int:
        """Ask the model, which says this; give the seq."""
        rng, message = self.run.rng, said(text, calls)
        body = self.body()
        counted = counts or {"input": max(1, len(encode(body)) // 4), "output": 20 + len(text) // 4}
        whole = answer(self.dialect, self.model, message, usage(self.dialect, counted), rng)
        seq = self.run.add(
            "POST",
            url(self.dialect, self.model, self.streams),
            body,
            stream(self.dialect, whole, rng) if self.streams else whole,
            request_headers=request_headers(self.dialect),
            response_headers=request_id(self.dialect, rng),
            process=self.process,
            took_ms=rng.randint(600, 6000) if took_ms is None else took_ms,
            beside=beside,
        )
        self.messages.append(message)
        return seq

    def body(self) -> Plain:
        """Write the request that the conversation is now."""
        return request(
            self.dialect, self.model, self.system, self.tools, self.messages, self.streams
        )

    def result(self, call: Plain, value: Any) -> None:
        """Take in what a tool call gave: a text, or JSON as text."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self.messages.append(result(call, text))
