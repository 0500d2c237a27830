"""What it costs to look for secrets in a body, in microseconds of the thread that writes.

Measured on the redactor alone, in a run that has learned some credentials: a chat of 60 KB without a secret, one that
speaks of tokens all the time, one that holds the key, and one full of escapes.
"""

import json
import time
from collections.abc import Callable
from functools import partial

import workloads
from measure import Plan
from report import Bar, Section

from playhead.tape.exchange import Request
from playhead.tape.redaction.redactor import Redactor

BAR_US = 100.0
_KEY = b"sk-bench-0123456789abcdefABCDEF"
_SIZE = 60_000
_HEADERS = ((b"content-type", b"application/json"), (b"authorization", b"Bearer " + _KEY))
_TIMES = 50


def redact(plan: Plan) -> list[Section]:
    """Measure the search of bodies."""
    section = Section("Looking for secrets in a body of 60 KB", ("body", "median us", "least us"))
    raw: dict[str, list[float]] = {}
    redactor = Redactor(b"k" * 32)
    chat = workloads.body(workloads.WORKLOADS["llm"], 1)[:_SIZE]
    bodies = {
        "a chat": chat,
        "a chat about tokens": json.dumps({"m": "max_tokens and token counts " * 2200}).encode()[
            :_SIZE
        ],
        "a chat with the key": chat[: _SIZE // 2] + _KEY + chat[_SIZE // 2 + len(_KEY) :],
        "an escape at every word": (rb'{"m": "' + rb"https:\/\/a.example\/b " * 2500)[:_SIZE],
    }
    for name, body in bodies.items():
        request = Request("POST", "https", "api.bench", 443, "/v1", "HTTP/1.1", _HEADERS, body)
        redactor.head(request)
        work = partial(redactor.request_body, request)
        took_us = sorted(took_us(work) for _ in range(max(5, plan.rounds)))
        raw[name] = took_us
        section.rows.append((name, f"{took_us[len(took_us) // 2]:.0f}", f"{took_us[0]:.0f}"))
    section.bars.append(
        Bar("looking for secrets in a chat of 60 KB", BAR_US, raw["a chat"][0], "us")
    )
    section.raw = raw
    return [section]


def took_us(work: Callable[[], object]) -> float:
    """Give how long some work takes, in microseconds: the mean of many times."""
    began = time.perf_counter()
    for _ in range(_TIMES):
        work()
    return (time.perf_counter() - began) / _TIMES * 1e6
