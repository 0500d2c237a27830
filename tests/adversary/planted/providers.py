"""Prompt caches of providers, as their documents describe them: what of a request is read from the cache.

Tokens are bytes / 4. Sources: Anthropic, "Prompt caching" (order tools, system, messages; entries are written at
`cache_control`, looked up to 20 blocks before one; 5 minutes or 1 hour since the last use; least sizes by model; a
change of thinking or tool choice keeps tools and system); OpenAI, "Prompt caching" (by itself, from 1,024 tokens in
steps of 128, kept for 5 to 10 minutes of inactivity, an hour at most); Gemini, "Context caching" (implicit; the count
is left out where it is zero; no lifetime is promised).
"""

import hashlib
import json
from typing import Any

from .wire import Plain

LEAST = {"claude-opus-4-5-20251101": 4096, "claude-haiku-4-5-20251001": 4096}
"""Least sizes other than 1,024 tokens."""
LIFE_MS = {"5m": 300_000, "1h": 3_600_000}
_IDLE_MS = 600_000
_LOOKBACK = 20


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _size(value: Any) -> int:
    return max(1, len(_text(value).encode()) // 4)


class Provider:
    """One provider's cache for one account."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[int, int]] = {}
        self._asked: list[tuple[int, str, str]] = []
        self.forgets = False
        """Drops everything before the next request, against its word."""

    def count(self, dialect: str, body: Plain, model: str, now_ms: int) -> Plain:
        """Give `input`, `read`, `written` and `output` of a request."""
        if self.forgets:
            self._written.clear()
            self._asked.clear()
            self.forgets = False
        if dialect == "anthropic":
            return self._marked(body, model, now_ms)
        return self._automatic(body, model, now_ms)

    def _marked(self, body: Plain, model: str, now_ms: int) -> Plain:
        sections = (
            body.get("tools", []),
            body["system"],
            [part for one in body["messages"] for part in _with_role(one)],
        )
        blocks: list[tuple[str, int]] = []
        marks: list[tuple[int, str]] = []
        chain, tokens = hashlib.sha256(model.encode()), 0
        for number, section in enumerate(sections):
            if number == 2:
                chain.update(_text([body.get("thinking"), body.get("tool_choice")]).encode())
            for block in section:
                bare = {key: value for key, value in block.items() if key != "cache_control"}
                chain.update(_text(bare).encode() + b"\0")
                tokens += _size(bare)
                if "cache_control" in block:
                    marks.append((len(blocks), block["cache_control"].get("ttl", "5m")))
                blocks.append((chain.hexdigest(), tokens))
        least = LEAST.get(model, 1024)
        read = 0
        for at, _ in marks:
            for digest, size in blocks[max(0, at - _LOOKBACK) : at + 1]:
                kept = self._written.get(digest)
                if kept and kept[0] > now_ms:
                    read = max(read, size)
                    self._written[digest] = (now_ms + kept[1], kept[1])
        cached = 0
        for at, life in marks:
            digest, size = blocks[at]
            if size >= least:
                cached = max(cached, size)
                self._written[digest] = (now_ms + LIFE_MS[life], LIFE_MS[life])
        whole = tokens + 12
        return {"input": whole, "read": read, "written": max(0, cached - read), "output": 60}

    def _automatic(self, body: Plain, model: str, now_ms: int) -> Plain:
        head = [body.get("tools"), body.get("instructions"), body.get("systemInstruction")]
        parts = body.get("messages") or body.get("input") or body.get("contents") or []
        text = _text(head) + "".join(_text(one) + "\n" for one in parts)
        read = 0
        for index, (asked_ms, asked_of, earlier) in enumerate(self._asked):
            if asked_of != model or now_ms - asked_ms > _IDLE_MS:
                continue
            same = _common(text, earlier) // 4 // 128 * 128
            if same >= 1024:
                read = max(read, same)
                self._asked[index] = (now_ms, asked_of, earlier)
        self._asked.append((now_ms, model, text))
        return {"input": len(text) // 4 + 12, "read": read, "written": 0, "output": 60}


def _with_role(message: Plain) -> list[Plain]:
    return [{"role": message["role"]} | part for part in message["content"]]


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
