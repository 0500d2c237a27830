"""What it costs to find out what a request asks: its fingerprint, and the key of its bytes.

1. Both sides of a ratio work on the same body in the same round, in turns; the least time of a turn counts,
   since whatever else the machine does only adds to it.
2. The fingerprint is that of a whole request under the shipped rules, head included, from bytes to bytes.
"""

import gc
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from blake3 import blake3
from measure import Plan
from report import Bar, Section, spread

from playhead.config import IgnoreRule, parse_match
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint, raw_key
from playhead.tape.exchange import Request, RequestClass

LIMIT = 2.5
RAW_LIMIT = 2.0
"""The key is a hash of the body with some fields of the head; these cost some microseconds."""
_MESSAGES = 60
_MESSAGE_BYTES = 950
_TURNS = 40
_CALLS = 5
_RULE = IgnoreRule(
    parse_match("*://*"),
    json=("$.user", "$.messages[*].id"),
)
_PATTERN = IgnoreRule(parse_match("*://*"), regex=("call_[0-9a-f]{8,}",))


def matching(plan: Plan) -> list[Section]:
    """Measure fingerprints of bodies of 60 KB beside the plain library, and raw keys beside their hash."""
    chat = _chat(plan.rng)
    compact = json.dumps(chat, ensure_ascii=False, separators=(",", ":")).encode()
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"arguments": chat}}
    shipped, own = compile_rules(), compile_rules((_RULE,))
    cases = [
        # What is measured, its body, its rules, and whether the bar is for it.
        ("chat, written without spaces", compact, shipped, True),
        ("chat, as json.dumps writes it", json.dumps(chat).encode(), shipped, True),
        ("chat, with masked JSON paths", compact, own, True),
        ("JSON-RPC", json.dumps(call).encode(), shipped, True),
        ("chat, with a pattern", compact, compile_rules((_PATTERN,)), False),
    ]
    head = ("body", "KB", "fingerprint us", "loads+dumps us", "ratio", "raw key us", "of its hash")
    section = Section("Fingerprints of bodies of 60 KB", head, raw={})
    for name, body, rules, barred in cases:
        request = _request(body)
        plan.say(f"matching: {name}")
        rounds = [
            _least(
                lambda: fingerprint(canonical(request, RequestClass.INFERENCE, rules)),  # noqa: B023
                lambda: json.dumps(json.loads(body), sort_keys=True),  # noqa: B023
                lambda: raw_key(request, RequestClass.INFERENCE),  # noqa: B023
                lambda: blake3(body).digest(16),  # noqa: B023
                quick=plan.quick,
            )
            for _ in range(plan.rounds)
        ]
        ratios = [one[0] / one[1] for one in rounds]
        raw_ratios = [one[2] / one[3] for one in rounds]
        middle = [sorted(one[at] for one in rounds)[len(rounds) // 2] * 1e6 for at in range(3)]
        section.rows.append(
            (
                name,
                f"{len(body) / 1000:.0f}",
                f"{middle[0]:.0f}",
                f"{middle[1]:.0f}",
                spread(ratios),
                f"{middle[2]:.0f}",
                spread(raw_ratios),
            )
        )
        section.raw[name] = rounds
        if barred:
            ratio = sorted(ratios)[len(ratios) // 2]
            section.bars.append(Bar(f"fingerprint, {name}", LIMIT, ratio))
    raw = sorted(one[2] / one[3] for one in section.raw[cases[0][0]])
    section.bars.append(Bar("raw key of 60 KB, to its hash alone", RAW_LIMIT, raw[len(raw) // 2]))
    return [section]


def _least(*calls: Callable[[], Any], quick: bool) -> list[float]:
    """Give the least seconds of each call, taken in turns."""
    least = [float("inf")] * len(calls)
    gc.collect()
    for _ in range(_TURNS // 4 if quick else _TURNS):
        for at, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(_CALLS):
                call()
            least[at] = min(least[at], (time.perf_counter() - start) / _CALLS)
    return least


def _request(body: bytes) -> Request:
    headers = (
        (b"Host", b"api.openai.com"),
        (b"Accept", b"application/json"),
        (b"Content-Type", b"application/json"),
        (b"Authorization", b"Bearer xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        (b"User-Agent", b"OpenAI/Python 1.99.0"),
        (b"X-Stainless-Retry-Count", b"0"),
        (b"Content-Length", b"%d" % len(body)),
    )
    made = Request(
        "POST", "https", "api.openai.com", 443, "/v1/chat/completions", "HTTP/1.1", headers
    )
    return replace(made, body=body)


def _chat(rng: random.Random) -> dict[str, Any]:
    """Make a chat request as an agent sends it: text, tool calls with JSON inside, results."""
    messages: list[dict[str, Any]] = []
    for number in range(_MESSAGES):
        call = f"call_{rng.randrange(16**16):016x}"
        text = _prose(rng, _MESSAGE_BYTES)
        match number % 3:
            case 0:
                messages.append({"role": "user", "content": text})
            case 1:
                arguments = json.dumps({"query": text[: _MESSAGE_BYTES // 2], "limit": number})
                function = {"name": "search", "arguments": arguments}
                messages.append(
                    {
                        "role": "assistant",
                        "content": text[: _MESSAGE_BYTES // 3],
                        "tool_calls": [{"id": call, "type": "function", "function": function}],
                    }
                )
            case _:
                messages.append({"role": "tool", "tool_call_id": call, "content": text})
    schema = {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    }
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "parameters": schema}}
        for n in range(6)
    ]
    return {
        "model": "gpt-4o",
        "messages": messages,
        "tools": tools,
        "temperature": 0.2,
        "user": "u-1",
        "stream": True,
    }


def _prose(rng: random.Random, size: int) -> str:
    words = (
        "the",
        "agent",
        "looks",
        "at",
        'a "file"',
        "line\n",
        "über",
        "value: 12.5",
        "—",
        "path/to",
        "and",
    )
    text = ""
    while len(text) < size:
        text += rng.choice(words) + " "
    return text[:size]
